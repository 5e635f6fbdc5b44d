"""Sequences, problems and plans as values: attributes, reprs, pickle, copy and ==; numbers in every form; errors."""

import copy
import inspect
import pickle
from array import array

import numpy as np
import pytest

import memplan
from memplan import Operator, Output, Pool, Problem, Sequence

PROBLEM = Problem(
    [(0, 2, 64), (1, 3, 128), (2, 4, 64)], [(2, 1)], alignment=16, names=["a", "b", "c"],
    pools=[Pool("sram", capacity=256, cost=1, reserved=[(0, 16)]), Pool("psram", cost=20)], traffic={0: 1000},
)  # fmt: skip


def condition():
    def branch(size):
        operators = [Operator("first", ["x"], [Output("t", size)]), Operator("last", ["t", "y"], [Output("r", 16, updates="y")])]
        return Sequence(operators, weights={"x": 32, "y": 16}, outputs=["r"])

    return Sequence([Operator("if", ["x"], [Output("y", 16)], bodies=[branch(64), branch(40)])], inputs={"x": 32}, outputs=["y"])


OUTPUTS = [
    Output("y", 4),
    Output("y", 4, overwrites="x"),
    Output("y", 4, overwrites=["x", ("z", 8)]),
    Output("y", 4, reads=("x", 16)),
    Output("y", 4, updates="x"),
    Output("y", 8, gathers=[("x", 0), ("z", 4)]),
    Output("it's", 4, overlaps=("x", 8)),
    Output("y", 12, gathers="x", holds=[("z", 4), ("w", 8)]),
]
OPERATORS = [
    Operator("a"),
    Operator("a", ["x", "w"], [Output("y", 4, reads="x")], kind="Conv", workspace=64, after=["b", 3], stream=1),
    Operator("only", [], [Output("y", 4)]),
]
VALUES = [*OUTPUTS, *OPERATORS, Pool("a"), Pool("b", capacity=64, alignment=16, cost=2, base=4096, reserved=[(0, 8)], largest=32)]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_repr_is_the_call_that_makes_the_value(value):
    assert eval(repr(value)) == value and hash(eval(repr(value))) == hash(value)
    others = [other for other in VALUES if other is not value]
    assert value not in others and value != 4 and value is not None


def every(sequence, hard):
    problems = [PROBLEM, Problem([(0, 2, 4)])]
    sequences = [sequence, condition(), Sequence([Operator("n", [], [Output("y", 8)])], outputs=["y"], dims={"n": (1, 8)})]
    plans = [memplan.plan(PROBLEM), memplan.plan(sequence, views=False), memplan.plan(condition(), alignment=16)]
    plans.append(memplan.plan(sequence, pools=[Pool("sram", capacity=64, cost=1), Pool("psram", cost=9)], pins={"a": ("psram", 64)}))
    return [*VALUES, *problems, *sequences, *plans]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))], ids=["copy", "deepcopy", "pickle"])
def test_pickle_and_copies_make_equal_values(again, sequence, hard):
    for value in every(sequence, hard):
        other = again(value)
        assert other == value and hash(other) == hash(value) and repr(other) == repr(value), value
        assert not other != value


def test_a_plan_that_was_pickled_answers_as_before(sequence):
    for plan in (memplan.plan(sequence, views=False, alignment=16), memplan.plan(condition()), memplan.plan(PROBLEM)):
        other = pickle.loads(pickle.dumps(plan))
        assert (str(other), other.explain(), other.verify(), list(other.offsets)) == (str(plan), plan.explain(), [], list(plan.offsets))
        assert other.tensors == plan.tensors and len(other.bodies) == len(plan.bodies) and other._repr_html_() == plan._repr_html_()


def test_different_values_are_not_equal(sequence):
    assert Problem([(0, 2, 4)]) != Problem([(0, 2, 8)]) != Problem([(0, 2, 8)], alignment=8)
    assert memplan.plan(PROBLEM) == memplan.plan(PROBLEM) != memplan.plan(PROBLEM, alignment=64)
    assert sequence == sequence.permuted([0, 1, 2, 3])
    assert sequence != condition() and sequence != Problem([(0, 2, 4)]) and len({PROBLEM, PROBLEM, sequence}) == 2


def test_a_model_that_pickle_would_not_keep_is_an_error(tmp_path):
    from pathlib import Path

    model = memplan.read(Path(__file__).parents[3] / "tests/models/mobilenet_v3_se_64_i8.tflite")
    with pytest.raises(TypeError, match="read the file again"):
        pickle.dumps(model)
    assert copy.copy(model) == model and memplan.plan(copy.deepcopy(model), alignment=16).arena


def test_operators_and_outputs_have_attributes():
    operator = OPERATORS[1]
    assert (operator.name, operator.kind, operator.inputs, operator.workspace, operator.after, operator.stream) == ("a", "Conv", ["x", "w"], 64, ["b", 3], 1)
    assert operator.bodies == [] and operator.outputs == [Output("y", 4, reads="x")]
    (output,) = operator.outputs
    assert (output.name, output.size, output.reads, output.overwrites) == ("y", 4, ("x", 0), [])
    assert OUTPUTS[2].overwrites == [("x", 0), ("z", 8)] and OUTPUTS[4].updates == ("x", 0)
    assert OUTPUTS[5].gathers == [("x", 0), ("z", 4)] and OUTPUTS[6].overlaps == [("x", 8)]
    assert OUTPUTS[7].gathers == [("x", 0)] and OUTPUTS[7].holds == [("z", 4), ("w", 8)]


