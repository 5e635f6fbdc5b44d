"""Plans run in TensorFlow Lite Micro itself: no wrong bit, and the arena that is really needed.

Usage: python check.py MEMPLAN MODELS [--update]

Every .tflite in the folder MODELS is planned three times: strict (--no-views --no-inplace), with views
and in place, and with overlaps as well. What memplan writes runs against the original:

- the head and the whole arena that memplan predicts for the original and for the plan are what the
  runtime reports;
- every output of every operator is the same to the bit. The model is cut behind that operator and the
  tensor made its output, because a later operator may write over it. A called subgraph runs alone, at
  the same offsets and with inputs of its own;
- `memplan verify` calls the plan right;
- `memplan reorder` writes a file with the same outputs to the bit, if it finds a better order;
- an output that begins below its input and is moved 64 bytes nearer gets other bits, and `memplan
  verify` calls that plan wrong.

The smallest arenas that work, before and after, stand in book/src/figures/arenas.txt; --update
writes that file.
"""

import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import numpy
from tflite_micro import runtime

FIGURE = pathlib.Path(__file__).parents[2] / "book/src/figures/arenas.txt"
LARGE = 8 << 20
STRICT = ["--no-views", "--no-inplace"]
OVERLAP = ["--overlap", "--kernels", "reference"]
NEARER = 64
# The type of handles of variables, which Python cannot read.
RESOURCE = 13


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def field(data, table, slot):
    """The place of a field of a table, or None."""
    layout = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * slot >= struct.unpack_from("<H", data, layout)[0]:
        return None
    offset = struct.unpack_from("<H", data, layout + 4 + 2 * slot)[0]
    return table + offset if offset else None


def follow(data, at):
    return at + u32(data, at)


def vector(data, table, slot):
    """The place of the length of a vector, which its elements follow, or None."""
    at = field(data, table, slot)
    return None if at is None else follow(data, at)


def numbers(data, at):
    return [] if at is None else list(struct.unpack_from(f"<{u32(data, at)}i", data, at + 4))


def cuts(data):
    """For each output of each operator, the model that ends there, with it as its only output."""
    subgraph = follow(data, vector(data, u32(data, 0), 2) + 4)
    outputs, operators = vector(data, subgraph, 2), vector(data, subgraph, 3)
    if not outputs or not u32(data, outputs):
        return
    for index in range(u32(data, operators)):
        operator = follow(data, operators + 4 + 4 * index)
        for tensor in numbers(data, vector(data, operator, 2)):
            kind = field(data, follow(data, vector(data, subgraph, 0) + 4 + 4 * tensor), 1)
            if kind and data[kind] == RESOURCE:
                continue
            cut = bytearray(data)
            struct.pack_into("<I", cut, operators, index + 1)
            struct.pack_into("<Ii", cut, outputs, 1, tensor)
            yield (index, tensor), bytes(cut)


def offsets(data):
    """The place of the offsets in the metadata of a planned model."""
    root = u32(data, 0)
    metadata, buffers = vector(data, root, 6), vector(data, root, 4)
    for index in range(u32(data, metadata) if metadata else 0):
        entry = follow(data, metadata + 4 + 4 * index)
        name = vector(data, entry, 0)
        if data[name + 4 : name + 4 + u32(data, name)] == b"OfflineMemoryAllocation":
            buffer = u32(data, field(data, entry, 1))
            return vector(data, follow(data, buffers + 4 + 4 * buffer), 0) + 4 + 12
    raise ValueError("no offline plan")


def calls(data):
    """Each called subgraph as a model of its own, with the offsets that it has in the plan."""
    subgraphs = vector(data, u32(data, 0), 2)
    first = 0
    for index in range(u32(data, subgraphs)):
        subgraph = follow(data, subgraphs + 4 + 4 * index)
        tensors = u32(data, vector(data, subgraph, 0))
        if index > 0:
            alone = bytearray(data)
            struct.pack_into("<II", alone, subgraphs, 1, subgraph - subgraphs - 4)
            try:
                at = offsets(data)
                own = data[at + 4 * first : at + 4 * (first + tensors)]
                struct.pack_into("<i", alone, at - 4, tensors)
                alone[at : at + len(own)] = own
            except ValueError:
                pass
            yield index, bytes(alone)
        first += tensors


