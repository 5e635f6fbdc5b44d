import pytest

import memplan


@pytest.fixture
def sequence():
    """A small network with a view and an output in place."""
    return memplan.Sequence(
        [
            memplan.Operator("conv", ["image", "w"], [memplan.Output("a", 1_605_632)], workspace=64),
            memplan.Operator("relu", ["a"], [memplan.Output("b", 1_605_632, overwrites="a")]),
            memplan.Operator("flatten", ["b"], [memplan.Output("c", 1_605_632, reads="b")]),
            memplan.Operator("gemm", ["c"], [memplan.Output("y", 4_000)]),
        ],
        inputs={"image": 602_112},
        outputs=["y"],
    )


@pytest.fixture
def hard():
    """A problem whose search does not end: every step is filled to the same height, so a plan at the lower bound would
    waste nothing."""
    state, ending, chunks = 1, {0: 1000}, []

    def number(below):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % below

    while len(chunks) < 400:
        step = min(ending)
        free = ending.pop(step)
        while free:
            size, end = min(free, 1 + number(100)), step + 1 + number(40)
            chunks.append((step, end, size))
            ending[end] = ending.get(end, 0) + size
            free -= size
    return memplan.Problem(chunks)
