"""Branches and loops in the arena of the graph around them, and several arenas."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="torch and ExecuTorch are in an environment of their own: see install")
pytest.importorskip("executorch.exir", reason="ExecuTorch is in an environment of its own: see install")

from executorch.exir.banked_memory_planning import Bank, TargetMemoryMap  # noqa: E402
from executorch.exir.passes import MemoryPlanningPass as GreedyPass  # noqa: E402
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer as load  # noqa: E402
from programs import Net, accepted, arenas, edge, equal, image, planned  # noqa: E402
from torch._higher_order_ops.map import map as map_rows  # noqa: E402
from torch._higher_order_ops.scan import scan  # noqa: E402

from memplan import Pool  # noqa: E402
from memplan._executorch_graph import Graph  # noqa: E402
from memplan._executorch_line import lay_in, specs_of  # noqa: E402
from memplan.executorch import MemoryPlanningPass, audit  # noqa: E402


def branches(_, x):
    left = lambda x: torch.relu(torch.exp(x) + 1)  # noqa: E731
    right = lambda x: torch.neg(torch.tanh(x) * x).clone()  # noqa: E731
    return torch.cond(x.sum() > 0, left, right, [x * 2]) + x


def a_peak_elsewhere(_, x):
    left = lambda x: torch.relu(torch.exp(x) @ torch.ones(64, 64))  # noqa: E731
    right = lambda x: torch.neg(torch.tanh(x) * x)  # noqa: E731
    wide = (torch.cat([x, x, x, x]) @ torch.ones(64, 64)).sum()
    # What a branch returns is read long after it.
    y = torch.cond(x.sum() > 0, left, right, [x * 2])
    z = torch.exp(x) * 3
    return torch.tanh(z) + y, wide


def nested(_, x):
    inner = lambda x: torch.cond(x.max() > 1, lambda x: (torch.exp(x) + 1) * 2, lambda x: torch.tanh(x) - 1, [x])  # noqa: E731
    y = torch.cond(x.sum() > 0, lambda x: inner(x * 2), lambda x: torch.sigmoid(x) * 3, [x])
    z = torch.exp(x) * 2
    return z + y, torch.relu(x)


def two_results(_, x):
    left = lambda x: (torch.exp(x) + 1, torch.relu(x) * 2)  # noqa: E731
    right = lambda x: (torch.tanh(x) - 1, torch.sigmoid(x) * 3)  # noqa: E731
    a, b = torch.cond(x.sum() > 0, left, right, [x])
    c = torch.cond(a.sum() > 0, lambda x, y: x * y, lambda x, y: x - y, [a * 2, x])
    return a + c, b


def rows(_, x):
    wide = torch.cat([x, x]).sum()
    return map_rows(lambda row: torch.relu(torch.exp(row) - 1) * 2, x * 2) + x, wide


def sums(_, x):
    """Steps of a scan read the state of the step before, a row, and a tensor around them."""
    scale = x.mean(0)

    def step(state, row):
        state = state * scale.tanh() + row.sin()
        return state, (state * 2).exp()

    last, rows = scan(step, x[0] * 2, torch.cat([x, x])[:64] * 3)
    return last + 1, rows * 2


CONTROL = {"branches": branches, "a peak elsewhere": a_peak_elsewhere, "nested": nested, "two results": two_results, "map": rows, "scan": sums}


@pytest.mark.parametrize("name", CONTROL)
def test_branches_lie_in_the_free_bytes_around_them(name):
    x = image(64, 64) + 0.5
    program = edge(Net(CONTROL[name]), x)
    memory_pass = MemoryPlanningPass(report=None)
    ours, theirs = planned(program, memory_pass), planned(program, GreedyPass())
    (report,) = memory_pass.reports
    # Greedy puts all branches at one place, so that here the second condition destroys a result of the first.
    wrong = name == "two results"
    assert arenas(ours)[1] == report.bytes and report.greedy == arenas(theirs)[1] and (wrong or report.bytes < report.greedy)
    assert report.proven_optimal
    accepted(ours)
    check(ours, theirs, CONTROL[name], x, wrong)


def test_a_loop_works_in_place_on_its_slices():
    # Each iteration gets a copy of its row.
    memory_pass = MemoryPlanningPass(report=None)
    ours = planned(edge(Net(lambda _, x: map_rows(lambda row: row.exp().sin(), x)), image(64, 64)), memory_pass)
    (report,) = memory_pass.reports
    # The input, the result and a row.
    assert report.bytes == 2 * 16_384 + 256 and report.proven_optimal
    assert torch.allclose(load(ours.buffer).forward((image(64, 64),))[0], image(64, 64).exp().sin(), atol=1e-5)


def check(ours, theirs, function, x, wrong=False):
    """Both runs have equal bits, except where greedy's result is wrong."""
    mine, others = load(ours.buffer), load(theirs.buffer)
    for inputs in (x, -x, x / 1000, x):
        outputs = mine.forward((inputs,))
        assert wrong or equal(outputs, others.forward((inputs,)))
        expected = function(None, inputs)
        for output, right in zip(outputs, expected if isinstance(expected, tuple) else (expected,)):
            assert torch.allclose(output, right, atol=1e-5, rtol=1e-4)


