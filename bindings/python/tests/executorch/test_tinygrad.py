"""memplan in tinygrad: equal outputs, arenas at their lower bound, and tinygrad as it was."""

import os

import pytest

# tinygrad's device without a compiler.
os.environ.setdefault("DEV", "PYTHON")
tinygrad = pytest.importorskip("tinygrad", reason="tinygrad is in an environment of its own: see install")

import tinygrad.engine.jit as jit  # noqa: E402
import tinygrad.schedule as schedule  # noqa: E402
from tinygrad import Context, Tensor, TinyJit, nn  # noqa: E402
from tinygrad.schedule import memory  # noqa: E402

from memplan import tinygrad as client  # noqa: E402


class Attention:
    """A block of a language model."""

    def __init__(self):
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.up, self.down = nn.Linear(8, 32), nn.Linear(32, 8)
        self.inputs = [Tensor.randn(1, 5, 8).realize() for _ in range(2)]

    def __call__(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        x = x + self.out(q.scaled_dot_product_attention(k, v, is_causal=True))
        return x + self.down(self.up(x).gelu())


class UNet:
    """Two levels, with a connection between them."""

    def __init__(self):
        self.first, self.low, self.last = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(8, 1, 1)
        self.inputs = [Tensor.randn(1, 1, 8, 8).realize() for _ in range(2)]

    def __call__(self, x):
        down = self.first(x).relu()
        low = self.low(down.avg_pool2d(2)).relu()
        up = low.interpolate((8, 8), mode="nearest")
        return self.last(down.cat(up, dim=1))


class Training(UNet):
    """A training step, which returns the loss and the weights after it."""

    def __call__(self, x):
        weights = nn.state.get_parameters([self.first, self.low, self.last])
        optimizer = nn.optim.SGD(weights, lr=0.1, momentum=0.9)
        with Context(TRAINING=1):
            loss = (super().__call__(x) - x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.reshape(1).cat(*(weight.flatten() for weight in weights))


def outputs(model):
    Tensor.manual_seed(0)
    made = model()
    return [made(x).numpy().tolist() for x in made.inputs]


@pytest.mark.parametrize("model", [Attention, UNet, Training])
def test_outputs_are_equal_and_arenas_meet_their_bound(model):
    plain = outputs(model)
    with client.installed() as arenas:
        ours = outputs(model)
    assert ours == plain
    assert arenas and all(arena.bytes == arena.lower_bound for arena in arenas) and max(arena.buffers for arena in arenas) > 3


def sizes_of(arguments):
    """The bytes of the arenas that a planner makes."""
    made, original = [], memory.UOp.new_buffer

    def spy(device, size, dtype, *rest):
        made.append(size * dtype.itemsize)
        return original(device, size, dtype, *rest)

    memory.UOp.new_buffer = spy
    try:
        schedule.memory_plan_rewrite(*arguments)
    finally:
        memory.UOp.new_buffer = original
    return sum(made)


def test_an_arena_is_not_larger_than_tinygrads(monkeypatch):
    seen = []
    original = schedule.memory_plan_rewrite
    monkeypatch.setattr(schedule, "memory_plan_rewrite", lambda *arguments: seen.append(arguments) or original(*arguments))
    outputs(UNet)
    monkeypatch.undo()
    theirs = [sizes_of(arguments) for arguments in seen]
    with client.installed():
        ours = [sizes_of(arguments) for arguments in seen]
    assert 0 < sum(ours) <= sum(theirs) and all(a <= b for a, b in zip(ours, theirs))


def test_a_function_under_jit():
    Tensor.manual_seed(0)
    model = UNet()
    plain = [model(x).numpy().tolist() for x in model.inputs]
    with client.installed() as arenas:
        compiled = TinyJit(lambda x: model(x).realize())
        for _ in range(3):
            assert [compiled(x).numpy().tolist() for x in model.inputs] == plain
    assert arenas


def test_uninstall_restores_what_was_there():
    before = schedule.memory_plan_rewrite, jit.memory_plan_rewrite
    client.install()
    client.install()
    assert schedule.memory_plan_rewrite is jit.memory_plan_rewrite is not before[0]
    client.uninstall()
    client.uninstall()
    assert before == (schedule.memory_plan_rewrite, jit.memory_plan_rewrite)


@pytest.mark.parametrize("path", ["memory._can_plan", "jit.memory_plan_rewrite", "memory.UOp.new_buffer"])
def test_other_internals_are_an_error_that_names_the_version(path, monkeypatch):
    owner, name = {"memory": memory, "jit": jit}[path.split(".")[0]], path.split(".")[-1]
    owner = owner.UOp if "UOp" in path else owner
    monkeypatch.setattr(owner, name, lambda other: other)
    before = schedule.memory_plan_rewrite, jit.memory_plan_rewrite
    with pytest.raises(RuntimeError, match=rf"knows the internals of tinygrad 0.14, but tinygrad \d.*{name}\(other\); nothing was changed"):
        client.install()
    assert before == (schedule.memory_plan_rewrite, jit.memory_plan_rewrite)
