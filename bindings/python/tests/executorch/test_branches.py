"""The branches of `torch.cond` are planned, and run in the arena with equal bits."""

import pytest

torch = pytest.importorskip("torch", reason="torch is in an environment of its own: see install")

from modules import Function  # noqa: E402
from torch import nn  # noqa: E402

import memplan  # noqa: E402
from memplan.torch import Planned, from_exported_program, in_order  # noqa: E402


class Branches(nn.Module):
    """Results are made by the last operator of a branch, returned as views, and made elsewhere in the other branch."""

    def forward(self, x):
        def positive(x):
            wide = torch.cat([x, x.sin(), x.cos()], dim=1).exp()
            return wide.sum(dim=1, keepdim=True) + x, wide[:, 8:24].clone()

        def negative(x):
            part = (x * 3).relu()
            return part.t().reshape(16, 4).t(), torch.tanh(x)[:, :16]

        y, z = torch.cond(x.sum() > 0, positive, negative, (x.relu() + x,))
        return (y * 2 + z).sigmoid()


class Nested(nn.Module):
    """A branch returns what a condition in it returns."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 48), nn.Linear(48, 16)

    def forward(self, x):
        def outer(x):
            h = self.first(x).relu()
            return torch.cond(h.sum() > 40, lambda h, x: self.second(h.sin() * 2), lambda h, x: (x * x).cos() + x, (h, x))

        before = x * 5
        return torch.cond(x[0, 0] > 0, outer, lambda x: x.exp() + 1, (x,)) + before


def run(model, x, inplace, core):
    program = torch.export.export(model.eval(), (x,))
    if core:
        program = program.run_decompositions()
    sequence = from_exported_program(program, inplace=inplace)
    plan = memplan.plan(sequence, alignment=64)
    assert plan.verify(execute=True) == []
    signature = program.graph_signature
    state = dict(model.named_parameters())
    names = [node.name for node in program.graph.nodes if node.op == "placeholder"]
    given = lambda x: [state[signature.inputs_to_parameters[n]].detach() if n in signature.inputs_to_parameters else x for n in names]  # noqa: E731
    return program.graph_module, sequence, plan, given


@pytest.mark.parametrize("core", [False, True])
@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("model", [Branches, Nested])
def test_branches_run_in_the_arena(model, inplace, core):
    torch.manual_seed(0)
    model, x = model(), torch.randn(4, 16)
    graph_module, sequence, plan, given = run(model, x, inplace, core)
    planned = Planned(graph_module, plan)
    workspaces = [slice(plan.offsets[at], plan.offsets[at] + plan.sizes[at]) for at in plan.workspaces if at is not None]
    used = set()
    for x in (x.abs(), -x.abs(), x.abs() * 9, x.abs() / 9):
        planned.arena.fill_(0xA5)
        found, wanted = planned.run(*given(x)), model(x)
        for a, b in zip(torch.utils._pytree.tree_leaves(found), torch.utils._pytree.tree_leaves(wanted)):
            assert torch.equal(a, b)
        written = {at for at, bytes in enumerate(workspaces) if (planned.arena[bytes] != 0xA5).any()}
        assert written
        used |= written
    assert len(used) == len(workspaces)
    found = memplan.reorder(sequence, alignment=64)
    better = Planned(in_order(graph_module, found.sequence), found.plan)
    assert torch.equal(torch.utils._pytree.tree_leaves(better.run(*given(x)))[0], model(x))


def test_what_branches_share():
    class Model(nn.Module):
        def forward(self, x):
            def wide(x):
                return torch.cat([x] * 8, dim=1).exp().sum(dim=1)

            def narrow(x):
                return torch.cat([x] * 4, dim=1).sin().sum(dim=1)

            return torch.cond(x.sum() > 0, wide, narrow, (x,)) * 2

    _, _, plan, _ = run(Model(), torch.ones(64, 16), False, False)
    wide, narrow = plan.bodies
    assert wide.plan.pool_size == 2 * 8 * 4096 and narrow.plan.pool_size == 2 * 4 * 4096
    assert plan.sizes[plan.workspaces[wide.operator]] == wide.plan.pool_size
    # The sum, its comparison and the result, of 64 numbers each at most, lie beside one of the branches.
    assert plan.pool_size <= wide.plan.pool_size + 4 * 256
    for body, prefix in ((wide, "true"), (narrow, "false")):
        assert body.plan.tensors[f"{prefix}_graph_0.sum_1"].supplied == "cond.0"


def test_some_of_the_bytes_of_a_storage_are_copied():
    class Model(nn.Module):
        def forward(self, x):
            def some(x):
                return torch.cat([x.exp(), x])[:4], x.sin().reshape(16, 4)

            def others(x):
                return torch.cat([x, x.cos()])[:4], x.tan().reshape(16, 4)

            y, z = torch.cond(x.sum() > 0, some, others, (x,))
            return y.reshape(16, 4) + z

    x = torch.ones(4, 16)
    graph_module, _, plan, given = run(Model(), x, False, False)
    for body, whole, copy in zip(plan.bodies, ("true_graph_0.sin", "false_graph_0.tan"), ("true", "false")):
        tensors = body.plan.tensors
        assert tensors[whole].supplied == "cond.1"
        assert tensors[f"{copy}_graph_0.slice_1 in cond.0"].supplied == "cond.0"
        assert tensors[f"{copy}_graph_0.cat"].place == "pool"
    for x in (x, -x):
        assert torch.equal(Planned(graph_module, plan).run(*given(x))[0], Model()(x))


def chosen(predicate, yes, no, arguments):
    """A condition as usual code has it: without export, torch refuses arguments that share memory or are written."""
    return (yes if predicate else no)(*arguments)


def one_view(x, cond):
    h = torch.cat([x, x * 2])
    return cond(x.sum() > 0, lambda a: a.view(-1).exp(), lambda a: a.view(-1).neg(), (h[4:],)).sum() + h[:4]


def two_views_of_one_tensor(x, cond):
    a, b = (x + 1).split(2)
    branches = (lambda b, a: a.view(-1) + b.view(-1) * 2, lambda b, a: (a * 3 - b.view(2, 16)).view(-1))
    return cond(x.sum() > 0, *branches, (b, a)).sum() + x * 3


def transposed_view(x, cond):
    view = (x + 1)[1:].t()
    return cond(x.sum() > 0, lambda a: a.t()[1:].exp(), lambda a: a.t()[1:] * 2, (view,)).sum() + x * 3


def view_of_a_view(x, cond):
    def outer(a):
        inner = lambda b: b[1:].view(-1) * 2  # noqa: E731
        return cond(a.max() > 2, inner, lambda b: b[1:].view(-1).exp(), (a[1:],)).sum() + a

    return cond(x.sum() > 0, outer, lambda a: a.view(-1).view(3, 16).neg(), ((x + 1)[1:],)).sum() + x * 3


@pytest.mark.parametrize("core", [False, True])
@pytest.mark.parametrize("function", [one_view, two_views_of_one_tensor, transposed_view, view_of_a_view])
def test_views_as_arguments_of_conditions(function, core):
    if core and function is two_views_of_one_tensor:
        pytest.skip("torch decomposes no condition with arguments that share memory")
    class Model(nn.Module):
        def forward(self, x):
            return function(x, torch.cond)

    torch.manual_seed(0)
    x = torch.randn(4, 16)
    with torch.no_grad():
        graph_module, _, plan, given = run(Model(), x, False, core)
    for x in (x.abs(), -x.abs(), x.abs() * 9):
        assert torch.equal(Planned(graph_module, plan).run(*given(x))[0], function(x, chosen))


def writes_an_argument(x, cond):
    def written(y):
        y.add_(1)
        return y.sin()

    before = x.exp()
    copies, other = torch.cat([before] * 64), torch.cat([x] * 64).sum()
    return cond(x.sum() > 0, written, lambda y: y * 2, (before,)).sum() + copies.sum() + other


def test_a_branch_writes_an_argument():
    class Model(nn.Module):
        def forward(self, x):
            return writes_an_argument(x, torch.cond)

    x = torch.randn(4, 16)
    with torch.no_grad():
        graph_module, sequence, plan, given = run(Model(), x, False, False)
    found = memplan.reorder(sequence, alignment=64)
    assert found.sequence.operators != sequence.operators
    for planned in (Planned(graph_module, plan), Planned(in_order(graph_module, found.sequence), found.plan)):
        for x in (x.abs(), -x.abs()):
            assert torch.equal(planned.run(*given(x))[0], writes_an_argument(x, chosen))


@pytest.mark.parametrize("writes", [False, True])
def test_readers_move_across_a_branch_that_only_reads(writes):
    def forward(x):
        before = x.exp()
        yes = lambda y: (y.add_(1) if writes else y).sin()  # noqa: E731
        return before.cos(), torch.cond(x.sum() > 0, yes, lambda y: y * 2, (before,))

    with torch.no_grad():
        _, sequence, _, _ = run(Function(forward), torch.randn(4, 16), False, False)
    order = list(range(len(sequence)))
    order.insert(sequence.operators.index("cond"), order.pop(sequence.operators.index("cos")))
    if writes:
        with pytest.raises(ValueError, match="cos"):
            sequence.permuted(order)
    else:
        assert sequence.permuted(order).operators[-1] == "cos"


def planted(change):
    """A program of a condition whose first branch is changed, as torch does not make it."""
    def forward(x):
        yes = lambda a, b: (a.sin(), b.cos())  # noqa: E731
        return torch.cond(x.sum() > 0, yes, lambda a, b: (a * 2, b * 3), (x.exp(), x.tanh()))

    program = torch.export.export(Function(forward), (torch.ones(4, 16),), strict=False)
    change(program.graph_module.true_graph_0.graph)
    return program


def test_arguments_that_share_memory_in_the_branch_alone_are_refused():
    def change(graph):
        a, b, *_ = graph.nodes
        b.meta["val"] = a.meta["val"]

    with pytest.raises(ValueError, match="true_graph_0.*: it shares memory with another argument in the branch or loop, but not around it"):
        from_exported_program(planted(change))


def test_a_tensor_that_a_branch_returns_twice_is_copied():
    def change(graph):
        output = graph.output_node()
        output.args = ((output.args[0][0],) * 2,)

    program = planted(change)
    plan = memplan.plan(from_exported_program(program), alignment=64)
    assert plan.bodies[0].plan.tensors["true_graph_0.sin"].supplied == "cond.0"
    assert plan.bodies[0].plan.tensors["true_graph_0.sin in cond.1"].supplied == "cond.1"
    x = torch.ones(4, 16)
    assert all(torch.equal(found, x.exp().sin()) for found in Planned(program.graph_module, plan).run(x))
