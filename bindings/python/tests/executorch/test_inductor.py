"""memplan in torch.compile: equal outputs, pools at the lower bound, orders of a smaller peak, and Inductor as it was."""

import inspect
import shutil

import pytest

torch = pytest.importorskip("torch", reason="torch is in an environment of its own: see install")
if shutil.which("g++") is None:
    pytest.skip("Inductor's CPU backend needs g++", allow_module_level=True)

import torch._inductor.codegen.memory_planning as planning  # noqa: E402
from programs import Net, equal  # noqa: E402
from torch import nn  # noqa: E402
from torch._inductor import config, memory  # noqa: E402

from memplan.torch import inductor  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    """Each test compiles anew. The C++ compiler need not make the code fast."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    with config.patch({"fx_graph_cache": False, "cpp.enable_kernel_profile": False, "aggressive_fusion": False}):
        yield
    assert inductor._before is None, "a test has left memplan in Inductor"


def run(model, *inputs, **options):
    torch._dynamo.reset()
    with torch.no_grad():
        outputs = torch.compile(model, **options)(*inputs)
    return [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)


def branches(net, x):
    a = torch.relu(net.first(x))
    b = torch.sigmoid(net.second(a))
    return net.last((a * b).softmax(1).flatten(1)), b.mean()


def attention(net, x):
    q, k, v = net.qkv(net.norm(x)).chunk(3, dim=-1)
    return x + net.out(torch.softmax(q @ k.transpose(-1, -2) / 4, dim=-1) @ v)


MODELS = {
    "branches": lambda: (
        Net(branches, first=nn.Conv2d(3, 8, 3, padding=1), second=nn.Conv2d(8, 8, 3, padding=1), last=nn.Linear(8 * 256, 10)),
        torch.randn(2, 3, 16, 16),
    ),
    "attention": lambda: (Net(attention, qkv=nn.Linear(16, 48), norm=nn.LayerNorm(16), out=nn.Linear(16, 16)), torch.randn(2, 9, 16)),
}


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_equal_and_pools_meet_their_bound(name):
    model, x = MODELS[name]()
    model.eval()
    plain = run(model, x)
    with inductor.installed() as pools:
        ours = run(model, x)
    assert equal(ours, plain)
    assert pools and all(pool.bytes == pool.lower_bound > 0 for pool in pools), pools


def stock_pools(monkeypatch):
    """The sizes of the pools that Inductor's planner makes for intermediate values."""
    sizes = []
    finalize = planning.AllocationPools.finalize

    def spy(pools):
        finalize(pools)
        for several in pools.device_to_pools.values():
            sizes.extend(pool.root.get_size_hint() for pool in several)

    monkeypatch.setattr(planning.AllocationPools, "finalize", spy)
    return sizes


def test_a_pool_is_not_larger_than_inductors(monkeypatch):
    model, x = MODELS["branches"]()
    model.eval()
    sizes = stock_pools(monkeypatch)
    with config.patch(memory_planning=True):
        run(model, x)
    theirs = sum(sizes)
    sizes.clear()
    with inductor.installed(reorder=False) as pools:
        run(model, x)
    assert 0 < sum(sizes) <= theirs and 0 < sum(pool.bytes for pool in pools) < sum(sizes)


def test_inductors_pools_are_used_where_they_are_smaller(monkeypatch):
    # The first product lies in the bytes of the output, which is made when it is not read again.
    model, x = Net(lambda _, x: x @ x.T @ x @ x), torch.randn(64, 64)
    sizes = stock_pools(monkeypatch)
    with config.patch(memory_planning=True):
        plain = run(model, x)
    assert sizes == [16_384, 16_384]
    with inductor.installed(reorder=False) as pools:
        assert equal(run(model, x), plain)
    assert sizes == [16_384] * 4 and pools == []


@pytest.mark.parametrize("how", ["none", "outputs", "combined"])
def test_inductors_settings_of_pools_are_kept(how):
    model, x = MODELS["attention"]()
    plain = run(model.eval(), x)
    with config.patch(memory_pool=how), inductor.installed():
        assert equal(run(model, x), plain)


