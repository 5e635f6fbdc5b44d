"""The standard's own node tests against memplan: no wrong byte.

Usage: python check.py MEMPLAN [--update] [NAME...]

The package `onnx` makes one small model for each behaviour of each operator, with recorded inputs
and outputs. Each model is imported twice:

- declared: as it is, with its shapes and types of the outputs;
- inferred: without them, so that memplan must infer them. Where a shape depends on the value of an
  input, the inputs after the first, then all of them, become initializers with their recorded
  values.

Every tensor of the sequence that memplan makes is compared with the recorded one, and those between
operators with what the standard's reference implementation computes. What memplan refuses must
stand in refused.txt with its reason; --update writes that file. A size of which memplan knows only a limit must not be
larger than that. With names, only those cases run.
"""

import collections
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

HERE = pathlib.Path(__file__).parent
REFUSED = HERE / "refused.txt"
BITS = {
    TensorProto.FLOAT: 32, TensorProto.UINT8: 8, TensorProto.INT8: 8, TensorProto.UINT16: 16,
    TensorProto.INT16: 16, TensorProto.INT32: 32, TensorProto.INT64: 64, TensorProto.BOOL: 8,
    TensorProto.FLOAT16: 16, TensorProto.DOUBLE: 64, TensorProto.UINT32: 32,
    TensorProto.UINT64: 64, TensorProto.COMPLEX64: 64, TensorProto.COMPLEX128: 128,
    TensorProto.BFLOAT16: 16, TensorProto.FLOAT8E4M3FN: 8, TensorProto.FLOAT8E4M3FNUZ: 8,
    TensorProto.FLOAT8E5M2: 8, TensorProto.FLOAT8E5M2FNUZ: 8, TensorProto.UINT4: 4,
    TensorProto.INT4: 4, TensorProto.FLOAT4E2M1: 4, TensorProto.FLOAT8E8M0: 8,
    TensorProto.UINT2: 2, TensorProto.INT2: 2,
}  # fmt: skip
VARIANTS = ("declared", "inferred")


def element_type(array):
    return onnx.helper.np_dtype_to_tensor_dtype(array.dtype)


def plain(value):
    """Some values are recorded as tensors of the format."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def size(value):
    """The bytes of a recorded value in the pool; None for what is neither a tensor nor a sequence."""
    if isinstance(value, (list, tuple)):
        # Each tensor of a sequence begins at a multiple of 64 bytes.
        sizes = [size(plain(item)) for item in value]
        return None if None in sizes else sum(math.ceil(bytes / 64) * 64 for bytes in sizes)
    if value is None or isinstance(value, dict):
        return None
    value = numpy.asarray(value)
    if value.dtype.kind in "OUST":
        return 0  # Strings stay outside the pool.
    return math.ceil(value.size * BITS[element_type(value)] / 8)


def declared_size(value, info):
    """As `size`; of the declared type, as arrays do not pack numbers of less than 8 bits."""
    bits = BITS.get(info.type.tensor_type.elem_type)
    return math.ceil(numpy.asarray(value).size * bits / 8) if bits else size(value)


def with_recorded_shapes(model, inputs):
    """The model with the recorded shape of each input."""
    model = copy_of(model)
    for info in model.graph.input:
        value = inputs.get(info.name)
        if info.type.HasField("tensor_type") and value is not None:
            shape = info.type.tensor_type.shape
            del shape.dim[:]
            for length in numpy.asarray(value).shape:
                shape.dim.add().dim_value = length
    return model


def without_declarations(model):
    model = copy_of(model)
    del model.graph.value_info[:]
    for info in model.graph.output:
        info.ClearField("type")
    return model


def with_values(model, inputs, first):
    """The model whose inputs from `first` on are initializers."""
    model = copy_of(model)
    for info in list(model.graph.input)[first:]:
        value = inputs.get(info.name)
        if not info.type.HasField("tensor_type") or value is None:
            continue
        tensor = numpy_helper.from_array(numpy.asarray(value), info.name)
        if tensor.data_type == info.type.tensor_type.elem_type:
            model.graph.initializer.append(tensor)
            model.graph.input.remove(info)
    return model


def copy_of(model):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


class Memplan:
    def __init__(self, tool, folder):
        self.tool, self.folder, self.runs = tool, pathlib.Path(folder), 0

    def sequence(self, model, lengths):
        """The tensors that memplan knows, by name, or why it refuses the model."""
        path = self.folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        self.runs += 1
        command = [self.tool, "convert", path, "-o", self.folder / "out.json"]
        names = {info.name for info in model.graph.input}
        for name, shape in lengths.items():
            if name in names:
                command += ["--shape", f"{name}={shape}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 2:
            return None, one_line(done.stderr.removeprefix(f"memplan: {path}: "))
        if done.returncode != 0:
            raise RuntimeError(f"memplan ended with {done.returncode}: {done.stderr}")
        sequence = json.loads((self.folder / "out.json").read_text())
        tensors = sequence.get("inputs", []) + sequence.get("weights", [])
        for operator in sequence["operators"]:
            tensors += operator["outputs"]
        return {tensor["name"]: tensor for tensor in tensors}, None


def recorded(case):
    """The recorded sizes of a case's tensors, by name."""
    inputs, outputs = ([plain(value) for value in values] for values in case.data_sets[0])
    graph = case.model.graph
    values = dict(zip([info.name for info in graph.input], inputs))
    sizes = {}
    for info, value in [*zip(graph.input, inputs), *zip(graph.output, outputs)]:
        if size(value) is not None:
            sizes[info.name] = declared_size(value, info)
    if len(graph.node) > 1:
        try:
            between = ReferenceEvaluator(case.model).run(None, values, intermediate=True)
        except Exception:  # The reference has no such operator, or not this use of it.
            between = {}
        for name, value in between.items():
            if size(value) is not None:
                sizes.setdefault(name, size(value))
    return values, sizes


