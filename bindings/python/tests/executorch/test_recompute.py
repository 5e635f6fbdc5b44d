"""Training steps with recomputation give the same bits, and their peak is at most the planned one."""

import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

from steps import EFFORT, MODELS, SeveralOutputs  # noqa: E402

from memplan._torch_recompute import _peak  # noqa: E402
from memplan.torch import Recompute  # noqa: E402


class Tracked(TorchDispatchMode):
    """The most bytes of storages made while it is active that are alive at once."""

    def __init__(self):
        super().__init__()
        self.alive, self.peak, self.seen = 0, 0, weakref.WeakSet()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        given = {one.untyped_storage()._cdata for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)}
        for one in tree_leaves(result):
            if isinstance(one, torch.Tensor) and one.untyped_storage()._cdata not in given:
                storage = one.untyped_storage()
                if storage not in self.seen:
                    self.seen.add(storage)
                    size = storage.nbytes()
                    self.alive += size
                    weakref.finalize(storage, self.free, size)
        self.peak = max(self.peak, self.alive)
        return result

    def free(self, size):
        self.alive -= size


def compiler(tracked):
    """A compiler that runs a graph node by node, and frees what has been read last."""

    def compile(module, _):
        def run(args):
            with tracked:
                return torch.fx.Interpreter(module).boxed_run(args)

        run._boxed_call = True
        return run

    return compile


def step(name, budget):
    """Runs a training step; returns the budget's report, the loss, the gradients and the buffers, and the tracked peak."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    make, example = MODELS[name]
    model, x = make(), example()
    tracked = Tracked()
    compile = compiler(tracked)
    compiled = torch.compile(model, backend=aot_autograd(fw_compiler=compile, bw_compiler=compile, partition_fn=budget))
    torch.manual_seed(1)
    loss = compiled(x)
    losses = loss if isinstance(loss, tuple) else (loss,)
    sum(losses).backward()
    return budget.report, [*losses, *(p.grad for p in model.parameters()), *model.buffers()], tracked.peak


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("part", [0.8, 0.5])
def test_bits_are_the_same_and_the_peak_is_within_the_plan(name, part):
    full, expected, most = step(name, Recompute(1 << 40))
    assert most <= full.planned_peak
    assert full.runs == [] and full.fits
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        report, found, peak = step(name, Recompute(int(full.planned_peak * part), effort=EFFORT))
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
    assert peak <= report.planned_peak <= full.planned_peak
    assert peak >= 0.99 * report.planned_peak
    if report.fits and report.planned_peak < full.planned_peak:
        assert report.runs and report.extra_cost > 0
    assert not any("dropout" in name or "bernoulli" in name or "rand" in name for name in report.runs)


def test_parts_of_a_tensor_keep_its_storage():
    def parts(x):
        first, second = (x * 2).unbind(0)
        return first + 1, second + 1

    graph = make_fx(parts)(torch.zeros(2, 100))
    # Both rows, and both results.
    assert _peak(graph, [], {}) == 4 * 400


def test_some_budgets_lower_the_peak():
    lowered = 0
    for name in MODELS:
        full, _, _ = step(name, Recompute(1 << 40))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            report, _, _ = step(name, Recompute(int(full.planned_peak * 0.75), effort=EFFORT))
        lowered += report.fits
    assert lowered >= 4


def test_inductor_takes_it_and_calls_the_peak_an_estimate():
    utils = pytest.importorskip("torch._inductor.utils")
    gradients, reports = [], []
    for budget in (Recompute(1 << 40), Recompute(250_000, effort=EFFORT)):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, x = SeveralOutputs(), torch.randn(256, 48)
        # A graph that was compiled before is not partitioned again.
        with utils.fresh_cache():
            sum(torch.compile(model, options={"custom_partitioner_fn": budget})(x)).backward()
        gradients.append([p.grad for p in model.parameters()])
        reports.append(budget.report)
    assert not reports[1].exact and "estimate" in str(reports[1]) and reports[1].runs
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


def inductors(model, x, budget):
    """The report of a graph that is partitioned as for Inductor, with its decompositions, and run node by node."""
    from torch._inductor.compile_fx import select_decomp_table

    def partition(*arguments, **options):
        return budget(*arguments, **{**options, "compiler": "inductor"})

    torch._dynamo.reset()
    compile = compiler(Tracked())
    backend = aot_autograd(
        fw_compiler=compile, bw_compiler=compile, partition_fn=partition, decompositions=select_decomp_table()
    )
    sum(tree_leaves(torch.compile(model, backend=backend)(x))).backward()
    return budget.report


def test_for_inductor_it_begins_with_what_torch_runs_again_for_nothing():
    torch.manual_seed(0)
    model, x = MODELS["attention"][0](), MODELS["attention"][1]()
    full = inductors(model, x, Recompute(1 << 40))
    # Element-wise operators between kernels.
    assert full.fits and full.runs and full.extra_cost < 0.3 * full.forward_cost
    tight = inductors(model, x, Recompute(int(0.9 * full.given_peak), effort=EFFORT))
    assert tight.given_peak == full.given_peak
    assert tight.planned_peak < full.planned_peak


def test_caches_of_compiled_graphs_tell_budgets_apart():
    ids = {Recompute(budget, cost=cost).uuid() for budget in (1 << 20, "2MiB") for cost in ("roofline", "flops")}
    assert len(ids) == 4 and Recompute("1MiB").uuid() == Recompute(1 << 20).uuid()
    assert Recompute(1, cost=lambda node: 1).uuid() is None


@pytest.mark.parametrize("budget", ["8 parsecs", "", 0, -1])
def test_budgets_are_numbers_of_bytes(budget):
    with pytest.raises(ValueError, match="budget"):
        Recompute(budget)


def test_costs_are_known_by_name():
    with pytest.raises(ValueError, match="cost: 'time'"):
        Recompute(1, cost="time")