def test_sizes_that_only_the_run_knows_are_inductors_own():
    model, x = MODELS["attention"]()
    plain = run(model.eval(), x, dynamic=True)
    with inductor.installed():
        compiled = torch.compile(model, dynamic=True)
        torch._dynamo.reset()
        with torch.no_grad():
            assert equal([compiled(x)], plain)
            assert torch.allclose(compiled(torch.cat([x, x], 1)), model(torch.cat([x, x], 1)), atol=1e-5)


def test_training_steps_stay_as_they_are():
    model, x = MODELS["attention"]()
    gradients = []
    for install in (False, True):
        torch._dynamo.reset()
        model.zero_grad()
        if install:
            with inductor.installed():
                torch.compile(model)(x).sum().backward()
        else:
            torch.compile(model)(x).sum().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    assert equal(*gradients)


def wide(net, x):
    # In a bad order, all wide products are alive before the narrow ones; products are not fused.
    first = [x @ net.wide[at] for at in range(5)]
    return sum(product @ net.narrow[at] for at, product in enumerate(first))


def test_memplans_order_is_one_more_candidate(monkeypatch):
    x, model = torch.randn(64, 64), Net(wide, wide=nn.ParameterList(torch.randn(64, 512) for _ in range(5)), narrow=nn.ParameterList(torch.randn(512, 8) for _ in range(5)))
    plain = run(model, x)
    peaks = []
    estimate = memory.estimate_peak_memory

    def spy(nodes, *rest):
        peak = estimate(nodes, *rest)
        peaks.append((inspect.currentframe().f_back.f_locals.get("method"), peak[0]))
        return peak

    monkeypatch.setattr(memory, "estimate_peak_memory", spy)
    with inductor.installed(pool=False) as pools:
        ours = run(model, x)
    offered = {getattr(method, "__name__", "baseline"): peak for method, peak in peaks[:5]}
    assert len(offered) == 5 and offered["topological_sort_memplan"] == min(offered.values()), offered
    assert pools == []
    for a, b in zip(ours, plain):
        torch.testing.assert_close(a, b)


def test_a_state_is_written_after_all_who_read_the_old_one():
    def forward(net, x):
        # The new state is large, and would best be written at once.
        new, late = x @ net.wide, x
        for _ in range(3):
            late = (late @ net.wide) @ net.narrow
        old = (late @ net.wide) * net.state
        net.state.copy_(new)
        return old

    model, x = Net(forward, wide=nn.Parameter(torch.randn(64, 512) / 8), narrow=nn.Parameter(torch.randn(512, 64) / 23)), torch.randn(64, 64)
    model.register_buffer("state", torch.ones(64, 512))
    with torch.no_grad():
        wanted = model(x), model.state.clone()
    model.state.fill_(1)
    with inductor.installed(pool=False):
        found = *run(model, x), model.state
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)


def test_uninstall_restores_what_was_there():
    before = planning.MemoryPlanner, memory.reorder_for_peak_memory, config.memory_planning, torch.compiler.config.cache_key_tag
    inductor.install()
    inductor.install(reorder=False)
    assert planning.MemoryPlanner is not before[0] and memory.reorder_for_peak_memory is before[1]
    assert "memplan" in torch.compiler.config.cache_key_tag
    inductor.uninstall()
    inductor.uninstall()
    assert before == (planning.MemoryPlanner, memory.reorder_for_peak_memory, config.memory_planning, torch.compiler.config.cache_key_tag)


def changed_parameters(monkeypatch):
    monkeypatch.setattr(memory, "reorder_for_peak_memory", lambda nodes, buffers: nodes)


def another_planner(monkeypatch):
    monkeypatch.delattr(planning.MemoryPlanner, "allocate_groups")


def another_pool(monkeypatch):
    monkeypatch.setattr(planning, "AllocationPool", inspect.Parameter)


@pytest.mark.parametrize("change", [changed_parameters, another_planner, another_pool])
def test_other_internals_are_an_error_that_names_the_version(change, monkeypatch):
    change(monkeypatch)
    before = planning.MemoryPlanner, memory.reorder_for_peak_memory, config.memory_planning, torch.compiler.config.cache_key_tag
    with pytest.raises(RuntimeError, match=rf"knows the internals of torch 2.13, but torch {torch.__version__.split('+')[0]}.*nothing was changed"):
        inductor.install()
    assert before == (planning.MemoryPlanner, memory.reorder_for_peak_memory, config.memory_planning, torch.compiler.config.cache_key_tag)