def test_where_greedy_overwrites_what_a_condition_returned():
    x = image(64, 64) + 0.5
    theirs = planned(edge(Net(two_results), x), GreedyPass())
    outputs = load(theirs.buffer).forward((x,))
    assert not torch.allclose(outputs[1], two_results(None, x)[1]), "ExecuTorch is right now: take its sizes as a bound again"


@pytest.mark.parametrize("name", ["a peak elsewhere", "nested", "two results"])
def test_branches_and_pools(name):
    x, pools = image(64, 64) + 0.5, {1: Pool("a", capacity=100_000, cost=1), 2: Pool("b", cost=9)}
    program = edge(Net(CONTROL[name]), x)
    ours, theirs = planned(program, MemoryPlanningPass(report=None, pools=pools)), planned(program, GreedyPass())
    accepted(ours)
    assert all(size <= (pools[arena].capacity or size) for arena, size in enumerate(arenas(ours)) if arena in pools)
    check(ours, theirs, CONTROL[name], x, name == "two results")


def test_a_pool_may_hold_branches_and_tensors_without_bytes():
    def forward(net, x):
        return torch.relu(net.norm(torch.cond(x.sum() > 0, lambda x: torch.exp(x) + 1, lambda x: torch.tanh(x) - 1, [x])))

    torch.manual_seed(0)
    program = edge(Net(forward, norm=torch.nn.BatchNorm2d(8)), image(1, 8, 12, 12))
    pools = {1: Pool("a", capacity=4608, cost=1), 2: Pool("b", cost=9)}
    ours = planned(program, MemoryPlanningPass(report=None, pools=pools))
    accepted(ours)
    assert arenas(ours)[1] == 4608


@pytest.mark.parametrize("pool", [Pool("a", capacity=36_000, cost=1), Pool("a", capacity=60_000, cost=1, reserved=[(20_000, 40_000)])])
def test_branches_keep_to_the_limits_of_a_pool(pool):
    def forward(_, x):
        a = torch.cond(x.sum() > 0, lambda x: torch.exp(x) + 1, lambda x: torch.tanh(x) - 1, [x])
        return a + torch.cond(a.sum() > 0, lambda x, y: x * y, lambda x, y: x - y, [a * 2, x])

    x = image(64, 64) + 0.5
    program = edge(Net(forward), x)
    ours = planned(program, MemoryPlanningPass(report=None, pools={1: pool, 2: Pool("b", cost=9)}))
    accepted(ours)
    module, places = ours.exported_program().graph_module, []
    for graph in module.modules():
        for node in getattr(getattr(graph, "graph", None), "nodes", ()):
            places += [(spec.mem_id, spec.mem_offset, spec.mem_offset + spec.nbytes()) for spec in specs_of(node) if spec.mem_id]
    inside = [(begin, end) for arena, begin, end in places if arena == 1]
    assert inside and max(end for _, end in inside) <= pool.capacity < max(end for *_, end in places) + 40_000
    assert not any(begin < high and low < end for begin, end in inside for low, high in pool.reserved)
    mine = load(ours.buffer)
    for inputs in (x, -x):
        assert torch.allclose(mine.forward((inputs,))[0], forward(None, inputs), atol=1e-5)


