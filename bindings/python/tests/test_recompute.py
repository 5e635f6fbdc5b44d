"""Recomputing under a capacity."""

import pytest

import memplan


def test_operators_run_twice_so_that_a_step_fits():
    operators, above = [], "a8"
    for layer in range(1, 9):
        operators.append(memplan.Operator(f"f{layer}", [f"a{layer - 1}"], [memplan.Output(f"a{layer}", 100)], cost=2))
    for layer in range(8, 0, -1):
        reads = [above, f"a{layer - 1}"]
        operators.append(memplan.Operator(f"b{layer}", reads, [memplan.Output(f"g{layer}", 100)], once=True))
        above = f"g{layer}"
    step = memplan.Sequence(operators, inputs={"a0": 100}, outputs=["g1"])
    found = memplan.recompute(step, capacity=600)
    assert found.possible and found.plan.pool_size <= 600 and found.plan.verify(execute=True) == []
    assert (found.extra_cost, found.cost, found.runs) == (6, 30, [0, 1, 2]) and "runs twice" in str(found)
    refuted = memplan.recompute(step, capacity=200)
    assert (refuted.possible, refuted.peak_bound, refuted.plan) == (False, 300, None)
    with pytest.raises(ValueError, match="capacity"):
        memplan.recompute(step, capacity=-1)
