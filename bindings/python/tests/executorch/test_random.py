"""Random programs run in ExecuTorch's runtime as in eager PyTorch, and its verifier accepts their plans.

`MEMPLAN_CASES` is the number of programs, for longer runs.
"""

import copy
import os

import pytest

torch = pytest.importorskip("torch", reason="torch and ExecuTorch are in an environment of their own: see install")
pytest.importorskip("executorch.exir", reason="ExecuTorch is in an environment of its own: see install")

from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer as load  # noqa: E402
from programs import accepted, edge, planned  # noqa: E402
from random_programs import Program  # noqa: E402

from memplan import Pool  # noqa: E402
from memplan.executorch import MemoryPlanningPass, audit  # noqa: E402

SETTINGS = [
    {},
    {"inplace": False, "remove_copies": False},
    {"remove_copies": False, "alignment": 64},
    {"pools": {1: Pool("a", capacity=900, cost=1), 2: Pool("b", cost=9)}},
    {"share_mutable_buffers": True},
    {"alloc_graph_input": False},
    {"strategy": "first-fit"},
]


@pytest.mark.parametrize("seed", range(int(os.environ.get("MEMPLAN_CASES", 16))))
def test_a_random_program_runs_as_in_eager(seed):
    model = Program(seed).eval()
    try:
        with torch.no_grad():
            program = edge(copy.deepcopy(model), *model.inputs(1.0), strict=False)
    except RuntimeError as error:
        pytest.skip(f"torch does not export it: {str(error).splitlines()[0]}")
    runs = [model.inputs(predicate) for predicate in (-1.5, 0.5, -0.5, 1.5, -1.5, 0.5)]
    eager = copy.deepcopy(model)
    with torch.no_grad():
        wanted = [[value.clone() for value in eager.eager(*inputs)] for inputs in runs]
    for settings in {0: {}, 1: SETTINGS[seed % len(SETTINGS)]}.values():
        ours = planned(program, MemoryPlanningPass(report=None, **settings))
        flags = {key: value for key, value in settings.items() if key.startswith("alloc")}
        accepted(ours, **flags, alloc_mutable_buffers=not settings.get("share_mutable_buffers"))
        assert (found := audit(ours)["forward"]), f"{found}\nwith {settings}:\n{model.text}"
        method = load(ours.buffer)
        for at, (inputs, right) in enumerate(zip(runs, wanted)):
            for found, value in zip(method.forward(inputs), right, strict=True):
                assert torch.allclose(found, value, atol=1e-4, rtol=1e-4), f"run {at} with {settings}:\n{model.text}"
