"""Plans of PyTorch graphs, run in one arena with equal bits."""

import copy
import io
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is in an environment of its own: see install")

from functorch.compile import make_boxed_func  # noqa: E402
from modules import Function  # noqa: E402
from torch import nn  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch._functorch.aot_autograd import aot_export_module  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

import memplan  # noqa: E402
from memplan.torch import Planned, from_exported_program, from_graph, in_order  # noqa: E402


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.act = nn.ReLU(inplace=True)
        self.out = nn.Linear(8, 12)

    def forward(self, x):
        x = self.act(self.norm(self.conv(x)))
        x = x + torch.sigmoid(x).mul_(2)
        a, b = x.flatten(2).transpose(1, 2).split(4, dim=-1)
        y = self.out(torch.cat([a, b.expand_as(b)], dim=-1))
        q, k, v = y.chunk(3, dim=-1)
        return torch.softmax(q @ k.mT, dim=-1) @ v, torch.as_strided(y, (2, 3), (5, 1), 7), y.detach()


def run_planned(graph_module, sequence, inputs, **options):
    plan = memplan.plan(sequence, alignment=64, **options)
    assert memplan.verify(sequence, plan, execute=True) == []
    wanted = torch.fx.Interpreter(graph_module).run(*[x.clone() for x in inputs])
    found = Planned(graph_module, plan).run(*[x.clone() for x in inputs])
    for a, b in zip(torch.utils._pytree.tree_leaves(found), torch.utils._pytree.tree_leaves(wanted)):
        assert a is b is None or torch.equal(a, b)
    return plan


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("core", [False, True])
def test_an_exported_program_runs_in_its_arena(core, inplace):
    torch.manual_seed(0)
    model, x = Net().eval(), torch.randn(2, 3, 6, 6)
    program = torch.export.export(model, (x,))
    if core:
        program = program.run_decompositions()
    sequence = from_exported_program(program, inplace=inplace)
    state = {**dict(model.named_parameters()), **dict(model.named_buffers()), **program.constants}
    signature = program.graph_signature
    kinds = {**signature.inputs_to_parameters, **signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
    names = [n.name for n in program.graph.nodes if n.op == "placeholder"]
    inputs = [state[kinds[name]].detach() if name in kinds else x for name in names]
    plan = run_planned(program.graph_module, sequence, inputs)
    assert plan.proven_optimal and plan.pool_size < plan.naive_size


def training_step():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)), torch.randn(4, 32)
    names = [name for name, _ in model.named_parameters()]

    def step(x, *parameters):
        y = torch.func.functional_call(model, dict(zip(names, parameters)), (x,))
        loss = (y * y).mean()
        gradients = torch.autograd.grad(loss, parameters)
        for parameter, gradient in zip(parameters, gradients):
            parameter.detach().copy_(parameter.detach() - 0.1 * gradient)
        return loss

    parameters = [parameter.detach().clone().requires_grad_() for parameter in model.parameters()]
    return make_fx(step, tracing_mode="fake")(x, *parameters), [x, *[p.detach() for p in parameters]]


def test_a_training_step_runs_in_its_arena():
    graph_module, inputs = training_step()
    names = [n.name for n in graph_module.graph.nodes if n.op == "placeholder"]
    sequence = from_graph(graph_module, weights=names[1:])
    given = [x.clone() for x in inputs]
    plan = memplan.plan(sequence, alignment=64)
    assert memplan.verify(sequence, plan, execute=True) == []
    mine, theirs = [x.clone() for x in inputs], given
    loss = Planned(graph_module, plan).run(*mine)
    assert torch.equal(loss, torch.fx.Interpreter(graph_module).run(*theirs))
    # The updated parameters are equal as well, and they did change.
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs)) and not torch.equal(mine[1], inputs[1])


