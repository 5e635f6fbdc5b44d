"""Prints the figures of the book on Inductor: pools of its own planner and memplan's, and the peaks of their orders.

    DIR/bin/python bindings/python/tests/executorch/figures_inductor.py [MODEL]...

It needs g++, and the packages that `figures.py` names. The models are those of `figures.py`, and a `dlrm`.
"""

import sys
import time

import torch
import torch._inductor.codegen.memory_planning as planning
from figures import MODELS, row, vision
from torch import nn
from torch._inductor import config, memory

import memplan
from memplan.torch import inductor


class Recommendation(nn.Module):
    """A deep-learning recommendation model: tables, a network below, the products of all pairs, and a network above."""

    def __init__(self, tables=26, rows=1000, width=64):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        stack = lambda *sizes: nn.Sequential(*(layer for a, b in zip(sizes, sizes[1:]) for layer in (nn.Linear(a, b), nn.ReLU())))  # noqa: E731
        self.below, self.above = stack(13, 512, 256, width), stack(width + (tables + 1) * tables // 2, 512, 256, 1)
        self.pairs = torch.tril_indices(tables + 1, tables + 1, -1)

    def forward(self, dense, sparse):
        low = self.below(dense)
        rows = torch.stack([low, *(table(sparse[at]) for at, table in enumerate(self.tables))], 1)
        products = (rows @ rows.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.above(torch.cat([low, products], 1))


def dlrm():
    return Recommendation(), (torch.randn(128, 13), torch.randint(0, 1000, (26, 128, 4)))


NAMES = ["resnet18", "densenet121", "googlenet", "mobilenet_v2", "unet", "bert", "gpt2", "llama", "dlrm"]


def compiled(model, inputs):
    torch._dynamo.reset()
    with torch.no_grad():
        outputs = torch.compile(model)(*inputs)
    return [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)


def main(names):
    print(f"{time.strftime('%Y-%m-%d')}, torch {torch.__version__}, memplan {memplan.__version__}\n")
    row("model", "buffers", "Inductor's pools", "memplan's pools", "", "Inductor's peak", "memplan's peak", "order s", "equal")
    sizes, peaks, times = [], [], []
    finalize, estimate, order = planning.AllocationPools.finalize, memory.estimate_peak_memory, inductor._order

    def spy_pools(pools):
        finalize(pools)
        sizes.append(inductor._size(pools))

    def spy_peaks(*arguments):
        peak = estimate(*arguments)
        peaks.append(peak[0])
        return peak

    def spy_order(*arguments):
        begun = time.monotonic()
        found = order(*arguments)
        times.append(time.monotonic() - begun)
        return found

    planning.AllocationPools.finalize, memory.estimate_peak_memory, inductor._order = spy_pools, spy_peaks, spy_order
    for name in names or NAMES:
        torch.manual_seed(0)
        model, inputs = dlrm() if name == "dlrm" else MODELS[name]() if name in MODELS else vision(name)
        model.eval()
        found = {}
        # The orders are equal, so that the pools are those of the same buffers.
        for kind in ("theirs", "pool", "order"):
            sizes.clear(), peaks.clear(), times.clear()
            with config.patch(memory_planning=True, fx_graph_cache=False):
                if kind == "theirs":
                    outputs, buffers = compiled(model, inputs), 0
                else:
                    with inductor.installed(pool=kind == "pool", reorder=kind == "order"):
                        outputs, buffers = compiled(model, inputs), sum(pool.buffers for pool in inductor.pools)
            # A peak is estimated for the order given and each candidate; memplan's is the last.
            found[kind] = sum(sizes), outputs, buffers, list(peaks), sum(times)
        theirs, ours = found["theirs"], found["pool"]
        equal = all(torch.equal(a, b) for a, b in zip(theirs[1], ours[1]))
        ratio, peak = f"{theirs[0] / max(ours[0], 1):.2f}", found["order"][3]
        row(name, ours[2], theirs[0], ours[0], ratio, min(peak[:4]), peak[4], f"{found['order'][4]:.3f}", equal)


if __name__ == "__main__":
    main(sys.argv[1:])