def operands(data):
    """The inputs and outputs of the operators of subgraph 0."""
    subgraph = follow(data, vector(data, u32(data, 0), 2) + 4)
    operators = vector(data, subgraph, 3)
    for index in range(u32(data, operators)):
        operator = follow(data, operators + 4 + 4 * index)
        yield [numbers(data, vector(data, operator, slot)) for slot in (1, 2)]


def plant(data, truth):
    """For each output that begins below its input, the model with it moved nearer, and its place."""
    at = offsets(data)
    for index, (inputs, outputs) in enumerate(operands(data)):
        offset = lambda tensor: struct.unpack_from("<i", data, at + 4 * tensor)[0]
        source, output = (of[0] if of else -1 for of in (inputs, outputs))
        if -1 in (source, output) or -1 in (offset(source), offset(output)):
            continue
        distance, size = offset(source) - offset(output), len(truth[index, output])
        if NEARER <= distance < size:
            planted = bytearray(data)
            struct.pack_into("<i", planted, at + 4 * output, offset(output) + NEARER)
            yield (index, output), bytes(planted)


def count_inputs(data):
    subgraph = follow(data, vector(data, u32(data, 0), 2) + 4)
    return u32(data, vector(data, subgraph, 1))


def invoked(data, config=runtime.InterpreterConfig.kAllocationRecording):
    """The interpreter of a model that has run on the same numbers as every other."""
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=LARGE, intrepreter_config=config)
    random = numpy.random.default_rng(7)
    for index in range(count_inputs(data)):
        details = interpreter.get_input_details(index)
        shape, kind = tuple(details["shape"]), numpy.dtype(details["dtype"])
        if kind.kind == "f":
            value = random.standard_normal(shape)
        elif kind.kind == "b":
            value = random.integers(0, 2, shape)
        else:
            limits = numpy.iinfo(kind)
            value = random.integers(max(limits.min, -30000), min(limits.max, 30000) + 1, shape)
        interpreter.set_input(value.astype(kind), index)
    interpreter.invoke()
    return interpreter


def outputs(data):
    """All outputs of operators, by operator and tensor, where nothing writes over them."""
    whole = invoked(data, runtime.InterpreterConfig.kPreserveAllTensors)
    return {at: whole.GetTensor(at[1], 0)["tensor_data"].tobytes() for at, _ in cuts(data)}


def apart(function):
    """Runs a function in a process of its own; returns whether it succeeded, and what it printed."""
    with tempfile.TemporaryFile() as text:
        child = os.fork()
        if child == 0:
            os.dup2(text.fileno(), 1)
            os.dup2(text.fileno(), 2)
            try:
                function()
                status = 0
            except BaseException:
                status = 3
            sys.stderr.flush()
            os._exit(status)
        status = os.waitpid(child, 0)[1]
        text.seek(0)
        return status == 0, text.read().decode("utf8", "replace")


def allocations(data):
    """What the runtime reports as the head and the total of its arena."""
    works, text = apart(
        lambda: runtime.Interpreter.from_bytes(data, arena_size=LARGE).print_allocations()
    )
    if not works:
        raise ValueError(text[-300:])
    return [int(re.search(rf"Arena allocation {word} (\d+)", text)[1]) for word in ("head", "total")]


