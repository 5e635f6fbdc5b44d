"""Loops of exported programs: their graphs are planned in the workspace of the loop, and run there."""

import json

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._higher_order_ops.map import map as map_slices  # noqa: E402
from torch._higher_order_ops.scan import scan  # noqa: E402
from torch._higher_order_ops.while_loop import while_loop  # noqa: E402

import memplan  # noqa: E402
from memplan.torch import Planned, from_exported_program  # noqa: E402


class While(nn.Module):
    """The loop reads `x` and a parameter from around it, and a view of its result is read later."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        def condition(i, y):
            return (i < 3) & (y.abs().sum() > 0)

        def body(i, y):
            return i + 1, self.linear(y).relu() + x

        i, y = while_loop(condition, body, (torch.zeros((), dtype=torch.int64), x * 2))
        return y.view(8, 4).exp() + i


class Scan(nn.Module):
    def forward(self, x):
        scale = x.sum(dim=0)

        def step(state, row):
            state = state * scale + row.sin()
            return state, (state * 2).exp()

        last, rows = scan(step, x[0], x)
        return last + 1, rows * 2


class Map(nn.Module):
    def forward(self, x):
        bias = x[0] * 3
        return map_slices(lambda row, bias: (row.sin() + bias).exp(), x, bias) + 1


class Counted(nn.Module):
    """A state is an integer, which has no bytes."""

    def forward(self, x):
        i, y = while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, (y * 2).sin() + i), (0, x * 2))
        return y + i


class Expanded(nn.Module):
    """The elements of a slice lie in fewer bytes than they count."""

    def forward(self, x):
        last, rows = scan(lambda state, x: (state + x.sum(1).exp(), state * 2), x[0], x[:, :, None].expand(4, 8, 3))
        return last, rows, map_slices(lambda x: (x + 1).exp() * 2, x[:, None, :].expand(4, 3, 8))


def planned(model, x):
    program = torch.export.export(model, (x,))
    sequence = from_exported_program(program)
    plan = memplan.plan(sequence, alignment=64)
    assert plan.verify(execute=True) == []
    state, names = dict(model.named_parameters()), program.graph_signature.inputs_to_parameters
    lifted = program.constants
    constants = program.graph_signature.inputs_to_lifted_tensor_constants
    nodes = [node.name for node in program.graph.nodes if node.op == "placeholder"]
    given = lambda x: [  # noqa: E731
        state[names[n]].detach() if n in names else lifted[constants[n]] if n in constants else x for n in nodes
    ]
    return Planned(program.graph_module, plan), plan, sequence.operators, given


class Slices(nn.Module):
    """Both states and the slice lie in one tensor, and so does what the inner loop reads."""

    def forward(self, x):
        def step(states, row):
            def body(i, y):
                return i + 1, y * states[1].view(2, 4).t().contiguous().view(8) + row

            _, a = while_loop(lambda i, y: i < 2, body, (torch.zeros((), dtype=torch.int64), states[0].abs()))
            return (a + row, states[1] * 2), a * row

        (a, b), rows = scan(step, (x[0], x[1]), x)
        return a, b + 1, rows


MODELS = [(While, 2), (Scan, 1), (Map, 1), (Slices, 1), (Counted, 1), (Expanded, 2)]


@pytest.mark.parametrize(("model", "graphs"), MODELS)
def test_loops_run_in_the_arena(model, graphs, monkeypatch):
    torch.manual_seed(0)
    model, x = model(), torch.randn(4, 8)
    run, plan, names, given = planned(model, x)
    pools, needed = {}, {}
    for body in plan.bodies:
        workspace, size = plan.workspaces[body.operator], body.inputs + body.plan.pool_size
        assert body.inputs > 0
        needed[workspace] = max(size, needed.get(workspace, 0))
        begin = plan.offsets[workspace]
        if body.plan.pool_size:
            pool = run.arena[begin + body.inputs : begin + size]
            pools.setdefault(names[body.operator], []).append(pool)
    assert sum(map(len, pools.values())) == graphs
    assert all(plan.sizes[workspace] == size for workspace, size in needed.items())
    loop, loops = run.loop, []

    def watched(node):
        # Before the loop and after it, other tensors may lie there.
        for pool in pools[node.name]:
            pool.fill_(0xA5)
        result = loop(node)
        assert all((pool != 0xA5).any() for pool in pools[node.name])
        loops.append(node.name)
        return result

    monkeypatch.setattr(run, "loop", watched)
    for x in (x, -x, x * 3, x * 0):
        run.arena.fill_(0xA5)
        found, wanted = run.run(*given(x)), model(x)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        assert len(found) == len(wanted) and all(map(torch.equal, found, wanted))
    assert loops == [*pools] * 4


def test_what_a_loop_reads_around_it_is_kept():
    plan = memplan.plan(from_exported_program(torch.export.export(Scan(), (torch.randn(4, 8),))))
    (body,) = plan.bodies
    # Two rows are copied: the state and a slice.
    assert body.inputs == 2 * 32
    chunks = {chunk["name"]: chunk for chunk in json.loads(plan.to_json())["chunks"]}
    # An iteration reads it.
    assert chunks["sum_1"]["end"] > body.operator


def test_a_view_of_an_argument_that_is_a_view():
    # Inside the loop, the argument begins a storage of its own.
    class Parts(nn.Module):
        def forward(self, x):
            inner = lambda p: torch.cond(p.sum() > 0, lambda q: q[1:].exp(), lambda q: q[1:] * 2, (p[1:],)).sum()  # noqa: E731
            return map_slices(lambda row, p: p[1:].sum() + inner(p) + row, x, (x + 1)[1:])

    (body,) = memplan.plan(from_exported_program(torch.export.export(Parts(), (torch.randn(4, 8),)))).bodies
    found = [(t.supplied, t.offset) for name, t in body.plan.tensors.items() if ".slice" in name]
    inside = [(t.supplied, t.offset) for b in body.plan.bodies for name, t in b.plan.tensors.items() if ".slice" in name]
    assert set(found) == {("add", 64)} and inside == [("add", 96)] * 2


@pytest.mark.parametrize("argument", [0, 2])
def test_what_a_loop_returns_lies_in_none_of_its_arguments(argument):
    # torch refuses such a loop; a graph may have it all the same.
    program = torch.export.export(Scan(), (torch.randn(4, 8),))
    graph = program.graph_module.scan_combine_graph_0.graph
    given = [node for node in graph.nodes if node.op == "placeholder"][argument]
    output = graph.output_node()
    output.args = ((given, output.args[0][1]),)
    (body,) = memplan.plan(from_exported_program(program)).bodies
    copies = [tensor for name, tensor in body.plan.tensors.items() if name.endswith(" returned")]
    assert [copy.place for copy in copies] == ["pool"]