def lengths_of_sequences(values):
    """What --shape takes for the inputs that are sequences of tensors of one shape."""
    lengths = {}
    for name, value in values.items():
        if isinstance(value, (list, tuple)) and value:
            shapes = {numpy.asarray(plain(item)).shape for item in value}
            if len(shapes) == 1:
                lengths[name] = "x".join(str(size) for size in (len(value), *shapes.pop()))
    return lengths


def compare(case, known, sizes):
    """How many sizes are compared, and how many are only a limit; and what is wrong."""
    found, wrong = collections.Counter(), []
    for name, expected in sizes.items():
        tensor = known.get(name)
        if tensor is None:
            continue
        limit = tensor.get("basis") == "at_most"
        found["limits" if limit else "tensors"] += 1
        if tensor["size"] < expected or tensor["size"] > expected and not limit:
            wrong.append(f"{name} has {expected} bytes, memplan says {tensor['size']}")
    for info in case.model.graph.output:
        if info.name in sizes and info.name not in known:
            wrong.append(f"output {info.name} is not in the sequence")
    return found, wrong


def one_line(message):
    """A message without the advice, and with the first of several reasons."""
    first, *rest = message.strip().splitlines()
    reasons = [line.strip() for line in rest if line.startswith("  ") and "--" not in line]
    first = re.sub("; give the .*, with$", "", first)
    return "; ".join([first, *reasons[:1]])


def attempts(case, values):
    """Per variant, the models to try until one is not refused."""
    shaped = with_recorded_shapes(case.model, values)
    bare = without_declarations(shaped)
    yield "declared", [shaped]
    yield "inferred", [bare, with_values(bare, values, 1), with_values(bare, values, 0)]


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    arguments = [argument for argument in arguments if argument != "--update"]
    tool, names = pathlib.Path(arguments[0]).resolve(), arguments[1:]
    warnings.filterwarnings("ignore")
    numpy.seterr(all="ignore")
    from onnx.backend.test.case.node import collect_testcases

    cases = [case for case in collect_testcases(None) if not names or case.name in names]
    wrong, refused = [], {}
    counts = {variant: collections.Counter() for variant in VARIANTS}
    with tempfile.TemporaryDirectory() as folder:
        memplan = Memplan(tool, folder)
        for case in cases:
            values, sizes = recorded(case)
            for variant, models in attempts(case, values):
                planned, reason = False, None
                for model in models:
                    if planned and model is models[-1]:
                        break  # Nothing is left for the run to compute.
                    known, why = memplan.sequence(model, lengths_of_sequences(values))
                    reason = why or reason
                    if known is None:
                        continue
                    missing = [i.name for i in case.model.graph.output if i.name not in known]
                    if missing and model is not models[0]:
                        # A constant output of unknown size is no part of a sequence.
                        reason = f"the size of {missing[0]} is unknown"
                        continue
                    planned = True
                    found, differences = compare(case, known, sizes)
                    counts[variant] += found
                    wrong += [f"{variant} {case.name}: {line}" for line in differences]
                    # Where only a limit is known, the size itself must follow from more values.
                    if not found["limits"]:
                        break
                if not planned:
                    refused[f"{variant} {case.name}"] = reason
    for variant in VARIANTS:
        count = sum(key.startswith(variant) for key in refused)
        print(f"{variant}: {len(cases) - count} of {len(cases)} models planned, {count} refused, "
              f"{counts[variant]['tensors']} sizes and {counts[variant]['limits']} limits compared")
    print(f"{len(wrong)} wrong")
    for line in wrong:
        print(line)
    lines = [f"{key}: {refused[key]}" for key in sorted(refused)]
    if update:
        REFUSED.write_text("".join(f"{line}\n" for line in lines))
    listed = REFUSED.read_text().splitlines() if REFUSED.exists() else []
    listed = [line for line in listed if not names or line.split()[1].rstrip(":") in names]
    for line in lines:
        if line not in listed:
            print(f"refused, and not listed in {REFUSED.name}: {line}")
    for line in listed:
        if line not in lines:
            print(f"listed in {REFUSED.name}, and not refused like this: {line}")
    sys.exit(1 if wrong or lines != listed else 0)


if __name__ == "__main__":
    main()
