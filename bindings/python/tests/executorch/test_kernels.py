"""The table of kernels that may work in place: every line runs so in ExecuTorch's runtime."""

import pytest

torch = pytest.importorskip("torch", reason="torch and ExecuTorch are in an environment of their own: see install")
pytest.importorskip("executorch.exir", reason="ExecuTorch is in an environment of its own: see install")

from executorch.exir import EdgeCompileConfig, to_edge  # noqa: E402
from executorch.exir.passes import MemoryPlanningPass as GreedyPass  # noqa: E402
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer as load  # noqa: E402
from programs import Net, accepted, edge, image, planned  # noqa: E402
from torch import nn  # noqa: E402

from memplan._executorch_state import UPDATES  # noqa: E402
from memplan.executorch import MemoryPlanningPass, audit, portable_kernels, read_kernels  # noqa: E402


UNARY = {
    "clamp": lambda x: torch.clamp(x, -1, 1),
    "elu": nn.functional.elu,
    "gelu": nn.functional.gelu,
    "hardtanh": nn.functional.hardtanh,
    "leaky_relu": nn.functional.leaky_relu,
    "_softmax": lambda x: torch.softmax(x, dim=-1),
    "bitwise_not": torch.bitwise_not,
    "logical_not": torch.logical_not,
    "masked_fill": lambda x: torch.masked_fill(x, torch.tensor([True]), 3.0),
    "rsub": lambda x: torch.rsub(x, 2.0),
    "native_layer_norm": lambda x: torch.layer_norm(x, [x.shape[-1]]),
    "_native_batch_norm_legit_no_training": lambda x: torch.batch_norm(
        x[None], None, None, torch.full((1,), 0.5), torch.full((1,), 2.0), False, 0, 1e-5, False
    ),
}
BOOLS = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "logical_and", "logical_or", "logical_xor", "logical_not"} | {
    "eq", "ge", "gt", "le", "lt", "ne"
}  # fmt: skip


# Export makes other operators of these unless it is told to keep them. It adds to the list that it is given.
KEPT = [
    torch.ops.aten.floor_divide.default,
    torch.ops.aten.logit.default,
    torch.ops.aten.masked_fill.Scalar,
    torch.ops.aten.rsub.Scalar,
]


@pytest.mark.parametrize("name", [line.split("::")[1] for line in portable_kernels() if line not in UPDATES])
def test_every_kernel_of_the_table_in_place(name):
    def forward(_, *inputs):
        results = []
        for x in inputs:
            a = torch.logical_not(x > 0) if name in BOOLS else x * 1.5
            if name == "_native_batch_norm_legit_no_training":
                a = a[None, None] * 1.5
                results.append(torch.batch_norm(a, None, None, torch.full((1,), 0.5), torch.full((1,), 2.0), False, 0, 1e-5, False))
            elif name in UNARY:
                results.append(UNARY[name](a))
            elif name == "where":
                results += [torch.where(x > 0, a, x), torch.where(x > 0, x, x * 2.5)]
            elif len(portable_kernels()[f"aten::{name}"]) == 2:
                function = getattr(torch, name)
                b = (x[:1] if x.numel() > 1 else x) > 1 if name in BOOLS else (x[:1] if x.numel() > 1 else x).abs() + 1
                results += [function(a, b), function(b, torch.logical_not(x > 1) if name in BOOLS else x.abs() * 2.5 + 1)]
            else:
                results.append(getattr(torch, name)(a))
        return tuple(results)

    inputs = tuple(torch.linspace(0.01, 0.6, size) * (1 if name in {"log", "log2", "log10", "log1p", "logit", "sqrt", "rsqrt", "acosh"} else -1) for size in (1, 7, 8, 9, 4097))
    exported = torch.export.export(Net(forward).eval(), inputs)
    program = to_edge(exported, compile_config=EdgeCompileConfig(preserve_ops=list(KEPT)))
    memory_pass = MemoryPlanningPass(report=None, remove_copies=False, kernels={f"aten::{name}": portable_kernels()[f"aten::{name}"]})
    ours, theirs = planned(program, memory_pass), planned(program, GreedyPass())
    assert any(str(node.target).startswith(f"aten.{name}.") for node in theirs.exported_program().graph.nodes)
    assert memory_pass.reports[0].in_place >= 4, "nothing lies in place"
    accepted(ours)
    mine, others = load(ours.buffer).forward(inputs), load(theirs.buffer).forward(inputs)
    torch.testing.assert_close(mine, others, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("text", ["aten::relu", "aten::relu x", "aten::relu 0\naten::relu 0"])
def test_a_wrong_table_is_refused(text):
    with pytest.raises(ValueError, match="line"):
        read_kernels(text)


def test_a_table_may_be_the_users_own():
    assert read_kernels("# none\nkernels mine: 1\nmine::act 0 2\n") == {"mine::act": (0, 2)}
    memory_pass = MemoryPlanningPass(kernels={}, report=None)
    planned(edge(Net(lambda _, x: torch.tanh(torch.exp(x))), image(16, 16)), memory_pass)
    assert memory_pass.reports[0].in_place == 0


def test_keyword_arguments_are_read_as_well():
    # The kernel reads all of the gate for each element that it writes.
    library = torch.library.Library("memplan_kernels", "DEF")
    library.define("gated(Tensor x, *, Tensor gate) -> Tensor")
    library.define("gated.out(Tensor x, *, Tensor gate, Tensor(a!) out) -> Tensor(a!)")
    library.impl("gated", lambda x, gate: x * gate.sum(), "CompositeExplicitAutograd")
    library.impl("gated.out", lambda x, gate, out: out.copy_(x * gate.sum()), "CompositeExplicitAutograd")
    table = {"memplan_kernels::gated": (0,)}

    def forward(_, x):
        y = x * 2
        return torch.ops.memplan_kernels.gated(y, gate=y.unsqueeze(0).clone())

    ours = planned(edge(Net(forward), image(8, 8)), MemoryPlanningPass(kernels=table, report=None))
    assert (found := audit(ours, kernels=table)["forward"]), str(found)
