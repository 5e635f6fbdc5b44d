"""Nothing is held twice: caches are updated in their own bytes, and copies into graph outputs are merged."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="torch and ExecuTorch are in an environment of their own: see install")
pytest.importorskip("executorch.exir", reason="ExecuTorch is in an environment of its own: see install")

from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge  # noqa: E402
from executorch.exir.passes import MemoryPlanningPass as GreedyPass  # noqa: E402
from executorch.exir.passes.constant_prop_pass import constant_prop_pass  # noqa: E402
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer as load  # noqa: E402
from programs import Net, accepted, arenas, edge, equal, image, planned, targets  # noqa: E402
from torch import nn  # noqa: E402

from memplan import Pool  # noqa: E402
from memplan._executorch_state import UPDATES  # noqa: E402
from memplan.executorch import MemoryPlanningPass, audit, portable_kernels  # noqa: E402


def folded(program):
    program._edge_programs["forward"] = constant_prop_pass(program.exported_program())
    return program


class Stateful(nn.Module):
    """A module with a buffer of zeros, and a function of the module and its inputs."""

    def __init__(self, function, *shape, dtype=torch.float32):
        super().__init__()
        self.function = function
        self.register_buffer("cache", torch.zeros(shape, dtype=dtype))

    def forward(self, *inputs):
        return self.function(self, *inputs)


def checked(model, runs, **settings):
    """The report and the program, after runs in ExecuTorch's runtime that return the values of eager PyTorch."""
    eager = copy.deepcopy(model)
    program = edge(copy.deepcopy(model), *runs[0], strict=False)
    memory_pass = MemoryPlanningPass(report=None, **settings)
    ours, theirs = planned(program, memory_pass), planned(program, GreedyPass())
    if not settings.get("share_mutable_buffers"):
        accepted(ours, **{key: value for key, value in settings.items() if key.startswith("alloc")})
    mine, others = load(ours.buffer), load(theirs.buffer)
    for inputs in runs:
        with torch.no_grad():
            right = eager(*copy.deepcopy(inputs))
        right = [value.clone() for value in (right if isinstance(right, tuple) else (right,))]
        found = [value.clone() for value in mine.forward(inputs)]
        assert equal(found, others.forward(inputs)), "the bits of greedy's program"
        for value, wanted in zip(found, right, strict=True):
            torch.testing.assert_close(value, wanted, rtol=1e-5, atol=1e-5)
    return memory_pass.reports[0], ours


def rows(count):
    return [(torch.tensor([at]), torch.full((1, 8), float(at + 1))) for at in range(count)]


def put(net, at, row):
    net.cache.index_put_((at,), row)
    return torch.relu(net.cache.clone() + 1) * 2


def put_twice(net, at, row):
    net.cache.index_put_((at,), row)
    net.cache.index_put_((at + 1,), row * 2)
    return net.cache.sum(), net.cache @ row[0]


def select(net, at, row):
    net.cache[3] = row[0]
    return net.cache.sum(0)


def cut(net, at, row):
    net.cache[2:4] = row
    return net.cache.sum(1)


def scatter(net, at, row):
    net.cache.scatter_(0, at.reshape(1, 1).expand(1, 8), row)
    return net.cache * 2


def scatter_add(net, at, row):
    net.cache.scatter_add_(0, at.reshape(1, 1).expand(1, 8), row)
    return net.cache * 2


def decay(net, at, row):
    net.cache.mul_(0.5)
    net.cache.copy_(row + net.cache)
    return net.cache.mean(0)


def replaced(net, at, row):
    old = net.cache.sum(0)
    net.cache.copy_(row.expand(16, 8) * 3)
    return old + row


IN_PLACE = {function.__name__: function for function in (put, put_twice, select, cut, scatter, scatter_add, decay, replaced)}


@pytest.mark.parametrize("settings", [{}, {"inplace": False}, {"alloc_graph_input": False, "alloc_graph_output": False}, {"pools": {1: Pool("a", capacity=1024, cost=1), 2: Pool("b", cost=9)}}], ids=str)
@pytest.mark.parametrize("name", IN_PLACE)
def test_a_cache_is_updated_in_its_own_bytes(name, settings):
    report, program = checked(Stateful(IN_PLACE[name], 16, 8), rows(4), **settings)
    if settings.get("inplace", True):
        assert "aten.copy_.default" not in targets(program), "the value is copied into the cache"
        assert report.pools or report.proven_optimal


@pytest.mark.parametrize(("name", "others"), [("put", 512), ("select", 512), ("cut", 64), ("decay", 0), ("scatter", 512), ("put_twice", 512)])
def test_a_cache_has_its_bytes_once(name, others):
    # What a function makes beside the cache has the bytes of `others`, and a few small tensors.
    report, _ = checked(Stateful(IN_PLACE[name], 16, 8), rows(3))
    assert 512 + others <= report.bytes <= 512 + others + 128 and report.greedy >= report.bytes + 384