def test_an_operator_may_leave_out_an_output():
    # The gradient of the input, which is not asked for, is None in the tuple of the convolution's gradients.
    torch.manual_seed(0)
    conv, x = nn.Conv2d(3, 8, 3), torch.randn(2, 3, 8, 8)

    def step(x, weight, bias):
        y = torch.func.functional_call(conv, {"weight": weight, "bias": bias}, (x,)).relu()
        return torch.autograd.grad((y * y).mean(), (weight, bias))

    parameters = [parameter.detach().clone().requires_grad_() for parameter in conv.parameters()]
    graph_module = make_fx(step, tracing_mode="fake")(x, *parameters)
    backward = [node for node in graph_module.graph.nodes if "convolution_backward" in str(node.target)]
    assert [node.args[-1] for node in backward] == [[False, True, True]]
    names = [n.name for n in graph_module.graph.nodes if n.op == "placeholder"]
    run_planned(graph_module, from_graph(graph_module, weights=names[1:]), [x, *[p.detach() for p in parameters]])


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 8))

    def forward(self, x):
        a, b = self.net(x).chunk(2, dim=-1)
        return ((a * b.relu()).mean() + b[:, 1:3].sum(),)


@pytest.mark.parametrize("inplace", [False, True])
def test_a_joint_graph_of_aot_autograd_runs_in_its_arena(inplace):
    # Its fake tensors have storages of their own, where the real ones share theirs.
    torch.manual_seed(0)
    model, x = Loss(), torch.randn(8, 16)
    graph_module, _ = aot_export_module(model, [x], trace_joint=True, output_loss_index=0)
    sequence = from_graph(graph_module, inplace=inplace)
    plan = run_planned(graph_module, sequence, [*[p.detach() for p in model.parameters()], x])
    assert plan.pool_size == memplan.plan(sequence, alignment=64, views=False).pool_size < plan.naive_size


def test_a_loaded_program_writes_in_place():
    class InPlace(nn.Module):
        def forward(self, x):
            doubled = x * 2
            doubled.relu_()
            return doubled + 1

    file, x = io.BytesIO(), torch.randn(8, 8)
    torch.export.save(torch.export.export(InPlace(), (x,)), file)
    file.seek(0)
    loaded = torch.export.load(file)
    plan = run_planned(loaded.graph_module, from_exported_program(loaded), [x])
    assert plan.offset("mul") == plan.offset("relu_") != plan.offset("add")


def test_a_plan_of_several_pools_is_no_arena():
    graph_module = make_fx(torch.relu, tracing_mode="fake")(torch.randn(4))
    pools = [memplan.Pool("a", capacity=64, cost=1), memplan.Pool("b", cost=9)]
    plan = memplan.plan(from_graph(graph_module), alignment=64, pools=pools)
    with pytest.raises(ValueError, match="the plan has 2 pools; a graph runs in one pool"):
        Planned(graph_module, plan)


def test_offsets_count_from_the_start_of_a_storage():
    def scattered(x):
        pad, y = x + 1, x * 2
        y.fill_diagonal_(3.0)
        part = torch.as_strided_copy(y, (2, 2), (5, 1), 3)
        strided = y.as_strided((3,), (4,), 1) + 0, y[1:].as_strided((3,), (4,), 1) + 0
        return torch.as_strided_scatter(y, part + 1, (2, 2), (4, 1), 2), *strided, pad

    x = torch.randn(4, 4)
    for program in (exported := torch.export.export(Function(scattered), (x,)), exported.run_decompositions()):
        plan = run_planned(program.graph_module, from_exported_program(program), [x])
        assert plan.offset("mul") > 0


def draws(x):
    small, large, larger = torch.rand(1000), torch.rand(2000), torch.rand(3000)
    return small * large.sum() * larger.sum() + x


def draws_in_a_branch(x):
    small = torch.cond(x.sum() > 0, lambda x: torch.rand_like(x) * 2, lambda x: x.sin(), (x,))
    return small * torch.rand(2000).sum()


def drops(x, first, second):
    first, second = first.detach().requires_grad_(), second.detach().requires_grad_()
    # One is small and needed late, the other large and reduced immediately.
    a = torch.nn.functional.dropout(x @ first, 0.5, True)
    b = torch.nn.functional.dropout(x @ second, 0.5, True)
    return torch.autograd.grad((a * b.sum(1, keepdim=True)).sum(), [first, second])