def views_of_a_result(_, x):
    """The view is read where the plan puts the result, whichever branch has run."""
    z = torch.cond(x.sum() > 0, lambda t: t.expand(3, 64, 64).cos().sum(0), lambda t: t.sin(), (x * 2,))
    return z.reshape(-1) * 3


def views_of_a_mapped_functions_argument(_, x):
    """The argument of a body has no memory of its own."""
    return map_rows(lambda row, other: row + other.reshape(-1)[:64] * 2, x * 2, x.exp()) + x


def swapped_results(_, x):
    """A branch returns the results of a condition in the other order."""
    inner = lambda t: torch.cond(t.max() > 1, lambda t: (t + 1, t * 2), lambda t: (t.sin(), t.cos()), (t,))  # noqa: E731

    def outer(t):
        a, b = inner(t * 3)
        return b.clone(), a.clone()

    a, b = torch.cond(x.sum() > 0, outer, lambda t: (t - 1, t.tanh()), (x,))
    return a.reshape(-1) * 2 + b.reshape(-1)


def views_of_two_results(_, x):
    """Each condition returns its own result."""
    wide, narrow = lambda t: t.expand(3, 64, 64).cos().sum(0), lambda t: t.sin()  # noqa: E731
    y = torch.cond(x.sum() > 0, wide, narrow, (x * 2,))
    z = torch.cond(x.sum() > 1, narrow, wide, (x * 3,))
    return z.reshape(-1) * 3 + y.reshape(-1)


RESULTS = [views_of_a_result, views_of_a_mapped_functions_argument, swapped_results, views_of_two_results]


@pytest.mark.parametrize("settings", [{}, {"inplace": False, "remove_copies": False}, {"pools": {1: Pool("a", capacity=40_000, cost=1), 2: Pool("b", cost=9)}}], ids=str)
@pytest.mark.parametrize("function", RESULTS)
def test_views_are_read_where_values_lie(function, settings):
    x = image(64, 64) + 0.5
    memory_pass = MemoryPlanningPass(report=None, **settings)
    ours = planned(edge(Net(function), x), memory_pass)
    accepted(ours)
    mine = load(ours.buffer)
    for inputs in (x, -x, x / 1000, x):
        expected = function(None, inputs)
        for output, right in zip(mine.forward((inputs,)), expected if isinstance(expected, tuple) else (expected,)):
            assert torch.allclose(output, right, atol=1e-4, rtol=1e-4)


def test_more_in_place_is_never_larger():
    # With in-place outputs, the branches would return their results at different places, if these were not fixed.
    def forward(net, p, x):
        a = net.linear(x).relu()
        b = torch.cond(p.sum() > 0, lambda t: (net.linear(t) * 2).sin() + t, lambda t: t.cos() * 3 - t, (a,))
        yes, no = lambda t, u: (t + u).tanh() @ torch.ones(64, 64), lambda t, u: (t - u).exp().sigmoid()  # noqa: E731
        c = torch.cond(p.sum() > 1, yes, no, (a, b))
        return (b * a).tanh() + c, c * 2

    torch.manual_seed(0)
    model = Net(forward, linear=torch.nn.Linear(64, 64)).requires_grad_(False)
    inputs, sizes = (torch.ones(1, 1), image(4, 64)), []
    program = edge(model, *inputs, strict=False)
    for settings in ({}, {"inplace": False, "remove_copies": False}):
        memory_pass = MemoryPlanningPass(report=None, **settings)
        ours = planned(program, memory_pass)
        (report,) = memory_pass.reports
        sizes.append(report.bytes)
        assert report.proven_optimal
        for found, right in zip(load(ours.buffer).forward(inputs), model(*inputs)):
            assert torch.allclose(found, right, atol=1e-4)
    assert sizes[0] <= sizes[1] == 20_496