def smallest(data, total):
    """The smallest arena that works, a multiple of 16 bytes."""

    def works(size):
        return apart(lambda: runtime.Interpreter.from_bytes(data, arena_size=size))[0]

    high = -(-total // 16) * 16
    low = high - 16
    # Most models need what is reported.
    if works(high):
        while works(low):
            low, high = low // 32 * 16, low
    else:
        while not works(high):
            low, high = high, high + 4096
    while high - low > 16:
        middle = (low + high) // 32 * 16
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def head(words, label):
    """A head in what memplan prints, in bytes."""
    line = next(line for line in words.splitlines() if line.strip().startswith(label))
    exact = re.search(r"\(([\d\s]+) B\)", line) or re.search(r"([\d\s]+) B\b", line)
    return int(re.sub(r"\s", "", exact[1]))


def check(memplan, path, folder):
    """Returns the row of the table: the smallest arenas, and the mistakes found."""
    original = path.read_bytes()
    reported, whole = allocations(original)
    total = whole
    mistakes, row = [], [smallest(original, total)]
    truth, inner = None, {}
    planted = 0
    for options in (STRICT, [], OVERLAP):
        planned = pathlib.Path(folder) / "planned.tflite"
        planned.unlink(missing_ok=True)
        command = [memplan, "plan", str(path), "-o", str(planned), *options]
        done = subprocess.run(command, capture_output=True, text=True)
        words = done.stdout
        if done.returncode not in (0, 1):
            mistakes.append(done.stderr)
            continue
        if head(words, "head by its own planner") != reported:
            mistakes.append(f"the head is {reported}, but memplan says\n{words}")
        if head(words, "arena by its own planner") != whole:
            mistakes.append(f"the arena is {whole}, but memplan says\n{words}")
        if not planned.exists():
            row.append(None)
            continue
        data = planned.read_bytes()
        found, total = allocations(data)
        if head(words, "arena with this plan") != total:
            mistakes.append(f"the arena with the plan is {total}, but memplan says\n{words}")
        if head(words, "head with this plan") != found:
            mistakes.append(f"the head with the plan is {found}, but memplan says\n{words}")
        row.append(smallest(data, total))
        verified = subprocess.run(
            [memplan, "verify", str(path), str(planned), *(options[1:] if options is STRICT else options)],
            capture_output=True, text=True,
        )  # fmt: skip
        if verified.returncode:
            mistakes.append(verified.stdout + verified.stderr)
        if not data.endswith(original):
            mistakes.append("the original does not end the planned file")
        truth = truth or outputs(original)
        for place, cut in cuts(data):
            if invoked(cut).get_output(0).tobytes() != truth[place]:
                mistakes.append(f"operator {place[0]}: tensor {place[1]} has other bits")
        inner = inner or {index: outputs(alone) for index, alone in calls(original)}
        for index, alone in calls(data):
            for place, cut in cuts(alone):
                if invoked(cut).get_output(0).tobytes() != inner[index][place]:
                    mistakes.append(f"operator {index}:{place[0]}: tensor {place[1]} has other bits")
        for place, wrong in plant(data, truth) if options is OVERLAP else ():
            planted += 1
            planned.write_bytes(wrong)
            command = [memplan, "verify", str(path), str(planned), *OVERLAP]
            if subprocess.run(command, capture_output=True).returncode != 1:
                mistakes.append(f"operator {place[0]}: verify does not see that it overwrites its input")
            if invoked(dict(cuts(wrong))[place]).get_output(0).tobytes() == truth[place]:
                mistakes.append(f"operator {place[0]}: {NEARER} bytes nearer make no difference")
    better = pathlib.Path(folder) / "better.tflite"
    better.unlink(missing_ok=True)
    command = [memplan, "reorder", str(path), "-o", str(better)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        mistakes.append(done.stderr)
    elif better.read_bytes() != original:
        if len(better.read_bytes()) != len(original):
            mistakes.append("reorder changes the length of the file")
        before, after = (invoked(data).get_output(0).tobytes() for data in (original, better.read_bytes()))
        if before != after:
            mistakes.append("in the new order, the output has other bits")
    return row, mistakes, len(truth or ()) + sum(map(len, inner.values())), planted


def main():
    memplan, models = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
    text = f"{'model':<32}{'own plan':>10}{'strict':>10}{'in place':>10}{'overlap':>10}\n"
    failed, compared, wrong = False, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(models.glob("*.tflite")):
            row, mistakes, outputs, planted = check(memplan, path, folder)
            compared += outputs
            wrong += planted
            cells = "".join(f"{'-' if cell is None else cell:>10}" for cell in row)
            text += f"{path.stem:<32}{cells}\n"
            for mistake in mistakes:
                failed = True
                print(f"{path.stem}: {mistake}")
    print(text + f"{compared} outputs of operators compared, {wrong} moved nearer to their inputs")
    if "--update" in sys.argv:
        FIGURE.write_text(text)
    elif models.name == "models" and models.parent.name == "tflite" and FIGURE.read_text() != text:
        failed = True
        print(f"{FIGURE} differs; write it anew with --update")
    # Other people's models may have no output that can begin below its input.
    is_own = models.resolve() == (pathlib.Path(__file__).parents[1] / "models").resolve()
    if compared == 0 or is_own and wrong == 0:
        failed = True
        print("nothing was compared")
    sys.exit(failed)


main()