@pytest.mark.parametrize(("function", "shapes"), [(draws, [(1000,)]), (draws_in_a_branch, [(1000,)]), (drops, [(8, 16), (16, 64), (16, 4096)])])
def test_random_operators_keep_their_order(function, shapes):
    inputs = [torch.rand(shape) for shape in shapes]
    graph_module = make_fx(function, tracing_mode="fake")(*inputs)
    sequence = from_graph(graph_module)
    is_random = lambda target: torch.Tag.nondeterministic_seeded in getattr(target, "tags", ()) or target is torch.ops.higher_order.cond  # noqa: E731
    random = [node.name for node in graph_module.graph.nodes if is_random(node.target)]
    assert len(random) >= 2
    found = memplan.reorder(sequence, alignment=64)
    assert [name for name in found.sequence.operators if name in random] == random
    results = []
    for module in (graph_module, in_order(graph_module, found.sequence)):
        torch.manual_seed(0)
        results.append(torch.utils._pytree.tree_leaves(module(*inputs)))
    assert all(torch.equal(a, b) for a, b in zip(*results))
    # Two of them cannot be exchanged at all.
    order = [sequence.operators.index(name) for name in random]
    for first, second in zip(order, order[1:]):
        exchanged = list(range(len(sequence)))
        exchanged[first], exchanged[second] = second, first
        with pytest.raises(ValueError, match=random[order.index(first)]):
            sequence.permuted(exchanged)


def gated(x):
    return (torch.relu(x) + 1) * torch.sigmoid(x * 2)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (torch.randn(32, 64), r"input 'x' is torch.float32 of the shape \[32, 64\], but the plan is for torch.float32 of the shape \[8, 64\]"),
        (torch.randn(4, 64), r"input 'x' is torch.float32 of the shape \[4, 64\]"),
        (torch.randn(8, 64, 1), r"input 'x' is torch.float32 of the shape \[8, 64, 1\]"),
        (torch.randn(8, 64, dtype=torch.float64), "input 'x' is torch.float64"),
    ],
)
def test_other_inputs_than_those_planned_are_refused(x, words):
    program = torch.export.export(Function(gated), (torch.randn(8, 64),), strict=False)
    (name,) = [node.target for node in program.graph.nodes if node.op == "placeholder"]
    planned = Planned(program.graph_module, memplan.plan(from_exported_program(program), alignment=64))
    with pytest.raises(ValueError, match=words.replace("'x'", f"'{name}'")):
        planned.run(x)


def test_larger_sizes_than_planned_are_refused():
    rows = torch.export.Dim("rows", min=2, max=100)
    program = torch.export.export(Function(gated), (torch.randn(8, 64),), dynamic_shapes={"inputs": ({0: rows},)}, strict=False)
    planned = Planned(program.graph_module, memplan.plan(from_exported_program(program), alignment=64))
    for size in (100, 5):
        x = torch.randn(size, 64)
        assert torch.equal(planned.run(x)[0], gated(x))
    with pytest.raises(ValueError, match="'relu' has 25856 B, but 25600 B are planned"):
        planned.run(torch.randn(101, 64))