def old_value_read_later(net, at, row):
    new = net.cache.index_put((at,), row)
    later = (net.cache * row).sum(0) + new.sum()
    net.cache.copy_(new)
    return later


def rows_of_itself(net, at, row):
    # The kernel would read rows that it has overwritten.
    net.cache.index_put_((torch.arange(15, -1, -1),), net.cache * 1.0 + row * torch.arange(16.0).reshape(16, 1))
    net.cache.index_put_((torch.arange(15, -1, -1),), net.cache.clone())
    return net.cache.sum(1)


def rows_of_the_cache(net, at, row):
    reversed = torch.index_put(net.cache, (torch.arange(15, -1, -1),), net.cache)
    net.cache.copy_(reversed + row * torch.arange(16.0).reshape(16, 1))
    return net.cache.sum(1)


def other_value_kept(net, at, row):
    shadow = net.cache.index_put((at,), row)
    net.cache.add_(row)
    return shadow, net.cache.sum(0)


def value_returned(net, at, row):
    net.cache.index_put_((at,), row)
    return net.cache, net.cache[1]


def beginning_of_a_value(net, at, row):
    net.cache.copy_((torch.cat([row] * 32) * 2)[:16])
    return row + 1


def end_of_a_value(net, at, row):
    net.cache.copy_((torch.cat([row] * 32) * 2)[16:])
    return row + 1


def value_of_two(net, at, row):
    a, b = net.cache[:8] * 2, net.cache[8:] + row
    net.cache.copy_(torch.cat([b, a]))
    return a.sum()


def joined_before_another_update(net, at, row):
    # The concatenation is read after the cache has its next value.
    net.cache.add_(row)
    both = torch.cat([net.cache, row.cos()])
    net.cache.mul_(0.5)
    return both.sin()


NEEDED = [old_value_read_later, rows_of_itself, rows_of_the_cache, other_value_kept, value_returned, value_of_two]
NEEDED += [beginning_of_a_value, end_of_a_value, joined_before_another_update]


@pytest.mark.parametrize("function", NEEDED)
def test_a_value_that_is_still_needed_is_kept(function):
    report, _ = checked(Stateful(function, 16, 8), [(at, row + torch.arange(8)) for at, row in rows(4)])
    assert report.bytes >= 2 * 512


