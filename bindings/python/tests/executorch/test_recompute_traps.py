"""What has gone wrong for others when a training step is recomputed."""

import warnings

import pytest

torch = pytest.importorskip("torch")

from steps import EFFORT, MODELS, BatchNorm  # noqa: E402
from torch import fx, nn  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402

from memplan.torch import Recompute  # noqa: E402

TIGHT = 0.6
"""The part of the full peak that is asked for; where it cannot be met, the least that is found is taken."""

VIEWS = ("view", "transpose", "t.default", "permute", "getitem", "expand", "squeeze", "slice", "select", "unbind", "split")


class Compiler:
    """Runs graphs node by node, and keeps them."""

    def __init__(self, budget, *, updates_in_graph=False):
        self.budget, self.forward, self.backward = budget, [], []
        self.updates_in_graph = updates_in_graph

    def __call__(self, model, **options):
        torch._dynamo.reset()
        backend = aot_autograd(
            fw_compiler=self.keeping(self.forward),
            bw_compiler=self.keeping(self.backward),
            partition_fn=self.budget,
            keep_inference_input_mutations=self.updates_in_graph,
        )
        return torch.compile(model, backend=backend, **options)

    @staticmethod
    def keeping(graphs):
        def compile(module, _):
            graphs.append(module)

            def run(args):
                return fx.Interpreter(module).boxed_run(args)

            run._boxed_call = True
            return run

        return compile


def step(model, x, budget, *, updates_in_graph=False, **options):
    """Runs a training step; returns the compiler and the bits of the losses, the gradients and the buffers."""
    compiler = Compiler(budget, updates_in_graph=updates_in_graph)
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        loss = compiler(model, **options)(x)
        losses = loss if isinstance(loss, tuple) else (loss,)
        sum(losses).backward()
    return compiler, [*losses, *(p.grad.clone() for p in model.parameters() if p.grad is not None), *model.buffers()]


def both(make, x, part=TIGHT, **options):
    """A step without a limit, and one within a part of its peak: the second compiler; the bits must be equal."""
    torch.manual_seed(0)
    full, wanted = step(make(), x, Recompute(1 << 40), **options)
    torch.manual_seed(0)
    tight, found = step(make(), x, Recompute(max(1, int(full.budget.report.planned_peak * part)), effort=EFFORT), **options)
    assert all(torch.equal(a, b) for a, b in zip(wanted, found, strict=True))
    return full, tight


def of(name):
    make, example = MODELS[name]
    torch.manual_seed(0)
    return both(make, example())


