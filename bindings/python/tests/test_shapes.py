"""Sizes of dimensions that a model leaves open, and plans for several of them."""

import gc
import json
import sys
from pathlib import Path
from types import MappingProxyType

import pytest

import memplan
from memplan import Operator, Output, Sequence

MODELS = Path(__file__).parents[3] / "tests"
HEADS = MODELS / "models" / "heads.onnx"
DYNAMIC = MODELS / "fixtures" / "dynamic.onnx"


def test_open_sizes_are_given_when_a_model_is_read():
    with pytest.raises(ValueError, match="a size is not known before the run"):
        memplan.read(DYNAMIC, dims={"batch": 1, "height": 4}, default_dim=8)
    shapes = {"m": [4, None]}
    size = lambda **options: memplan.plan(memplan.read(DYNAMIC, **options)).pool_size  # noqa: E731
    small = size(dims={"batch": 1, "height": 4}, default_dim=8, shapes=shapes)
    assert small < size(dims={"batch": 2, "height": 4}, default_dim=8, shapes=shapes)
    assert small < size(dims={"batch": 1, "height": 4}, default_dim=16, shapes=shapes)
    assert small < size(dims={"batch": 1, "height": 4}, default_dim=8, shapes={"m": [64, 64]})


def test_a_plan_for_a_range_is_verified_for_one_size():
    ranged = memplan.read(HEADS, dims={"batch": (2, 4)})
    assert ranged.dims == {"batch": (2, 4)} and memplan.read(HEADS, dims={"batch": 3}).dims == {}
    plan, better = memplan.plan(ranged), memplan.reorder(ranged)
    assert plan.dims == better.plan.dims == {"batch": (2, 4)} and plan.verify() == []
    for batch in (2, 3, 4):
        one = memplan.read(HEADS, dims={"batch": batch})
        one = memplan.read(HEADS, dims={"batch": batch}, copies=memplan.copied_views(one, plan))
        assert memplan.verify(one, plan, smaller=True) == []
        assert memplan.verify(one.in_order_of(better.sequence), better.plan, smaller=True) == []
        assert batch == 4 or memplan.verify(one, plan) != []
    assert memplan.verify(memplan.read(HEADS, dims={"batch": 5}), plan, smaller=True) != []
    assert memplan.verify(memplan.read(HEADS, dims={"batch": 3}), better.plan, smaller=True) != []
    with pytest.raises(TypeError, match="smaller is for the sizes of a sequence"):
        memplan.verify(memplan.lower(ranged), plan, smaller=True)


def rows(n, **options):
    """Up to `n` rows."""
    view = Output("v", 8 * n, reads="x") if n == 1 else Output("v", 8 * n)
    operators = [
        Operator("a", ["w"], [Output("x", 16 * n)]),
        Operator("b", ["x"], [view]),
        Operator("c", ["v"], [Output("y", 4 * n)]),
    ]
    return Sequence(operators, weights={"w": 64}, outputs=["y"], **options)


def test_a_sequence_states_the_sizes_that_it_is_right_for():
    sequence = rows(4, dims={"n": (1, 4), "m": 3})
    assert sequence.dims == {"n": (1, 4), "m": (3, 3)} == rows(4, dims=MappingProxyType(sequence.dims)).dims
    assert Sequence.from_json(sequence.to_json()).dims == sequence.dims
    plan = memplan.plan(sequence)
    assert json.loads(plan.to_json())["dims"]["n"] == [1, 4] and plan.dims == sequence.dims
    assert memplan.verify(rows(3), plan, smaller=True) == []
    assert memplan.copied_views(rows(1), plan) == ["v"] and memplan.copied_views(rows(2), plan) == []


def test_weights_may_lie_in_the_pool():
    plan = memplan.plan(rows(4), weights_in_pool=True)
    assert plan.tensors["w"].place == "pool" and plan.pool_size == 64 + 64 + 32
    with pytest.raises(ValueError, match="'w'"):
        memplan.plan(Sequence([Operator("a", ["w"], [Output("y", 8)])], weights={"w": None}), weights_in_pool=True)