def test_views_of_smaller_tensors_stay_inside_them():
    def forward(x):
        y = x * 2
        half = y[x.shape[0] // 2 :]
        return half + 1, y * 3

    rows = 2 * torch.export.Dim("half", min=1, max=32)
    program = torch.export.export(Function(forward), (torch.randn(8, 16),), dynamic_shapes={"inputs": ({0: rows},)}, strict=False)
    planned = Planned(program.graph_module, memplan.plan(from_exported_program(program), alignment=64))
    for size in (64, 6):
        x = torch.randn(size, 16)
        assert all(torch.equal(a, b) for a, b in zip(planned.run(x), forward(x)))


def test_plans_of_something_else_are_refused():
    x = torch.rand(8, 64)
    graph_module = make_fx(gated, tracing_mode="fake")(x)
    other = make_fx(lambda x: torch.relu(x) + 1, tracing_mode="fake")(x)
    chosen = lambda yes: make_fx(lambda x: torch.cond(x.sum() > 0, yes, lambda x: x * 2, (x,)), tracing_mode="fake")(x)  # noqa: E731
    problem = memplan.plan(memplan.Problem([(0, 1, 4)]), alignment=64)
    for module, plan, words in (
        (graph_module, problem, "the plan has no tensor 'relu'"),
        (graph_module, memplan.plan(from_graph(other), alignment=64), "the plan has no tensor 'mul'"),
        (other, memplan.plan(from_graph(graph_module), alignment=64), "no node for the plan's tensor 'mul'"),
        (chosen(torch.sin), memplan.plan(from_graph(chosen(torch.cos)), alignment=64), "the plan has no tensor 'true_graph_0.sin'"),
    ):
        with pytest.raises(ValueError, match=words):
            Planned(module, plan).run(x)


def halves(x):
    a, b = (x * 2).split(4)
    torch.ops.aten._assert_async.msg((a < 9).all(), "")
    return a + b


def test_a_graph_without_fake_tensors_is_refused():
    with pytest.raises(ValueError, match=r"'x' has no fake tensor in meta\['val'\]"):
        from_graph(torch.fx.symbolic_trace(gated))
    graph_module = make_fx(halves, tracing_mode="fake")(torch.ones(8, 64))
    # The assertion returns nothing, and needs none.
    traced = [node for node in graph_module.graph.nodes if "val" in node.meta]
    assert len(from_graph(graph_module)) == len(graph_module.graph.nodes) - 4 == len(traced) - 2
    for node in traced:
        value = node.meta.pop("val")
        with pytest.raises(ValueError, match=rf"'{node.name}' has no fake tensor"):
            from_graph(graph_module)
        node.meta["val"] = value


def test_weights_must_be_placeholders():
    graph_module = make_fx(gated, tracing_mode="fake")(torch.randn(8, 64))
    with pytest.raises(ValueError, match="weights: the graph has no placeholder 'wieght'"):
        from_graph(graph_module, weights=["wieght"])
    # A constant of the graph is one in any case.
    constant = torch.ones(64)
    graph_module = make_fx(lambda x: x + constant)(torch.randn(8, 64))
    assert from_graph(graph_module, weights=["_tensor_constant0"]).operators == ["add"]


def test_a_plan_may_be_made_in_a_compilers_backend():
    def backend(graph_module, _):
        planned = Planned(graph_module, memplan.plan(from_graph(graph_module), alignment=64))
        return make_boxed_func(lambda *inputs: [value if value is None else value.clone() for value in planned.run(*inputs)])

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 4))
    other, x = copy.deepcopy(model), torch.randn(16, 32)
    compiled = torch.compile(other, backend=aot_autograd(fw_compiler=backend, bw_compiler=backend))
    for module in (model, compiled):
        (module(x) ** 2).mean().backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(model.parameters(), other.parameters()))


def view_read_late(x):
    view = torch.relu(x).t()[1:]
    return view + (torch.sigmoid(x) * 2 - 1).t()[1:]


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("views", [True, False])
def test_a_view_is_read_after_its_base(mode, views):
    # A trace of real tensors has fake ones with storages of their own. Views of torch are views in any case.
    x = torch.randn(8, 16)
    graph_module = make_fx(view_read_late, tracing_mode=mode)(x)
    sequence = from_graph(graph_module)
    plan = run_planned(graph_module, sequence, [x], views=views)
    assert plan.pool_size == memplan.plan(sequence, alignment=64).pool_size
    # The second column begins one element behind the first.
    assert plan.offset("slice_1") == plan.offset("relu") + 4


@pytest.mark.parametrize("inplace", [False, True])
def test_updates_of_parameters_move_to_where_they_free_memory(inplace):
    graph_module, inputs = training_step()
    names = [n.name for n in graph_module.graph.nodes if n.op == "placeholder"]
    sequence = from_graph(graph_module, weights=names[1:], inplace=inplace)
    plan = memplan.plan(sequence, alignment=64)
    found = memplan.reorder(sequence, alignment=64)
    assert found.plan.pool_size < plan.pool_size and found.plan.verify(execute=True) == []
    mine, theirs = [x.clone() for x in inputs], [x.clone() for x in inputs]
    loss = Planned(in_order(graph_module, found.sequence), found.plan).run(*mine)
    assert torch.equal(loss, torch.fx.Interpreter(graph_module).run(*theirs))
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs)) and not torch.equal(mine[1], inputs[1])


