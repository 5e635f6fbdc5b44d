"""An audit of a TensorFlow Lite interpreter: where its tensors lie, and whether one overwrites another.

The interpreter says through its Python interface which operators it runs and where each tensor lies. The operators are
run on a shadow of that memory.
"""

from __future__ import annotations

from typing import Any

from ._shadow import Audit, Fault, Shadow, Written, lost, overwritten

_ELEMENTWISE = frozenset(
    "ABS ADD CAST CEIL COS DEQUANTIZE DIV ELU EQUAL EXP FLOOR GELU GREATER GREATER_EQUAL HARD_SWISH LEAKY_RELU LESS "
    "LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC MAXIMUM MINIMUM MUL NEG NOT_EQUAL POW PRELU QUANTIZE RELU "
    "RELU6 RELU_N1_TO_1 ROUND RSQRT SIGN SIN SOFTMAX SQRT SQUARE SQUARED_DIFFERENCE SUB TANH".split()
)
"""Operators that may be written over an argument of equal size at the same address."""
_CONSTANT = -1
_SAME_BYTES = frozenset(["BITCAST", "EXPAND_DIMS", "RESHAPE", "SQUEEZE"])
"""Operators whose output has the bytes of the first argument: both may lie there at once."""


def audit(interpreter: Any) -> Audit:
    """Audits the memory of a TensorFlow Lite interpreter whose tensors are allocated.

    `interpreter` is one of `ai_edge_litert`, `tf.lite` or `tflite_runtime`, made without delegates: a delegate plans
    its own memory, which cannot be seen. Kernels' scratch buffers cannot be seen, either; `unseen` of the audit says
    what was left out.
    """
    operators = interpreter._get_ops_details()
    if delegates := [operator for operator in operators if "delegate" in operator["op_name"].lower()]:
        raise ValueError(
            f"{len(delegates)} delegate(s) run operators of the interpreter in memory of their own; make it with "
            "experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES"
        )
    details = {detail["index"]: detail for detail in interpreter.get_tensor_details()}
    read = {int(at) for operator in operators for at in operator["inputs"]} - {-1}
    made = {int(at) for operator in operators for at in operator["outputs"]} - {-1}
    inputs = {int(detail["index"]) for detail in interpreter.get_input_details()}
    outputs = [int(detail["index"]) for detail in interpreter.get_output_details()]
    places = {at: place for at, detail in details.items() if (place := _place(interpreter, detail)) is not None}
    followed = (read | made | inputs | set(outputs)) & set(places)
    names = {at: str(detail["name"]) or f"tensor {at}" for at, detail in details.items()}
    if len(set(names.values())) < len(names):
        names = {at: f"{name} (tensor {at})" for at, name in names.items()}
    shadow, faults, last = Shadow(), [], len(operators)
    # Tensors that may lie in the bytes of another one: views, and constants, since equal ones may be stored once.
    same = dict.fromkeys(followed - made - inputs, _CONSTANT)
    for at in sorted(followed - made, key=lambda at: (at in inputs, at)):
        text = "an input" if at in inputs else "a constant"
        shadow.write(0, *places[at], Written(same.get(at, at), names[at], -1, text))

    def check(step: int, name: str, at: int) -> Fault | None:
        begin, end = places[at]
        wrong = shadow.other_than(0, begin, end, {same.get(at, at)})
        return lost(step, name, names[at], end - begin, begin, wrong) if wrong is not None else None

    for step, operator in enumerate(operators):
        name = operator["op_name"]
        arguments = [int(at) for at in operator["inputs"] if int(at) in followed]
        results = [int(at) for at in operator["outputs"] if int(at) in followed]
        faults += [fault for at in dict.fromkeys(arguments) if (fault := check(step, name, at)) is not None]
        for result in results:
            begin, end = places[result]
            if name in _SAME_BYTES and arguments and places[arguments[0]] == (begin, end):
                same[result] = same.get(arguments[0], arguments[0])
                continue
            for at in dict.fromkeys(arguments):
                low, high = places[at]
                in_place = name in _ELEMENTWISE and (low, high) == (begin, end)
                if low < end and begin < high and not in_place:
                    faults.append(overwritten(step, name, names[result], names[at]))
            shadow.write(0, begin, end, Written(result, names[result], step, name))
    for at in [*(at for at in outputs if at in places), *sorted(followed - made - inputs)]:
        fault = check(last, "the end of the run" if at in outputs else "the next run", at)
        faults += [fault] if fault is not None else []
    arena = [places[at] for at in followed & made | followed & inputs]
    span = max((end for _, end in arena), default=0) - min((begin for begin, _ in arena), default=0)
    unseen = _unseen(interpreter, details, places, read | made | inputs)
    return Audit(faults, len(followed), len(operators), span, unseen)


def _has_numbers(detail: dict[str, Any]) -> bool:
    """False for strings and for handles of variables, which the interpreter must not be asked for."""
    return getattr(detail["dtype"], "__name__", "") not in ("object_", "bytes_", "str_")


def _place(interpreter: Any, detail: dict[str, Any]) -> tuple[int, int] | None:
    """The first byte of a tensor, and the byte after its last one; None if it has no bytes yet."""
    if not _has_numbers(detail):
        return None
    try:
        array = interpreter.tensor(detail["index"])()
    except (RuntimeError, ValueError):
        return None
    # A scalar comes as a number, whose bytes lie elsewhere.
    if not getattr(array, "shape", ()) or not array.nbytes:
        return None
    begin = int(array.__array_interface__["data"][0])
    return (begin, begin + int(array.nbytes)) if begin else None


def _unseen(interpreter: Any, details: dict[int, Any], places: dict[int, Any], used: set[int]) -> list[str]:
    texts = ["scratch buffers of kernels that the interpreter does not list"]
    if scratch := [at for at in details if at not in used and at in places]:
        texts.append(f"{len(scratch)} tensors that no operator lists, such as scratch buffers of kernels")
    absent = [at for at in used if at in details and at not in places]
    handles = [at for at in absent if not _has_numbers(details[at])]
    if handles:
        texts.append(f"{len(handles)} strings or variables, whose bytes lie outside the arena")
    scalars = [at for at in absent if at not in handles and not len(details[at]["shape"])]
    if scalars:
        texts.append(f"{len(scalars)} scalars, whose addresses Python cannot ask for")
    if unknown := len(absent) - len(handles) - len(scalars):
        texts.append(f"{unknown} tensors without bytes before the run, for example because only a run knows their sizes")
    graphs = getattr(interpreter, "num_subgraphs", lambda: 1)()
    if graphs > 1:
        texts.append(f"{graphs - 1} graphs inside operators, such as branches and loops")
    return texts
