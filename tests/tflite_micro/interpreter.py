"""The arena of TensorFlow Lite's interpreter is the one that memplan predicts, tensor by tensor.

Usage: python interpreter.py MEMPLAN MODELS

Every .tflite in the folder MODELS is loaded without delegates, with reference kernels where the
interpreter has them for all operators, because these need the least scratch memory:

- each tensor has the shape that memplan infers;
- the arena has the size that memplan states;
- without scratch memory, each tensor lies where `tflite-cpu-arena` puts it, and those that memplan
  counts on the heap lie outside the arena.

Models that call subgraphs are left out, because the interpreter gives the outputs of a call memory
outside the arena, and so is matrix multiplication, whose scratch memory may be larger than all else.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from ai_edge_litert.interpreter import Interpreter, OpResolverType

ALIGNMENT = 64
LEFT_OUT = {"BATCH_MATMUL", "CALL_ONCE", "IF", "WHILE"}
# Kernels with a little scratch memory in the arena.
SCRATCH = {"MEAN"}


def load(path):
    """An interpreter of a model, with reference kernels if there are some for all operators."""
    for kernels in (OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        try:
            return Interpreter(str(path), experimental_op_resolver_type=kernels)
        except ValueError as error:
            refused = error
    raise refused


def shapes(memplan, path, details):
    """The tensors whose inferred shapes are not those of the interpreter."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [memplan, "convert", str(path), "-o", file.name, "--runtime", "tflite"]
        subprocess.run(command, check=True, capture_output=True)
        operators = json.load(open(file.name))["operators"]
    made = [output for operator in operators for output in operator["outputs"]]
    inferred = {output["name"]: output["type"]["shape"] for output in made if "type" in output}
    found = {tensor["name"]: tensor["shape"].tolist() for tensor in details.values()}
    return [
        f"'{name}' has the shape {found[name]}, but memplan says {shape}"
        for name, shape in inferred.items()
        if found.get(name, shape) != shape
    ]


def is_seen(tensor):
    """Whether Python gets the address of a tensor: numpy copies scalars, and what is empty has none."""
    return tensor["shape"].size and tensor["shape"].all()


def check(memplan, path):
    """Returns the number of tensors compared and the mistakes, or None for a model that is left out."""
    interpreter = load(path)
    kinds = {operator["op_name"] for operator in interpreter._get_ops_details()}
    if kinds & LEFT_OUT:
        return None
    interpreter.allocate_tensors()
    command = [memplan, "plan", str(path), "--json", "--runtime", "tflite"]
    done = subprocess.run([*command, "--strategy", "tflite-cpu-arena"], capture_output=True, text=True)
    if done.returncode:
        return 0, [done.stderr]
    plan = json.loads(done.stdout)
    # The interpreter places what comes after a tensor of unknown size when it knows that size: in a run.
    heap = plan["arena"].get("heap", 0)
    if heap:
        interpreter.invoke()
    details = {tensor["index"]: tensor for tensor in interpreter.get_tensor_details()}
    mistakes = shapes(memplan, path, details)
    placed = [tensor for tensor in plan["tensors"] if tensor["chunk"] is not None]
    planned = {tensor["name"]: tensor["offset"] for tensor in placed}
    sizes = {tensor["name"]: tensor["size"] for tensor in placed}
    # Tensors without a name are scratch memory.
    found = [tensor for tensor in details.values() if tensor["name"] in planned and is_seen(tensor)]
    address = {
        tensor["name"]: interpreter.tensor(tensor["index"])().__array_interface__["data"][0] for tensor in found
    }
    if len(address) != len(found) or not found:
        return 0, ["the names of the tensors do not tell them apart"]
    # The inputs come first in the arena, and live as long as it does.
    base = min(address[tensor["name"]] for tensor in interpreter.get_input_details())
    offsets = {name: at - base for name, at in address.items()}
    mistakes += [
        f"'{name}' lies at {offset}, but memplan says {planned[name]}"
        for name, offset in offsets.items()
        if offset != planned[name] and not kinds & SCRATCH and not heap
    ]
    apart = [tensor for tensor in details.values() if tensor["name"] not in {*planned, ""} and is_seen(tensor)]
    for tensor in apart if heap else []:
        at = interpreter.tensor(tensor["index"])().__array_interface__["data"][0] - base
        if 0 <= at < plan["arena"]["own"]:
            mistakes.append(f"'{tensor['name']}' lies in the arena, but memplan places it elsewhere")
    end = max(offsets[tensor["name"]] + sizes[tensor["name"]] for tensor in found)
    if -(-end // ALIGNMENT) * ALIGNMENT != plan["arena"]["own"]:
        mistakes.append(f"the arena has {end} bytes, but memplan says {plan['arena']['own']}")
    return len(found), mistakes


def main():
    memplan, models = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    compared, taken, failed = 0, 0, False
    for path in sorted(models.glob("*.tflite")):
        checked = check(memplan, path)
        if checked is None:
            print(f"{path.stem}: left out")
            continue
        compared, taken = compared + checked[0], taken + 1
        for mistake in checked[1]:
            failed = True
            print(f"{path.stem}: {mistake}")
    print(f"{compared} tensors of {taken} models compared")
    sys.exit(failed or compared == 0)


main()
