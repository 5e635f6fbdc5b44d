"""The networks of `recompute_gpu.py`, with their batches."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Blocks(nn.Module):
    """A network that can run each of its blocks again in the backward pass."""

    checkpoints = False

    def run(self, block, *arguments):
        return checkpoint(block, *arguments, use_reentrant=False) if self.checkpoints else block(*arguments)


class Block(nn.Module):
    """A transformer's: attention and two linear layers, with residual connections."""

    def __init__(self, width, heads, dropout, is_causal):
        super().__init__()
        self.heads, self.dropout, self.is_causal = heads, dropout, is_causal
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.inward(self.before(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        a = functional.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal).transpose(1, 2).flatten(2)
        x = x + functional.dropout(self.outward(a), self.dropout)
        return x + functional.dropout(self.narrow(functional.gelu(self.wide(self.between(x)))), self.dropout)


class Gpt(Blocks):
    def __init__(self, layers, width, heads, words, length):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, 0.1, True) for _ in range(layers))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, x, y):
        x = self.words(x) + self.places.weight
        for block in self.blocks:
            x = self.run(block, x)
        return functional.cross_entropy(self.head(self.last(x)).flatten(0, 1), y.flatten())


class Vit(Blocks):
    def __init__(self, layers, width, heads, patch, patches):
        super().__init__()
        self.patch, self.places = nn.Conv2d(3, width, patch, patch), nn.Parameter(torch.randn(patches, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, 0.0, False) for _ in range(layers))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x, y):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            x = self.run(block, x)
        return functional.cross_entropy(self.head(self.last(x).mean(1)), y)


class Bottleneck(nn.Module):
    """A block of ResNet-50."""

    def __init__(self, before, width, stride):
        super().__init__()
        sizes = [(before, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1)]
        self.convs = nn.ModuleList(nn.Conv2d(a, b, k, s, k // 2, bias=False) for a, b, k, s in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, b, _, _ in sizes)
        new = stride != 1 or before != 4 * width
        conv, norm = nn.Conv2d(before, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
        self.short = nn.Sequential(conv, norm) if new else None

    def forward(self, x):
        y = x
        for at, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            y = norm(conv(y))
            y = functional.relu(y) if at < 2 else y
        return functional.relu(y + (x if self.short is None else self.short(x)))


class ResNet(Blocks):
    def __init__(self, counts, width):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        self.blocks, before = nn.ModuleList(), width
        for stage, count in enumerate(counts):
            for at in range(count):
                self.blocks.append(Bottleneck(before, width << stage, 2 if at == 0 and stage else 1))
                before = 4 * width << stage
        self.head = nn.Linear(before, 1000)

    def forward(self, x, y):
        x = functional.max_pool2d(functional.relu(self.norm(self.stem(x))), 3, 2, 1)
        for block in self.blocks:
            x = self.run(block, x)
        return functional.cross_entropy(self.head(x.mean((2, 3))), y)


class Double(nn.Module):
    """A block of a U-Net: twice a convolution, a group norm and SiLU."""

    def __init__(self, before, width):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(before, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)])
        self.norms = nn.ModuleList(nn.GroupNorm(8, width) for _ in range(2))

    def forward(self, *parts):
        x = torch.cat(parts, 1) if len(parts) > 1 else parts[0]
        for conv, norm in zip(self.convs, self.norms):
            x = functional.silu(norm(conv(x)))
        return x


class UNet(Blocks):
    def __init__(self, width, depth):
        super().__init__()
        self.down = nn.ModuleList(Double(3 if at == 0 else width << (at - 1), width << at) for at in range(depth))
        self.up = nn.ModuleList(Double(3 * width << at, width << at) for at in reversed(range(depth - 1)))
        self.head = nn.Conv2d(width, 3, 1)

    def forward(self, x, y):
        skips = []
        for at, block in enumerate(self.down):
            x = self.run(block, functional.max_pool2d(x, 2) if at else x)
            skips.append(x)
        skips.pop()
        for block in self.up:
            x = self.run(block, skips.pop(), functional.interpolate(x, scale_factor=2.0, mode="nearest"))
        return functional.mse_loss(self.head(x).float(), y)


class Step(nn.Module):
    """The loss of a network under autocast."""

    def __init__(self, network, device):
        super().__init__()
        self.network, self.device = network, device

    def forward(self, x, y):
        with torch.autocast(self.device, torch.bfloat16):
            return self.network(x, y)


def images(count, size, classes=1000):
    return torch.randn(count, 3, size, size), torch.randint(0, classes, (count,))


def network(name, is_tiny):
    """A network, and a batch for it."""
    match name, is_tiny:
        case "gpt", False:
            words, batch, length = 8192, 16, 1024
            return Gpt(12, 1024, 16, words, length), tuple(torch.randint(0, words, (2, batch, length)))
        case "gpt", True:
            return Gpt(2, 32, 2, 64, 16), tuple(torch.randint(0, 64, (2, 4, 16)))
        case "vit", False:
            return Vit(12, 768, 12, 16, 196), images(128, 224)
        case "vit", True:
            return Vit(2, 32, 2, 8, 16), images(4, 32)
        case "resnet50", False:
            return ResNet([3, 4, 6, 3], 64), images(128, 224)
        case "resnet50", True:
            return ResNet([1, 1], 8), images(4, 32)
        case "unet", False:
            x = torch.randn(32, 3, 256, 256)
            return UNet(64, 5), (x, x.roll(1, 0))
        case _:
            x = torch.randn(2, 3, 32, 32)
            return UNet(8, 3), (x, x.roll(1, 0))


NETWORKS = ("gpt", "vit", "resnet50", "unet")