class State(torch.nn.Module):
    """Branches read a state through a view, which must not be read where the branch would have put it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(2, 16))

    def forward(self, x):
        yes = lambda t: t.cos() + self.state.view(32)  # noqa: E731
        no = lambda t: t.sin() - self.state.view(32).expand(2, 32).sum(0)  # noqa: E731
        y = torch.cond(x.sum() > 0, yes, no, (x * 2,))
        self.state.add_(y.view(2, 16))
        return y + 1


@pytest.mark.parametrize("settings", [{}, {"share_mutable_buffers": True}, {"alloc_graph_input": False, "alloc_graph_output": False}], ids=str)
def test_branches_read_views_of_state(settings):
    model = State().eval()
    program = edge(copy.deepcopy(model), image(32), strict=False)
    ours = planned(program, MemoryPlanningPass(report=None, **settings))
    mine = load(ours.buffer)
    for inputs in (image(32), -image(32) - 1, image(32) + 1, image(32)):
        (found,) = mine.forward((inputs,))
        with torch.no_grad():
            assert torch.allclose(found, model(inputs), atol=1e-5)


def test_two_operators_of_one_graph_are_an_error():
    class Shared(MemoryPlanningPass):
        def run(self, graph_module, graph_signature=None):
            first, second = (node for node in graph_module.graph.nodes if node.target is torch.ops.higher_order.cond)
            for at in (1, 2):
                setattr(graph_module, second.args[at].target, getattr(graph_module, first.args[at].target))
            return super().run(graph_module, graph_signature)

    def forward(_, x):
        yes, no = lambda t: t.sin(), lambda t: t.cos()  # noqa: E731
        return torch.cond(x.sum() > 1, yes, no, (torch.cond(x.sum() > 0, yes, no, (x,)),))

    with pytest.raises(Exception, match="cond_1: it runs a graph that another operator runs as well; give each a copy"):
        planned(edge(Net(forward), image(4, 4)), Shared(report=None))


@pytest.mark.parametrize("returned", [(0, 1), (1, 1)])
def test_a_branch_that_returns_an_argument_or_one_value_twice_is_an_error(returned):
    class Returned(MemoryPlanningPass):
        def run(self, graph_module, graph_signature=None):
            graph = graph_module.submodule_0.graph
            output, values = list(graph.nodes)[-1], [next(iter(graph.nodes)), *list(graph.nodes)[-1].args[0]]
            output.args = (tuple(values[at] for at in returned),)
            return super().run(graph_module, graph_signature)

    def forward(_, x):
        a, b = torch.cond(x.sum() > 0, lambda t: (t.sin(), t.exp()), lambda t: (t.cos(), t.tanh()), (x * 2,))
        return a + b

    with pytest.raises(Exception, match="cond: a branch returns '.*', which it does not make, or returns twice; return a clone of it"):
        planned(edge(Net(forward), image(4, 4)), Returned(report=None))


def declared(inside):
    """A pass that places values inside others, each at an offset in bytes. Names that end in `!` are of the branch."""

    class Declared(MemoryPlanningPass):
        def run(self, graph_module, graph_signature=None):
            branch = graph_module.submodule_0.graph.nodes
            specs = {node.name: spec for node in graph_module.graph.nodes for spec in specs_of(node)}
            specs |= {f"{node.name}!": spec for node in branch for spec in specs_of(node)}
            for name, other, offset in inside:
                lay_in(specs[name], specs[other], offset)
            return super().run(graph_module, graph_signature)

    return Declared(report=None)


def test_a_branch_returns_a_part_of_a_tensor_inside_the_same_part():
    def forward(_, x):
        wide = torch.cat([x, x.cos()])
        y = torch.cond(x.sum() > 0, lambda t: torch.cat([t, t]).exp()[:4] + t.sin(), lambda t: t.tanh(), (wide[4:] * 2,))
        return y * 3

    x = image(4, 16)
    program = edge(Net(forward), x)
    in_branch, around = ("aten_add_tensor!", "aten_exp_default!"), ("cond", "aten_cat_default")
    for offset, result in ((0, None), (256, None), (0, 256)):
        pairs = [(*in_branch, offset)] + ([(*around, result)] if result is not None else [])
        with pytest.raises(Exception, match="a branch returns a tensor of the shape .4, 16. inside a larger one"):
            planned(program, declared(pairs))
    ours = planned(program, declared([(*in_branch, 256), (*around, 256)]))
    graphs = ours.exported_program().graph, ours.exported_program().graph_module.submodule_0.graph
    places = [{node.name: spec.mem_offset for node in graph.nodes for spec in specs_of(node)} for graph in graphs]
    assert places[0]["cond"] == places[1]["aten_add_tensor"] == places[1]["aten_exp_default"] + 256


def test_a_result_outside_the_arena_is_kept_where_the_branch_has_made_it():
    def forward(_, x):
        y = torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x * 2,))
        return y, (x.exp() * 3).tanh() @ x + y

    # ExecuTorch's runtime does not survive several runs of such a program, whoever has planned it.
    ours = planned(edge(Net(forward), image(8, 8)), MemoryPlanningPass(report=None, alloc_graph_output=False))
    assert (found := audit(ours)["forward"]), str(found)


def test_a_result_takes_no_bytes_before_a_branch_makes_it():
    def forward(_, x):
        wide = lambda t: torch.cat([t, t, t, t]).exp().sum(0, keepdim=True) + t  # noqa: E731
        return torch.cond(x.sum() > 0, wide, lambda t: t.cos(), (x,)) * 2

    memory_pass = MemoryPlanningPass(report=None)
    planned(edge(Net(forward), image(64, 64)), memory_pass)
    # The input, four copies of it and their sum; the result is made when the copies are not read again.
    assert 5 * 16_384 <= memory_pass.reports[0].bytes < 5 * 16_384 + 512


class Asking(MemoryPlanningPass):
    """Values of branches, by names of their operators, ask for arenas."""

    def __init__(self, arenas):
        super().__init__(report=None)
        self.asked = arenas

    def run(self, graph_module, graph_signature=None):
        for graph in filter(lambda module: isinstance(module, torch.fx.GraphModule), graph_module.modules()):
            for node in graph.graph.nodes:
                for name, arena in self.asked.items():
                    if f".{name}." in str(node.target):
                        node.meta["spec"].mem_id = arena
        return super().run(graph_module, graph_signature)


@pytest.mark.parametrize("name", ["sin", "cos", "tanh"])
def test_branches_return_in_one_arena(name):
    def forward(_, x):
        inner = lambda t: torch.cond(t.max() > 1, lambda t: t.sin(), lambda t: t.cos(), (t,))  # noqa: E731
        return torch.cond(x.sum() > 0, inner, lambda t: t.tanh(), (x * 2,)) + 1

    x = image(16, 16) + 0.5
    program = edge(Net(forward), x)
    ours = planned(program, Asking({name: 3}))
    assert arenas(ours)[3] == 1024
    accepted(ours)
    mine = load(ours.buffer)
    for inputs in (x, -x, x / 1000):
        assert torch.allclose(mine.forward((inputs,))[0], forward(None, inputs), atol=1e-5)
    with pytest.raises(Exception, match="a branch returns a tensor of arena . as a result in arena ."):
        planned(program, Asking({"sin": 3, "cos": 3, "tanh": 3, name: 4}))


def test_a_reader_of_one_output_of_several_counts_once(monkeypatch):
    seen, traffic = {}, Graph.traffic

    def spy(graph):
        counted = traffic(graph)
        seen.update({name: bytes / size for name, size, bytes in zip(graph.names(), graph.sizes, counted) if size})
        return counted

    monkeypatch.setattr(Graph, "traffic", spy)
    program = edge(Net(lambda net, x: torch.relu(net.norm(torch.exp(x))), norm=torch.nn.BatchNorm2d(8)), image(1, 8, 12, 12))
    planned(program, MemoryPlanningPass(report=None, inplace=False, remove_copies=False, pools=POOLS[0][0]))
    norm = next(name for name in seen if "norm" in name)
    assert seen[norm] == seen["aten_exp_default"] == 2, seen


def test_specs_that_ask_for_an_arena_get_it():
    class Pinned(MemoryPlanningPass):
        def run(self, graph_module, graph_signature=None):
            for node in graph_module.graph.nodes:
                if "tanh" in str(node.target) or "neg" in str(node.target):
                    node.meta["spec"].mem_id = 3
            return super().run(graph_module, graph_signature)

    x = image(16, 16)
    ours = planned(edge(Net(lambda _, x: torch.abs(torch.neg(torch.tanh(torch.sigmoid(torch.exp(x)))))), x), Pinned(report=None))
    sizes = arenas(ours)
    assert len(sizes) == 4 and sizes[2] == 0 and sizes[1] == 1024 == sizes[3]
    accepted(ours)


def layers(net, x):
    for _ in range(3):
        x = torch.relu(net.norm(net.conv(x)) + x)
    return x


def network():
    torch.manual_seed(0)
    return Net(layers, conv=torch.nn.Conv2d(8, 8, 3, padding=1), norm=torch.nn.BatchNorm2d(8)), image(1, 8, 12, 12)


POOLS = [
    ({1: Pool("sram", capacity=10_000, cost=1), 2: Pool("psram", cost=20)}, {"sram": 9216, "psram": 0}),
    ({2: Pool("sram", capacity=5_000, cost=1), 1: Pool("psram", cost=20)}, {"sram": 4608, "psram": 4608}),
    ({1: Pool("sram", capacity=5_000, cost=1, reserved=[(0, 1024)]), 2: Pool("psram")}, {"sram": 0, "psram": 9216}),
    (TargetMemoryMap([Bank("sram", 5_120, 2, 64), Bank("psram", 20_000, 4)]), {"sram": 4608, "psram": 4608}),
]


@pytest.mark.parametrize(("pools", "sizes"), POOLS)
def test_tensors_spill_into_the_next_pool(pools, sizes):
    model, x = network()
    program = edge(model, x)
    memory_pass = MemoryPlanningPass(report=None, pools=pools)
    ours, theirs = planned(program, memory_pass), planned(program, GreedyPass())
    (report,) = memory_pass.reports
    assert report.pools == sizes and report.proven_optimal and sum(arenas(ours)) == sum(sizes.values())
    assert str(report).startswith("forward: " + ", ".join(f"{name} {size:,} B".replace(",", " ") for name, size in sizes.items()))
    accepted(ours)
    assert equal(load(ours.buffer).forward((x,)), load(theirs.buffer).forward((x,)))


class Pinned(MemoryPlanningPass):
    def run(self, graph_module, graph_signature=None):
        for node in graph_module.graph.nodes:
            if "relu" in str(node.target):
                node.meta["spec"].mem_id = 1
        return super().run(graph_module, graph_signature)


def test_pools_and_pins():
    # The inputs of the sums would fill the fast pool if what is pinned there lay over them.
    program = edge(*network())
    ours = planned(program, Pinned(report=None, pools={2: Pool("psram"), 1: Pool("sram", capacity=5_000)}))
    assert arenas(ours) == [0, 4608, 9216]
    specs = [node.meta["spec"] for node in ours.exported_program().graph.nodes if "relu" in str(node.target)]
    assert len(specs) == 3 and all(spec.mem_id == 1 for spec in specs)
    # An arena that is no pool has no limits.
    ours = planned(program, Pinned(report=None, pools={2: Pool("psram", capacity=9_216)}))
    assert arenas(ours) == [0, 4608, 9216]
    with pytest.raises(ValueError, match="relu.*4608 B.*no pool where they may lie has room"):
        planned(program, Pinned(report=None, pools={2: Pool("psram"), 1: Pool("sram", capacity=100)}))


def test_pools_that_are_too_small_are_an_error():
    pools = {1: Pool("sram", capacity=5_000, cost=1), 2: Pool("psram", capacity=1_000)}
    words = r"of the shape \[1, 8, 12, 12\], 4608 B, finds no place in the pools: sram has 392 of 5000 B left, psram has 1000 of 1000 B left"
    with pytest.raises(ValueError, match=words):
        planned(edge(*network()), MemoryPlanningPass(report=None, pools=pools))


@pytest.mark.parametrize("pools", [{0: Pool("a")}, {1: 4096}, {"sram": Pool("a")}])
def test_wrong_pools_are_refused(pools):
    with pytest.raises(ValueError, match="from a mem_id, at least 1, to a memplan.Pool"):
        MemoryPlanningPass(pools=pools)
    with pytest.raises(ValueError, match="without pools"):
        MemoryPlanningPass(pools={1: Pool("a")}, share_mutable_buffers=True)
