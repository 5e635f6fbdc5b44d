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
    """A problem whose search takes long: many sizes without a common divisor."""
    chunks = []
    state = 1
    for _ in range(400):
        state = state * 6364136223846793005 % 2**64
        begin = (state >> 33) % 60
        chunks.append((begin, begin + 2 + (state >> 40) % 20, 1 + (state >> 17) % 9973))
    return memplan.Problem(chunks)