def names(graph):
    return [node.name for node in graph.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("name", ["attention", "batch_norm", "skips", "transformer"])
def test_views_and_parts_go_with_their_storage(name):
    """torch's list of views lacks `transpose` and `_unsafe_view`: without a tag they were saved, and with them all that
    was to be made again."""
    _, tight = of(name)
    again = set(tight.budget.report.runs)
    assert again
    nodes = {node.name: node for node in tight.forward[0].graph.nodes}
    for node in map(nodes.__getitem__, tight.budget.report.saved):
        while node.op == "call_function" and any(view in str(node.target) for view in VIEWS):
            node = node.all_input_nodes[0]
        assert node.name not in again, f"{node.name} is saved, but its operator runs again"


@pytest.mark.parametrize("name", ["attention", "skips"])
def test_an_operator_runs_again_once_and_right_before_its_reader(name):
    _, tight = of(name)
    forward, order = set(names(tight.forward[0])), names(tight.backward[0])
    assert len(order) == len(set(order)) and set(tight.budget.report.runs) <= forward & set(order)
    nodes = {node.name: node for node in tight.backward[0].graph.nodes}
    for name in tight.budget.report.runs:
        users = {user.name for user in nodes[name].users}
        first = min(order.index(user) for user in users if user in order)
        between = order[order.index(name) + 1 : first]
        # Parts of a result take no time.
        between = [other for other in between if other not in forward and "getitem" not in other]
        assert not between, f"{name} is alive while {between} run, which do not read it"


def test_random_operators_never_run_again():
    for name in ("dropout", "transformer"):
        _, tight = of(name)
        assert tight.budget.report.runs
        tags = [getattr(node.target, "tags", ()) for node in tight.backward[0].graph.nodes]
        assert not any(torch.Tag.nondeterministic_seeded in one for one in tags)


def test_buffers_are_read_as_they_were_before_their_update():
    _, tight = of("batch_norm")
    assert tight.budget.report.runs
    # The step is right at every budget, also where the stock partitioner raises an error.
    model = BatchNorm()
    torch.manual_seed(0)
    step(model, torch.randn(4, 3, 16, 16), Recompute(60_000, effort=EFFORT))
    assert all(int(norm.num_batches_tracked) == 1 for norm in model.norms)


class Effects(nn.Module):
    """An operator with an effect between layers: it counts its runs."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = torch.ops.memplan_tests.counted(torch.tanh(layer(x)))
        return x.mean()


def test_updates_of_buffers_behind_both_passes_belong_to_the_forward_pass():
    # As Inductor asks for: the graph itself updates the buffers, at its end.
    for part in (0.75, TIGHT):
        _, tight = both(BatchNorm, torch.randn(4, 3, 16, 16), part, updates_in_graph=True)
        assert tight.budget.report.runs and tight.budget.report.fits


@pytest.mark.parametrize("name", ["attention", "batch_norm", "skips", "transformer"])
def test_where_nothing_fits_the_least_that_is_found_is_taken(name):
    make, example = MODELS[name]
    torch.manual_seed(0)
    _, tight = both(make, example(), 0.0)
    report = tight.budget.report
    assert not report.fits and report.runs and report.planned_peak < report.given_peak


def test_effects_happen_once():
    counts = []

    @torch.library.custom_op("memplan_tests::counted", mutates_args=())
    def counted(x: torch.Tensor) -> torch.Tensor:
        counts.append(1)
        return x * 2

    counted.register_fake(lambda x: torch.empty_like(x))
    counted.register_autograd(lambda ctx, grad: grad * 2)
    effects = pytest.importorskip("torch._higher_order_ops.effects")
    effects._register_effectful_op(torch.ops.memplan_tests.counted.default, effects._EffectType.ORDERED)
    _, tight = both(Effects, torch.randn(64, 64))
    assert len(counts) == 8
    assert not any("counted" in name or "effects" in name for name in tight.budget.report.runs)


class Reduced(nn.Module):
    """Statistics that all ranks share, between layers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

    def forward(self, x):
        ops = torch.ops._c10d_functional
        for layer in self.layers:
            x = torch.tanh(layer(x))
            whole = ops.wait_tensor(ops.all_reduce(x.detach().exp(), "sum", "memplan"))
            x = x * whole
        return x.mean()


def test_collectives_run_once():
    distributed = torch.distributed
    if not distributed.is_available():
        pytest.skip("this torch has no collectives")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        torch._C._distributed_c10d._register_process_group("memplan", distributed.group.WORLD)
        _, tight = both(Reduced, torch.randn(64, 64))
    finally:
        distributed.destroy_process_group()
    assert tight.budget.report.runs
    assert not any("all_reduce" in name or "wait_tensor" in name for name in names(tight.backward[0]))


class Marked(nn.Module):
    """The user has marked the first layers."""

    def __init__(self, is_marked=True):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
        self.is_marked = is_marked

    def first(self, x):
        return torch.sigmoid(self.layers[1](torch.sigmoid(self.layers[0](x))))

    def forward(self, x):
        x = torch.utils.checkpoint.checkpoint(self.first, x, use_reentrant=False) if self.is_marked else self.first(x)
        return torch.sigmoid(self.layers[3](torch.sigmoid(self.layers[2](x)))).mean()


def test_what_the_user_marked_stays_marked():
    x = torch.randn(64, 64)
    torch.manual_seed(0)
    plain, wanted = step(Marked(False), x, Recompute(1 << 40))
    assert plain.budget.report.runs == []
    for budget in (1 << 40, plain.budget.report.planned_peak // 2):
        torch.manual_seed(0)
        marked, found = step(Marked(), x, Recompute(budget, effort=EFFORT))
        assert all(torch.equal(a, b) for a, b in zip(wanted, found, strict=True))
        assert "sigmoid" in names(marked.backward[0]), "the marked region runs again"
        assert "sigmoid" in marked.budget.report.runs


def test_sizes_stay_symbols():
    """A hint of a size must not become the size: then each batch would compile again."""

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))

        def forward(self, x):
            for layer in self.layers:
                x = nn.functional.gelu(layer(x))
            return x.mean()

    results = []
    for budget in (Recompute(1 << 40), Recompute(20_000, effort=EFFORT)):
        torch.manual_seed(0)
        model, compiler = Layers(), Compiler(budget)
        compiled, bits = compiler(model, dynamic=True), []
        for batch in (48, 64, 96):
            model.zero_grad()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                loss = compiled(torch.linspace(-1, 1, 32 * batch).view(batch, 32))
            loss.backward()
            bits += [loss.detach(), *(p.grad.clone() for p in model.parameters())]
        assert len(budget.reports) == 1, "it is compiled once for all sizes"
        results.append(bits)
    assert budget.report.runs
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_a_graph_break_has_a_report_for_each_part():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))

        def forward(self, x):
            for layer in self.layers[:3]:
                x = torch.sigmoid(layer(x))
            torch._dynamo.graph_break()
            for layer in self.layers[3:]:
                x = torch.sigmoid(layer(x))
            return x.mean()

    full, tight = both(Broken, torch.randn(64, 64), 0.8)
    assert len(full.budget.reports) == len(tight.budget.reports) == 2
    assert all(report.budget == tight.budget.budget for report in tight.budget.reports)


def test_a_budget_that_cannot_be_met_warns():
    model = MODELS["several"][0]()
    with pytest.warns(RuntimeWarning, match="no recomputation within 1 bytes was found"):
        sum(Compiler(Recompute(1, effort=EFFORT))(model)(torch.randn(64, 48))).backward()
