"""Operators that run sequences of their own: branches of a condition, bodies of loops."""

import json

import pytest

import memplan
from memplan import Operator, Output, Sequence


def branch(size, **result):
    """Makes its result in `y`, which is an output of the condition, unless it overwrites something else."""
    operands = ["t"] if "overwrites" in result else ["t", "y"]
    return Sequence(
        [
            Operator("first", [], [Output("t", size)]),
            Operator("last", operands, [Output("result", 16, **(result or {"updates": "y"}))]),
        ],
        weights={"y": 16},
        outputs=["result"],
    )


def condition(*bodies, **operator):
    return Sequence(
        [
            Operator("before", [], [Output("x", 32), Output("c", 8)]),
            Operator("if", ["c"], [Output("y", 16)], bodies=bodies, **operator),
            Operator("after", ["x", "y"], [Output("z", 8)]),
        ],
        outputs=["z"],
    )


def test_branches_make_one_value_in_the_same_workspace():
    sequence = condition(branch(64), branch(40))
    plan = memplan.plan(sequence, alignment=8)
    assert plan.pool_size == 32 + 8 + 16 + 64 and plan.proven_optimal
    assert plan.verify(execute=True) == memplan.verify(sequence, plan, alignment=8) == []
    assert [(body.operator, body.index, body.inputs) for body in plan.bodies] == [(1, 0, 0), (1, 1, 0)]
    for body, size in zip(plan.bodies, (64, 40)):
        assert body.plan.tensors["result"] == memplan.Tensor("result", 16, "supplied", 0, "y")
        assert (body.plan.pool_size, body.plan.offset("t"), body.plan.alignment) == (size, 0, 8)
        assert body.plan.verify(execute=True) == [] and body.plan.bodies == []
        assert "first" in body.plan.explain()
    workspace = plan.workspaces[1]
    assert plan.workspaces == [None, workspace, None] and plan.chunk_names[workspace] == "if.workspace"
    assert plan.sizes[workspace] == 64
    # Without `updates`, each branch has a result of its own, which the runtime must copy.
    copied = memplan.plan(condition(branch(64, overwrites="t"), branch(40, overwrites="t")), alignment=8)
    assert copied.pool_size == plan.pool_size and copied.bodies[1].plan.tensors["result"].place == "pool"
    apart = memplan.plan(condition(branch(64, overwrites=[]), branch(40, overwrites=[])), alignment=8)
    assert apart.pool_size == plan.pool_size + 16


def test_an_operator_has_workspace_of_its_own_beside_its_bodies():
    plan = memplan.plan(condition(branch(64), workspace=24))
    assert plan.sizes[plan.workspaces[1]] == 24 + 64


def test_a_loop_copies_its_state():
    body = Sequence(
        [
            Operator("exp", ["state", "w"], [Output("t", 60)]),
            Operator("abs", ["t"], [Output("next", 60, overwrites="t")]),
        ],
        inputs={"state": 60},
        outputs=["next"],
    )
    loop = Operator("loop", ["x", "w"], [Output("y", 60)], bodies=[body])
    sequence = Sequence([loop], inputs={"x": 60, "w": 4}, outputs=["y"])
    plan = memplan.plan(sequence, alignment=16)
    (body,) = plan.bodies
    assert (body.inputs, body.plan.pool_size) == (64, 64)
    assert body.plan.tensors["t"].place == "pool" and plan.sizes[plan.workspaces[0]] == 64 + 64
    assert body.plan.verify() == plan.verify(execute=True) == []
    supplied = memplan.plan(sequence, alignment=16, inputs_in_pool=True)
    assert supplied.bodies[0].plan.verify() == supplied.verify() == []


def test_files_keep_bodies():
    sequence = condition(branch(64), branch(40))
    assert Sequence.from_json(sequence.to_json()).to_json() == sequence.to_json()
    assert json.loads(sequence.to_json())["operators"][1]["bodies"][1]["operators"][0]["outputs"][0]["size"] == 40
    plan = memplan.plan(sequence)
    again = memplan.Plan.from_json(plan.to_json(), sequence)
    assert again.verify(execute=True) == [] and again.bodies[1].plan.tensors == plan.bodies[1].plan.tensors
    # One branch lies over the value that it makes: a wrong plan of a body is a wrong plan.
    wrong = json.loads(plan.to_json())
    wrong["bodies"][0]["plan"]["chunks"][0]["offset"] = 8
    assert memplan.Plan.from_json(json.dumps(wrong), sequence).verify() != []
    other = condition(branch(64))
    with pytest.raises(ValueError, match="operator 1 has no body 1"):
        memplan.Plan.from_json(plan.to_json(), other).bodies


def test_bodies_of_a_better_order():
    wide = Operator("wide", [], [Output("w", 1000)])
    sequence = Sequence(
        [wide, Operator("if", [], [Output("y", 16)], bodies=[branch(2000)]), Operator("sum", ["w"], [Output("s", 8)])],
        outputs=["y", "s"],
    )
    found = memplan.reorder(sequence)
    assert found.plan.pool_size < found.given.pool_size
    (body,) = found.plan.bodies
    assert found.sequence.operators[body.operator] == "if" and body.plan.pool_size == 2000


def test_wrong_bodies():
    with pytest.raises(ValueError, match="'result'"):
        condition(branch(8), branch(8, updates=("y", 8)))
    viewed = Operator("if", ["x"], [Output("y", 16, reads="x")], bodies=[branch(8)])
    with pytest.raises(ValueError, match="'y'"):
        Sequence([viewed], inputs={"x": 16})
    with pytest.raises(TypeError):
        Operator("if", bodies=[8])
    with pytest.raises(TypeError):
        Operator("if", bodies=branch(8))
    body = branch(8)
    with pytest.raises(ValueError, match="24 levels"):
        for _ in range(100):
            body = condition(body)