def test_plans_are_kept_by_shape():
    plans, made = memplan.PlanCache(), []

    def plan(n):
        made.append(n)
        return memplan.plan(rows(n))

    for n, m in [(8, 2), (2, 2), (8, 2), (4, 9)]:
        assert plans.get_or_plan((n, m), lambda: plan(n)) is plans[n, m]
    assert made == [8, 2, 4] and len(plans) == 3 and list(plans) == [(2, 2), (4, 9), (8, 2)]
    assert plans.pool_size == plans[8, 2].pool_size > plans[[4, 9]].pool_size
    shape, larger = plans.dominating((3, 1))
    assert shape == (4, 9) and memplan.verify(rows(3), larger, smaller=True) == []
    assert plans.dominating([8, 1]) == ((8, 2), plans[8, 2])
    assert plans.dominating((9, 1)) is None and plans.dominating((1,)) is None
    with pytest.raises(ZeroDivisionError):
        plans.get_or_plan((1, 1), lambda: 1 // 0)
    assert len(plans) == 3 and memplan.PlanCache().pool_size == 0
    assert (8, 2) in plans and [8, 2] in plans and (8,) not in plans and 5 not in plans and "ab" not in plans
    for shape in ((1, 1), (5,), (), [7]):
        with pytest.raises(KeyError) as error:
            plans[shape]
        assert error.value.args == (shape,)


@pytest.mark.parametrize(("shape", "error"), [(5, TypeError), ((8, "rows"), TypeError), ((-1,), ValueError), ((2**64,), ValueError)])
def test_shapes_are_tuples_of_sizes(shape, error):
    plans = memplan.PlanCache()
    plans.get_or_plan((2, 2), lambda: memplan.plan(rows(2)))
    for use in (lambda: plans.get_or_plan(shape, lambda: 1 // 0), lambda: plans.dominating(shape), lambda: plans[shape]):
        with pytest.raises(error, match="the shape"):
            use()
    assert list(plans) == [(2, 2)]


def test_a_cache_keeps_plans():
    plans, plan = memplan.PlanCache(), memplan.plan(rows(2))
    with pytest.raises(TypeError, match=r"make\(\) must return a Plan, not 8"):
        plans.get_or_plan((2,), lambda: 8)
    # A plan may be made with the plans of others.
    inner = lambda: plans.get_or_plan((1,), lambda: plan)  # noqa: E731
    assert plans.get_or_plan((2,), inner) is plan and list(plans) == [(1,), (2,)]


class Kept(memplan.PlanCache):
    """A cache of one's own."""

    def plan(self, n):
        return self.get_or_plan((n,), lambda: memplan.plan(rows(n)))


@pytest.mark.parametrize(
    "use",
    [
        lambda plans, shape: plans[shape] is plans[1,],
        lambda plans, shape: shape in plans,
        lambda plans, shape: plans.dominating(shape) == ((1,), plans[1,]),
        lambda plans, shape: plans.get_or_plan(shape, lambda: 1 // 0) is plans[1,],
    ],
)
def test_a_shape_may_use_the_cache_while_it_is_read(use):
    class Size:
        def __index__(self):
            plans.plan(1)
            return 1

    plans = Kept()
    assert use(plans, (Size(),)) and list(plans) == [(1,)]
    plans = Kept()
    assert use(plans, (size for size in [Size()])) and list(plans) == [(1,)]


def test_garbage_may_use_the_cache_while_it_is_collected(monkeypatch):
    class Garbage:
        def __init__(self):
            self.itself = self

        def __del__(self):
            kept.append(plans.get_or_plan((10**6 + len(kept),), lambda: plan))

    plans, plan, kept, errors = memplan.PlanCache(), memplan.plan(rows(2)), [], []
    for n in range(5000):
        plans.get_or_plan((n,), lambda: plan)
    monkeypatch.setattr(sys, "unraisablehook", lambda error: errors.append(error.exc_value))
    thresholds = gc.get_threshold()
    gc.collect()
    gc.disable()
    try:
        Garbage()
        # It is collected amid the shapes that are listed.
        gc.set_threshold(gc.get_count()[0] + 2000)
        gc.enable()
        list(plans)
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)
        gc.collect()
    assert errors == [] and kept == [plan]


def test_waits_are_not_those_of_several_sizes(sequence):
    plan = memplan.plan(sequence)
    with pytest.raises(TypeError, match="without smaller"):
        memplan.verify(sequence, plan, smaller=True, waits=[[] for _ in sequence.operators])


def test_a_model_is_read_with_what_its_file_does_not_state():
    model = MODELS / "models" / "encoder.onnx"
    read = lambda **options: memplan.read(model, **options)  # noqa: E731
    given = memplan.plan(read(), alignment=64).pool_size
    assert memplan.plan(read(keep=["/l.0.1/MatMul_output_0"]), alignment=64).pool_size > given
    assert memplan.plan(read(scratch={"MatMul": 4096, "/l.0.1/MatMul": [2**20]}), alignment=64).pool_size > 2**20
    operators = json.loads(read(scratch={"MatMul": 64}).to_json())["operators"]
    assert {operator.get("workspace") for operator in operators if operator["kind"] == "MatMul"} == {64}
    name = json.loads(read().to_json())["inputs"][0]["name"]
    for options, words in [
        ({"scratch": {"Einsum": 8}}, "no operator of the model has the name or the type 'Einsum'"),
        ({"keep": ["nothing"]}, "is called 'nothing'"),
        ({"types": {"nothing": "float"}}, "is called 'nothing'"),
        ({"states": {name: "nothing"}}, "is called 'nothing'"),
        ({"values": {name: [1, 2]}}, "the value given for"),
        ({"values": {name: (True, 2.5)}}, "true, 2.5"),
    ]:
        with pytest.raises(ValueError, match=words):
            read(**options)
    with pytest.raises(ValueError, match="values is for ONNX models"):
        memplan.read(MODELS / "fixtures" / "tied.json", values={"x": 1})


def test_scratch_of_a_microcontroller_is_stated():
    model = MODELS / "models" / "mobilenet_v3_se_64_i8.tflite"
    stated = memplan.read(model, scratch={"CONV_2D": 2**20, 0: [64, 64]})
    assert memplan.plan(stated, alignment=16).pool_size > 2**20
    with pytest.raises(ValueError, match="scratch"):
        memplan.read(model, scratch={"CONV_2D": []})