def test_a_sequence_can_be_read_and_made_again(sequence):
    assert sequence.inputs == {"image": 602_112} and sequence.outputs == ["y"] and sequence.weights == {"w": None}
    assert sequence[0].workspace == 64 and sequence[-1].name == "gemm" and sequence[1].outputs[0].overwrites == [("a", 0)]
    assert [operator.name for operator in sequence] == sequence.operators
    with pytest.raises(IndexError, match="the sequence has 4 operators"):
        sequence[4]
    for one in (condition(), Sequence(list(sequence), inputs=sequence.inputs, outputs=sequence.outputs, weights=sequence.weights)):
        other = Sequence(list(one), inputs=one.inputs, outputs=one.outputs, weights=one.weights)
        assert other == one and memplan.plan(other) == memplan.plan(one)


@pytest.mark.parametrize("order", ["<", ">", "="])
@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_every_integer_dtype_and_byte_order(kind, order):
    chunks = np.array([[0, 2, 100], [1, 3, 50]], dtype=order + kind)
    assert Problem(chunks) == Problem([(0, 2, 100), (1, 3, 50)]) == Problem.from_arrays(*chunks.T)


def test_lists_of_lists_and_arrays_of_the_standard_library():
    assert Problem([[0, 2, 4]]) == Problem([(0, 2, 4)]) == Problem(np.array([[0, 2, 4]]).tolist())
    for letter in "bBhHiIlLqQ":
        assert Problem.from_arrays(array(letter, [0]), array(letter, [2]), array(letter, [4])) == Problem([(0, 2, 4)])


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Problem(np.array([[0, 2, 4.0]])), TypeError, "chunks: integers are needed, not elements of the type float64"),
        (lambda: Problem(np.array([[0, 2, 4]], dtype="f2")), TypeError, "elements of the type float16"),
        (lambda: Problem(np.array([[True]])), TypeError, "elements of the type bool"),
        (lambda: Problem.from_arrays(array("d", [0]), [1], [1]), TypeError, "begin: integers are needed, not elements of the type float64"),
        (lambda: Problem(np.array([[0, 2, -4]], dtype=">i2")), ValueError, "element 2 is -4, but must not be negative"),
        (lambda: memplan.plan([(0, 2, 4)]), TypeError, r"a Sequence or a Problem is needed, not \[\(0, 2, 4\)\]"),
        (lambda: memplan.verify(4, [0]), TypeError, "a Sequence or a Problem is needed, not 4"),
        (lambda: Problem([5]), TypeError, r"chunk 0 must be \(begin, end, size\), not 5"),
        (lambda: Problem([(0, 2)]), ValueError, r"chunk 0 must be \(begin, end, size\), not \(0, 2\)"),
        (lambda: Problem([(0, 2, "4")]), TypeError, "chunk 0: size must be an integer from 0 to 2.64 - 1, not '4'"),
        (lambda: Problem([(0, 2, -4)]), ValueError, "chunk 0: size must be an integer from 0 to 2.64 - 1, not -4"),
        (lambda: Output("y", 1.5), TypeError, "size must be an integer from 0 to 2.64 - 1, not 1.5"),
        (lambda: Output("y", 2**64), ValueError, "size must be an integer"),
        (lambda: Output("y", 4, overwrites=["x", ("z", "8")]), TypeError, "the offset in 'z' must be an integer from 0 to 2.64 - 1, not '8'"),
        (lambda: Output("y", 4, overwrites=("z", 8.5)), TypeError, "the offset in 'z' must be an integer from 0 to 2.64 - 1, not 8.5"),
        (lambda: memplan.plan(PROBLEM, inplace="no"), TypeError, "inplace must be True or False, not 'no'"),
        (lambda: memplan.plan(PROBLEM, effort="much"), TypeError, "effort must be an integer"),
        (lambda: memplan.read(__file__, format="yaml"), ValueError, "format is 'onnx', 'tflite', 'json', 'csv', 'pickle' or 'pte', not 'yaml'"),
        (lambda: memplan.Plan.from_json(memplan.plan(PROBLEM).to_json(), Problem([(0, 1, 9)])), ValueError, "the plan has 3 chunks, but the problem has 1"),
    ],
)
def test_errors_name_what_was_given(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_numbers_of_numpy_are_integers():
    assert Output("y", np.int32(4)) == Output("y", 4) and memplan.plan(PROBLEM, effort=np.uint8(9), views=np.bool_(True)) == memplan.plan(PROBLEM, effort=9)


@pytest.mark.parametrize("function", [Problem, Problem.from_arrays, memplan.plan, memplan.fit, memplan.verify, memplan.lower, memplan.read])
def test_signatures_are_full(function):
    names = list(inspect.signature(function).parameters)
    assert "constraints" not in names and "options" not in names
    if function in (Problem, Problem.from_arrays):
        assert {"pools", "pins", "only_in", "alignments", "traffic", "holes", "windows", "parts", "apart"} <= set(names)