def test_a_plan_for_the_arena_keeps_to_16_bytes():
    program = torch.export.export(nn.ReLU(), (torch.ones(4),))
    sequence = from_exported_program(program)
    for alignment in (1, 8):
        with pytest.raises(ValueError, match=f"the plan has alignment {alignment}; plan with alignment=16 or a multiple"):
            Planned(program.graph_module, memplan.plan(sequence, alignment=alignment))
    Planned(program.graph_module, memplan.plan(sequence, alignment=16))


def test_an_operator_runs_after_the_sizes_that_it_reads():
    class Flat(nn.Module):
        def forward(self, x, y):
            return torch.relu(y).reshape(x.shape[0] * 8)

    rows = torch.export.Dim("rows", min=2, max=100)
    program = torch.export.export(Flat(), (torch.ones(4, 3), torch.ones(4, 8)), dynamic_shapes=({0: rows}, {0: rows}))
    sequence = from_exported_program(program)
    (size,) = [at for at, name in enumerate(sequence.operators) if name.startswith("sym_size")]
    others = [at for at in range(len(sequence)) if at != size]
    with pytest.raises(ValueError, match="sym_size"):
        sequence.permuted([*others, size])


def written_by_keyword(x):
    y = x * 2
    before = y.sum()
    torch.add(x, 1, out=y)
    return before, y.cos()


def written_in_a_list(x):
    y = x * 2
    before = y.sum()
    torch._foreach_add_([y], 1)
    return before, y.cos()


@pytest.mark.parametrize("function", [written_by_keyword, written_in_a_list])
def test_readers_keep_their_side_of_a_write(function):
    x = torch.randn(8, 8)
    graph_module = make_fx(function, tracing_mode="fake")(x)
    sequence = from_graph(graph_module)
    run_planned(graph_module, sequence, [x])
    assert len(sequence) == 4
    for order in ([0, 2, 1, 3], [0, 1, 3, 2]):
        with pytest.raises(ValueError):
            sequence.permuted(order)


def test_writes_to_parts_keep_their_order():
    def forward(x):
        y = x * 2
        first, second = y[:5], y[3:]
        first.add_(1)
        second.mul_(3)
        return y

    x = torch.randn(8, 8)
    graph_module = make_fx(forward, tracing_mode="fake")(x)
    sequence = from_graph(graph_module)
    run_planned(graph_module, sequence, [x])
    order = list(range(len(sequence)))
    order.insert(sequence.operators.index("add_"), order.pop(sequence.operators.index("mul_")))
    with pytest.raises(ValueError, match="mul_"):
        sequence.permuted(order)


@pytest.mark.parametrize(
    ("function", "x", "names"),
    [
        (lambda x: torch.relu(x) + torch.sigmoid(x), torch.randn(8, 8), ["relu", "sigmoid"]),
        (lambda x: torch.relu(x) @ x, torch.randn(8, 8), []),
        (lambda x: torch.relu(x).t() + torch.sigmoid(x), torch.randn(8, 8), ["t"]),  # Other strides.
        (lambda x: torch.relu(x)[:1] + torch.sigmoid(x), torch.randn(8, 8), ["sigmoid"]),  # Other sizes.
        (lambda x: torch.relu(x)[:4].cos(), torch.randn(8, 8), []),  # A part.
        (lambda x: torch.true_divide(torch.relu(x), 3), torch.arange(8, dtype=torch.int32), []),  # Another type.
    ],
)
def test_what_an_operator_may_be_written_over(function, x, names):
    sequence = from_graph(make_fx(function, tracing_mode="fake")(x), inplace=True)
    (output,) = sequence[len(sequence) - 1].outputs
    assert output.overwrites == [(name, 0) for name in names]


