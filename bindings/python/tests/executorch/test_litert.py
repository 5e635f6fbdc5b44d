"""Audits of TensorFlow Lite interpreters: their plans have no fault, and planted faults are named with both tensors."""

from pathlib import Path

import pytest

import memplan

litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is in an environment of its own: see install")
PLAIN = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
SHARED = Path(__file__).parents[5] / "shared" / "data" / "tflite" / "models"
LITERT = sorted([*(Path(__file__).parents[4] / "tests" / "models").glob("*.tflite"), *SHARED.glob("*.tflite")])


def interpreter(path, resolver=PLAIN):
    made = litert.Interpreter(model_path=str(path), experimental_op_resolver_type=resolver)
    made.allocate_tensors()
    return made


@pytest.mark.parametrize("path", LITERT, ids=lambda path: path.stem)
def test_an_interpreters_plan_has_no_fault(path):
    try:
        made = interpreter(path)
    except RuntimeError as error:
        pytest.skip(f"the interpreter does not take it: {error}")
    found = memplan.audit(made)
    assert found and found.tensors and found.bytes > 0, str(found)
    assert "not seen: scratch buffers of kernels that the interpreter does not list" in str(found)


class Moved:
    """An interpreter with some of its tensors elsewhere."""

    def __init__(self, made, moves):
        self.made, self.moves = made, moves

    def __getattr__(self, name):
        return getattr(self.made, name)

    def tensor(self, at):
        array = self.made.tensor(at)()
        if at not in self.moves:
            return lambda: array
        description = array.__array_interface__ | {"data": (self.moves[at], False)}
        return lambda: type("At", (), {"__array_interface__": description, "shape": array.shape, "nbytes": array.nbytes})


def residual(made):
    """A sum in the model: its operator's place, a first argument that is made long before, and a tensor made in between."""
    operators = made._get_ops_details()
    maker = {int(at): step for step, operator in enumerate(operators) for at in operator["outputs"]}
    for step, operator in enumerate(operators):
        old = [int(at) for at in operator["inputs"] if maker.get(int(at), step) < step - 2]
        if operator["op_name"] == "ADD" and old:
            return step, old[0], int(operators[maker[old[0]] + 2]["outputs"][0])
    raise AssertionError("the model has no sum of an old tensor")


def address(made, at):
    return made.tensor(at)().__array_interface__["data"][0]


def model(name):
    (path,) = [path for path in LITERT if path.stem == name][:1]
    return path


def test_a_tensor_over_the_old_argument_of_a_sum_is_named():
    made = interpreter(model("mobilenet_v3_se_64_i8"))
    step, old, between = residual(made)
    found = memplan.audit(Moved(made, {between: address(made, old)}))
    names = {detail["index"]: detail["name"] for detail in made.get_tensor_details()}
    assert not found
    assert any((fault.step, fault.operator, fault.tensor, fault.other) == (step, "ADD", names[old], names[between]) for fault in found.faults), str(found)


def test_an_input_over_a_weight_is_named():
    made = interpreter(model("mobilenet_v3_se_64_i8"))
    (given,) = made.get_input_details()
    weight = next(int(at) for at in made._get_ops_details()[0]["inputs"] if int(at) != given["index"] and made.tensor(int(at))().ndim == 4)
    found = memplan.audit(Moved(made, {int(given["index"]): address(made, weight)}))
    assert any(fault.other == given["name"] for fault in found.faults), str(found)


def test_a_convolution_over_its_input_is_named():
    made = interpreter(model("mobilenet_v3_se_64_i8"))
    step, operator = next((step, operator) for step, operator in enumerate(made._get_ops_details()) if operator["op_name"] == "CONV_2D" and step)
    source, result = int(operator["inputs"][0]), int(operator["outputs"][0])
    found = memplan.audit(Moved(made, {result: address(made, source)}))
    assert any(fault.step == step and "CONV_2D" in fault.text and fault.text.endswith("while it reads it") for fault in found.faults), str(found)


def test_delegates_are_an_error():
    with pytest.raises(ValueError, match="delegate.*BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
        memplan.audit(Delegated(interpreter(model("mobilenet_v3_se_64_i8"))))


class Delegated:
    """An interpreter that runs its last operator in a delegate."""

    def __init__(self, made):
        self.made = made

    def __getattr__(self, name):
        return getattr(self.made, name)

    def _get_ops_details(self):
        return [*self.made._get_ops_details(), {"op_name": "TfLiteXNNPackDelegate", "inputs": [], "outputs": []}]
