"""Small networks whose training steps are hard to recompute: each has what has gone wrong for others."""

import torch
from torch import nn

EFFORT = 50_000
"""The nodes of a search that tests wait for: the usual million takes long where memplan is not optimized."""


class Dropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(5))

    def forward(self, x):
        for layer in self.layers:
            x = nn.functional.dropout(nn.functional.gelu(layer(x)), 0.2) + x
        return x.square().mean()


class BatchNorm(nn.Module):
    def __init__(self):
        super().__init__()
        convs = [nn.Conv2d(3 if at == 0 else 8, 8, 3, padding=1) for at in range(4)]
        self.layers = nn.ModuleList(convs)
        self.norms = nn.ModuleList(nn.BatchNorm2d(8) for _ in range(4))

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = torch.relu(norm(layer(x)))
        return x.mean()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.ModuleList([nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)]) for _ in range(3))

    def forward(self, x):
        for norm, inward, outward in self.blocks:
            q, k, v = inward(norm(x)).view(*x.shape[:2], 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
            a = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, -1)
            x = x + outward((a @ v).transpose(1, 2).reshape(x.shape))
        return x.sum()


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 32)
        self.hidden = nn.Linear(32, 32)

    def forward(self, x):
        h = torch.tanh(self.hidden(torch.tanh(self.hidden(self.table(x)))))
        return torch.log_softmax(h @ self.table.weight.T, -1).mean()


class SeveralOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(48, 48) for _ in range(4))

    def forward(self, x):
        outs = []
        for layer in self.layers:
            x = torch.sigmoid(layer(x))
            outs.append(x)
        return x.mean(), outs[1].sum() * 0.1


class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            for layer in self.layers:
                x = nn.functional.gelu(layer(x))
        return x.float().mean()


class Skips(nn.Module):
    """Skip connections, pooling with indices, group norm and concatenation."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)])
        self.up = nn.ModuleList([nn.Conv2d(24, 8, 3, padding=1), nn.Conv2d(11, 8, 3, padding=1)])
        self.norm = nn.GroupNorm(2, 8)

    def forward(self, x):
        skips = []
        for layer in self.down:
            skips.append(x if not skips else torch.relu(x))
            x, _ = nn.functional.max_pool2d(torch.relu(layer(x)), 2, return_indices=True)
        for layer, skip, width in zip(self.up, reversed(skips), (8, 16)):
            x = torch.cat([nn.functional.interpolate(x, size=(width, width)), skip], 1)
            x = self.norm(nn.functional.silu(layer(x)))
        return x.square().mean()


class Transformer(nn.Module):
    """Fused attention, which has several results, with dropout and BatchNorm under autocast."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.ModuleList([nn.Linear(32, 96), nn.Linear(32, 32), nn.BatchNorm1d(32)]) for _ in range(2))

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            for inward, outward, norm in self.blocks:
                q, k, v = inward(norm(x.flatten(0, 1)).view(x.shape)).unflatten(2, (3, 4, 8)).permute(2, 0, 3, 1, 4)
                a = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
                x = x + nn.functional.dropout(outward(a), 0.1)
        return x.float().square().mean()


MODELS = {
    "dropout": (Dropout, lambda: torch.randn(64, 64)),
    "batch_norm": (BatchNorm, lambda: torch.randn(4, 3, 16, 16)),
    "attention": (Attention, lambda: torch.randn(4, 24, 32)),
    "tied": (Tied, lambda: torch.randint(0, 50, (8, 16))),
    "several": (SeveralOutputs, lambda: torch.randn(64, 48)),
    "autocast": (Autocast, lambda: torch.randn(64, 64)),
    "skips": (Skips, lambda: torch.randn(4, 3, 16, 16)),
    "transformer": (Transformer, lambda: torch.randn(4, 24, 32)),
}