@pytest.mark.parametrize("training", [False, True])
def test_a_batch_norm_in_training_is_not_written_over_its_input(training):
    model = nn.Sequential(nn.ReLU(), nn.BatchNorm2d(3)).train(training)
    sequence = from_exported_program(torch.export.export(model, (torch.ones(2, 3, 4, 4),)), inplace=True)
    (output,) = sequence[sequence.operators.index("batch_norm")].outputs
    assert output.overwrites == ([] if training else [("relu", 0)])


def test_results_that_share_a_new_storage_have_bytes_of_their_own():
    library = torch.library.Library("memplan_tests", "DEF")
    library.define("halves(Tensor x) -> (Tensor, Tensor)")
    library.impl("halves", lambda x: torch.cat([x, x + 1]).chunk(2), "CompositeExplicitAutograd")
    x = torch.randn(8)
    graph_module = make_fx(lambda x: [half * 2 for half in torch.ops.memplan_tests.halves(x + 1)], tracing_mode="fake")(x)
    sequence = from_graph(graph_module)
    run_planned(graph_module, sequence, [x])
    # The first has the storage, with the bytes that views of it may reach.
    assert [output.size for output in sequence[1].outputs] == [64, 32]


def test_statistics_of_a_batch_norm_in_training_are_not_in_the_pool():
    def step(x, weight, bias, mean, variance):
        y = torch.relu(torch.ops.aten.native_batch_norm(x * 2, weight, bias, mean, variance, True, 0.1, 1e-5)[0])
        return torch.sigmoid(y) * 3, mean + 1

    inputs = [torch.linspace(-2, 5, 240).reshape(4, 6, 10), *(torch.full((6,), value) for value in (1.5, 0.5, 0.0, 1.0))]
    graph_module = make_fx(step, tracing_mode="fake")(*inputs)
    names = [n.name for n in graph_module.graph.nodes if n.op == "placeholder"]
    sequence = from_graph(graph_module, weights=names[1:])
    plan = memplan.plan(sequence, alignment=64)
    assert memplan.verify(sequence, plan, execute=True) == []
    mine, theirs = [x.clone() for x in inputs], [x.clone() for x in inputs]
    found, wanted = Planned(graph_module, plan).run(*mine), torch.fx.Interpreter(graph_module).run(*theirs)
    assert all(torch.equal(a, b) for a, b in zip([*found, *mine], [*wanted, *theirs]))
    assert not torch.equal(mine[3], inputs[3]) and not plan.tensors.keys() & set(names)
    # The operator writes them, which its schema does not say: whoever reads them stays behind it.
    norm, reader = (sequence.operators.index(name) for name in ("native_batch_norm", "add"))
    order = list(range(len(sequence)))
    order.insert(norm, order.pop(reader))
    with pytest.raises(ValueError, match="native_batch_norm"):
        sequence.permuted(order)


def test_an_example_input_may_be_a_view():
    whole = torch.linspace(-2, 2, 96)
    for x in (whole.reshape(8, 12), whole.reshape(2, 48)[1:], whole.reshape(8, 12).T):
        sequence = from_exported_program(torch.export.export(nn.Sequential(nn.ReLU(), nn.Sigmoid()), (x,)), inplace=True)
        assert memplan.plan(sequence, alignment=1).pool_size == 4 * x.numel()


def test_symbols_need_an_upper_bound():
    class Double(nn.Module):
        def forward(self, x):
            return torch.relu(x * 2)

    export = lambda dim: torch.export.export(Double(), (torch.ones(4, 8),), dynamic_shapes=({0: dim},))  # noqa: E731
    bounded = memplan.plan(from_exported_program(export(torch.export.Dim("rows", max=100))))
    assert bounded.pool_size == 2 * 100 * 8 * 4
    with pytest.raises(ValueError, match="no upper bound"):
        from_exported_program(export(torch.export.Dim("rows")))


def test_the_first_lines_of_the_chapter_run():
    book = Path(__file__).parents[4] / "book" / "src" / "pytorch.md"
    (snippet,) = (part.split("```")[0] for part in book.read_text().split("```python pytorch\n")[1:])
    names = {}
    exec(snippet, names)
    assert names["plan"].proven_optimal
