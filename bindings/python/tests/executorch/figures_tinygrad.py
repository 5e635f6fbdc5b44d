"""Prints the figures of the book on tinygrad: the arenas of its own planner and memplan's, for the schedules of a U-Net's
inference and training and a GPT's inference. It needs tinygrad 0.14 and clang:

    DEV=CPU DIR/bin/python bindings/python/tests/executorch/figures_tinygrad.py
"""

import time
from importlib.metadata import version

import tinygrad.schedule as schedule
from tinygrad import Context, Device, Tensor, nn

import memplan
from memplan import tinygrad as client


class Block:
    def __init__(self, inputs, outputs):
        self.first, self.second = nn.Conv2d(inputs, outputs, 3, padding=1), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.norm = nn.GroupNorm(4, outputs)

    def __call__(self, x):
        return self.norm(self.second(self.first(x).relu())).relu()


class UNet:
    def __init__(self, widths=(16, 32, 64, 128), size=64, batch=2):
        pairs = list(zip(widths[:-1], widths[1:]))
        self.down = [Block(a, b) for a, b in [(3, widths[0]), *pairs]]
        self.up = [nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairs]
        self.mix = [Block(2 * a, a) for a, _ in pairs]
        self.out = nn.Conv2d(widths[0], 3, 1)
        self.input = Tensor.randn(batch, 3, size, size).realize()

    def __call__(self, x):
        kept = []
        for level, block in enumerate(self.down):
            x = block(x.max_pool2d(2) if level else x)
            kept.append(x)
        kept.pop()
        for up, mix in zip(reversed(self.up), reversed(self.mix)):
            x = mix(kept.pop().cat(up(x), dim=1))
        return self.out(x)


class Training(UNet):
    def __call__(self, x):
        optimizer = nn.optim.Adam(nn.state.get_parameters(self), lr=1e-3)
        with Context(TRAINING=1):
            loss = (super().__call__(x) - x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.reshape(1)


class Layer:
    def __init__(self, width, heads):
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def __call__(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.first(x)).chunk(3, dim=-1)
        q, k, v = (part.reshape(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        x = x + self.out(q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(self.up(self.second(x)).gelu())


class GPT:
    def __init__(self, layers=6, width=256, heads=4, length=128, words=1000):
        self.embedding, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = [Layer(width, heads) for _ in range(layers)]
        self.last = nn.Linear(width, words)
        self.input = Tensor.randint(1, length, high=words).realize()

    def __call__(self, x):
        x = self.embedding(x) + self.places(Tensor.arange(x.shape[1]).reshape(1, -1))
        for layer in self.layers:
            x = layer(x)
        return self.last(x)


def run(model):
    """The outputs of a model, and the bytes of the arenas that each schedule has made."""
    sizes, original = [], schedule.memory_plan_rewrite

    def spy(linear, held_bufs=None):
        known = buffers(linear)
        made = original(linear, held_bufs)
        sizes.append(sum(buffer.nbytes() for buffer in buffers(made) - known))
        return made

    schedule.memory_plan_rewrite = spy
    try:
        Tensor.manual_seed(0)
        made = model()
        return made(made.input).numpy(), max(sizes)
    finally:
        schedule.memory_plan_rewrite = original


def buffers(linear):
    return {node for node in linear.toposort() if node.op.name == "BUFFER"}


def main():
    print(f"{time.strftime('%Y-%m-%d')}, tinygrad {version('tinygrad')} on {Device.DEFAULT}, memplan {memplan.__version__}\n")
    print("| model | buffers | tinygrad's arena | memplan's arena | | bound | equal |")
    for name, model in (("U-Net, inference", UNet), ("GPT, inference", GPT), ("U-Net, training", Training)):
        plain, theirs = run(model)
        with client.installed() as arenas:
            found, ours = run(model)
        largest = max(arenas, key=lambda arena: arena.bytes)
        equal = (plain == found).all()
        print(f"| {name} | {largest.buffers} | {theirs} | {ours} | {theirs / ours:.2f} | {largest.lower_bound} | {equal} |", flush=True)


if __name__ == "__main__":
    main()