def test_caches_of_a_decoder():
    class Decoder(nn.Module):
        def __init__(self, width=32, heads=2, length=64):
            super().__init__()
            self.heads = heads
            self.embedding, self.last = nn.Embedding(50, width), nn.Linear(width, 50)
            self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
            for name in ("keys", "values"):
                self.register_buffer(name, torch.zeros(1, heads, length, width // heads))
            self.register_buffer("places", torch.arange(length), persistent=False)

        def forward(self, token, at):
            x = self.embedding(token)
            split = lambda y: y.view(1, 1, self.heads, -1).transpose(1, 2)  # noqa: E731
            self.keys[:, :, at] = split(self.k(x))
            self.values[:, :, at] = split(self.v(x))
            weights = split(self.q(x)) @ self.keys.transpose(-1, -2) + torch.where(self.places <= at, 0.0, -1e9)
            return self.last(x + self.out((torch.softmax(weights, -1) @ self.values).transpose(1, 2).reshape(1, 1, -1)))

    torch.manual_seed(0)
    runs = [(torch.tensor([[3 + at]]), torch.tensor([at])) for at in range(4)]
    report, program = checked(Decoder().eval().requires_grad_(False), runs)
    assert report.bytes < 16_384 + 9_216 and report.greedy > 3 * 16_384 and "aten.copy_.default" not in targets(program)


@pytest.mark.parametrize("share", [False, True])
def test_caches_keep_their_state(share):
    report, program = checked(Stateful(put, 16, 8), rows(3), share_mutable_buffers=share)
    assert len(arenas(program)) == (3 if share else 2)


def test_a_cache_that_export_writes_in_place():
    # Neither plan runs: the runtime has no kernel that index_put_ works with.
    program = edge(Stateful(put, 16, 8), *rows(1)[0])
    config = lambda memory_pass: ExecutorchBackendConfig(run_reinplace_pass=True, memory_planning_pass=memory_pass)  # noqa: E731
    ours = copy.deepcopy(program).to_executorch(config(MemoryPlanningPass(report=None)))
    theirs = copy.deepcopy(program).to_executorch(config(GreedyPass()))
    assert any("index_put_" in str(node.target) for node in ours.exported_program().graph.nodes)
    accepted(ours)
    assert arenas(ours)[1] <= arenas(theirs)[1] and all(audit(program)["forward"] for program in (ours, theirs))


PLACE = torch.tensor([2])
REVERSED = torch.tensor([2, 1, 0])


def reversed_rows(x):
    # It reads rows that it would have overwritten.
    return torch.index_put(x, (REVERSED,), x)


UPDATED = {
    "index_put": lambda x: [reversed_rows(x + 2), torch.index_put(x, (PLACE,), x[:1] * 3), torch.index_put(x * 2, (PLACE,), x[:1], accumulate=True)],
    "scatter": lambda x: [torch.scatter(x, 0, PLACE.reshape(1, 1).expand(1, x.shape[1]), x[:1] * 3), torch.scatter(x + 1, 0, PLACE.reshape(1, 1), 4.0)],
    "scatter_add": lambda x: [torch.scatter_add(x, 0, PLACE.reshape(1, 1).expand(1, x.shape[1]), x[:1] * 3)],
    "select_scatter": lambda x: [torch.select_scatter(x, x[0] * 3, 0, 1), torch.select_scatter(x + 1, x[:, 0], 1, -1)],
    "slice_scatter": lambda x: [torch.slice_scatter(x, x[:2] * 3, 0, 1, 3), torch.slice_scatter(x + 1, x[:, :1], 1, 0, 1)],
}


@pytest.mark.parametrize("name", sorted(UPDATED))
def test_every_update_of_the_table_in_place(name):
    assert {f"aten::{name}" for name in UPDATED} == UPDATES and all(portable_kernels()[update] == (0,) for update in UPDATES)
    inputs = tuple(image(3, width) for width in (1, 7, 8, 9, 1365))
    model = Net(lambda _, *inputs: tuple(result for x in inputs for result in UPDATED[name](x * 1.5)))
    # Export makes other operators of select_scatter unless it is told to keep it.
    kept = EdgeCompileConfig(preserve_ops=[torch.ops.aten.select_scatter.default])
    program = to_edge(torch.export.export(model.eval(), inputs), compile_config=kept)
    memory_pass = MemoryPlanningPass(report=None, remove_copies=False, kernels={f"aten::{name}": (0,)})
    ours, theirs = planned(program, memory_pass), planned(program, GreedyPass())
    assert any(str(node.target).startswith(f"aten.{name}.") for node in theirs.exported_program().graph.nodes)
    assert memory_pass.reports[0].in_place >= 4, "nothing lies in place"
    accepted(ours)
    assert equal(load(ours.buffer).forward(inputs), load(theirs.buffer).forward(inputs))


def last_linear(net, x):
    return net.linear(x)


def two_views(net, x):
    y = net.linear(x) * 2
    return y.reshape(-1), y.unsqueeze(0), y.sum()


def copies_of_an_input(net, x):
    return x.clone(), x.reshape(-1).clone() + 0, net.linear(x).clone()


def joined(net, x):
    y = net.linear(x)
    return torch.cat([y * 2, y.sin()]), y.sum()


def joined_and_copied(net, x):
    # The copy of a part is an output, and so is the whole.
    y = net.linear(x)
    a = y * 2
    return torch.cat([a, y.sin()]), a.clone()


def joined_copy(net, x):
    # The copy and the output are made of one value.
    a = net.linear(x) * 2
    return torch.cat([a.clone(), a.sin()]), a.unsqueeze(0).clone()


def copy_of_a_copy(net, x):
    y = net.linear(x) * 2
    return y.unsqueeze(0).clone().squeeze(0).clone(), y.clone()


COPIED = [last_linear, two_views, copies_of_an_input, joined, joined_and_copied, joined_copy, copy_of_a_copy]


@pytest.mark.parametrize("function", COPIED)
def test_copies_into_outputs(function):
    torch.manual_seed(0)
    x = image(1, 12, 16)
    program = folded(edge(Net(function, linear=nn.Linear(16, 40)).requires_grad_(False), x))
    memory_pass = MemoryPlanningPass(report=None)
    ours, theirs = planned(program, memory_pass), planned(program, GreedyPass())
    (report,) = memory_pass.reports
    accepted(ours)
    assert report.removed + report.concatenated and report.bytes < report.greedy and report.proven_optimal
    mine, others = load(ours.buffer), load(theirs.buffer)
    for inputs in (x, -x, x * 3):
        assert equal(mine.forward((inputs,)), others.forward((inputs,)))
    outputs = [node.meta["spec"] for node in ours.exported_program().graph.output_node().args[0]]
    places = sorted((spec.mem_offset, spec.mem_offset + spec.nbytes()) for spec in outputs)
    assert all(end <= begin for (_, end), (begin, _) in zip(places, places[1:])), "whoever writes one output would change another"
    if function is last_linear:
        # The output and the input, once each.
        assert report.bytes == (12 * 40 + 12 * 16) * 4


def test_outputs_outside_the_arena_are_copied_there():
    x = image(1, 12, 16)
    program = folded(edge(Net(last_linear, linear=nn.Linear(16, 40)).requires_grad_(False), x))
    ours = planned(program, MemoryPlanningPass(report=None, alloc_graph_output=False))
    theirs = planned(program, GreedyPass(alloc_graph_output=False))
    assert any("view_copy" in name for name in targets(ours))
    assert equal(load(ours.buffer).forward((x,)), load(theirs.buffer).forward((x,)))
