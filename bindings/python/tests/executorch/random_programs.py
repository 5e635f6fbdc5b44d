"""Random programs with conditions, loops, state and views, as source text that a failing test prints."""

import math
import random

import torch
from torch import nn
from torch._higher_order_ops.map import map as map_rows

SHAPES = [(4, 8), (8, 4), (32,), (2, 16), (2, 2, 8), (1, 4, 8)]
UNARY = ["{}.sin()", "{}.cos()", "{}.relu()", "{}.sigmoid()", "{}.tanh()", "{} * 2 - 1", "-{}", "{}.abs()"]
BINARY = ["{} + {}", "{} - {}", "({} * {}).tanh()", "torch.maximum({}, {})"]


class Writer:
    """Writes the statements of one function at a time, each of which makes a value of the scope."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.roots: dict[str, str] = {}
        """The values that views lie in."""

    def program(self) -> str:
        scope = {name: self.random.choice(SHAPES[:4]) for name in ("x", "y")}
        self.inputs, self.state = dict(scope), self.random.choice(SHAPES[:4])
        self.lines = ["def forward(self, p, x, y):"]
        self.block(scope, self.random.randrange(4, 11), 0, 1)
        names = list(scope)[2:]
        returned = dict.fromkeys([names[-1], *self.random.sample(names, min(len(names), self.random.randrange(1, 4)))])
        # An output of the graph that is an input is another matter: it has no memory of its own.
        outputs = [f"{name} + 0" if name in self.inputs else self.returned(scope, name) for name in returned]
        self.lines.append(f"    return {', '.join(outputs)},")
        return "\n".join(self.lines)

    def returned(self, scope: dict, name: str) -> str:
        """An output: often a copy of a value, or a concatenation."""
        texts = [name, name, f"{name}.clone()", f"{name}.reshape(1, -1)", f"{name}.unsqueeze(0).clone()", f"linear({name})"]
        return self.random.choice([*texts, f"torch.cat([{name}.sin(), {name} * 2])", "self.state", "self.other.clone()"])

    def block(self, scope: dict, length: int, depth: int, indent: int) -> None:
        for _ in range(length):
            kinds = [self.unary] * 4 + [self.binary] * 4 + [self.view] * 4 + [self.slice, self.join, self.spread, self.copy, self.read, self.read]
            kinds += [self.condition] * (5 if depth == 0 else 1 if depth == 1 else 0)
            kinds += [self.write, self.put, self.update, self.update, self.loop] if depth == 0 else []
            self.random.choice(kinds)(scope, depth, indent)

    def add(self, scope: dict, shape, text: str, indent: int) -> str:
        self.count += 1
        name = f"v{self.count}"
        self.lines.append(f"{'    ' * indent}{name} = {text}")
        scope[name] = tuple(shape)
        return name

    def any(self, scope: dict) -> str:
        # Recent values more often, so that the others die.
        names = list(scope)
        return self.random.choice(names[-4:] if self.random.random() < 0.7 else names)

    def shaped(self, scope: dict, name: str, shape) -> str:
        """An expression of a value in another shape."""
        if scope[name] == tuple(shape):
            return name
        if math.prod(scope[name]) == math.prod(shape):
            return f"{name}.{self.random.choice(['reshape', 'view'])}({', '.join(map(str, shape))})"
        return f"{name}.mean().expand({', '.join(map(str, shape))})"

    def unary(self, scope, depth, indent):
        name = self.any(scope)
        self.add(scope, scope[name], self.random.choice(UNARY).format(name), indent)

    def binary(self, scope, depth, indent):
        a, b = self.any(scope), self.any(scope)
        self.add(scope, scope[a], self.random.choice(BINARY).format(a, self.shaped(scope, b, scope[a])), indent)

    def view(self, scope, depth, indent):
        name = self.any(scope)
        shapes = [shape for shape in SHAPES if math.prod(shape) == math.prod(scope[name])]
        if shapes:
            shape = self.random.choice(shapes)
            view = self.add(scope, shape, f"{name}.reshape({', '.join(map(str, shape))})", indent)
            self.roots[view] = self.roots.get(name, name)

    def slice(self, scope, depth, indent):
        name = self.any(scope)
        rows, *rest = scope[name]
        if rows > 1:
            at = self.random.randrange(1, rows)
            text, left = (f"{name}[:{at}]", at) if self.random.random() < 0.5 else (f"{name}[{at}:]", rows - at)
            part = self.add(scope, (left, *rest), text + self.random.choice(["", ".clone()"]), indent)
            self.roots[part] = self.roots.get(name, name)
            self.add(scope, scope[part], f"{part} * 3", indent)

    def join(self, scope, depth, indent):
        a, b = self.any(scope), self.any(scope)
        shape = (2 * scope[a][0], *scope[a][1:])
        if math.prod(shape) <= 128:
            self.add(scope, shape, f"torch.cat([{a}, {self.shaped(scope, b, scope[a])}])", indent)

    def spread(self, scope, depth, indent):
        name = self.any(scope)
        self.add(scope, scope[name], f"{name}.expand(3, {', '.join(map(str, scope[name]))}).cos().sum(0)", indent)

    def copy(self, scope, depth, indent):
        name = self.any(scope)
        self.add(scope, (1, *scope[name]), f"{name}.unsqueeze(0).clone()", indent)

    def buffer(self) -> str:
        return self.random.choice(["self.state", "self.state", "self.other"])

    def read(self, scope, depth, indent):
        shape = self.random.choice([shape for shape in SHAPES if math.prod(shape) == math.prod(self.state)])
        self.add(scope, shape, f"{self.buffer()}.view({', '.join(map(str, shape))}){self.random.choice(['.sin()', ' * 2', '.clone()'])}", indent)

    def write(self, scope, depth, indent):
        text = self.shaped(scope, self.any(scope), self.state)
        self.lines.append(f"{'    ' * indent}{self.buffer()}.{self.random.choice(['copy_', 'add_', 'mul_'])}({text} * 0.5)")

    def put(self, scope, depth, indent):
        row = self.shaped(scope, self.any(scope), self.state[1:] or (1,))
        self.lines.append(f"{'    ' * indent}self.state[(p.sum() > 0).long().reshape(1)] = ({row} * 0.5).reshape(1, {', '.join(map(str, self.state[1:]))})")

    def update(self, scope, depth, indent):
        """Writes some rows of a buffer, made of other values or of rows of a buffer."""
        buffer, rows, rest = self.buffer(), self.state[0], self.state[1:]
        row = f"({self.shaped(scope, self.any(scope), rest or (1,))} * 0.5).reshape({', '.join(map(str, rest or ('()',)))})"
        at = self.random.randrange(rows)
        whole = f"({self.shaped(scope, self.any(scope), self.state)}).tanh()"
        texts = [
            f"{buffer}[{at}] = {row}",
            f"{buffer}[{at}:] = {row}",
            f"{buffer}[torch.arange({rows - 1}, -1, -1)] = {self.buffer()} * 0.5 + {row}",
            f"{buffer}[torch.arange({rows - 1}, -1, -1)] = {self.buffer()}.clone()",
            f"{buffer}.index_put_(((p.sum() > 0).long().reshape(1),), {row}.unsqueeze(0), accumulate=True)",
            f"{buffer}.scatter_add_(0, torch.full({self.state}, {at}), {whole})",
            f"{buffer}.scatter_(0, torch.full({self.state}, {at}), {whole}[{at}].expand({', '.join(map(str, self.state))}).contiguous())",
        ]
        self.lines.append(f"{'    ' * indent}{self.random.choice(texts)}")

    def condition(self, scope, depth, indent):
        self.count += 1
        at, pad = self.count, "    " * indent
        # torch refuses arguments that share memory.
        given = list({self.roots.get(name, name): name for name in (self.any(scope) for _ in range(self.random.randrange(1, 4)))}.values())
        shapes = [self.random.choice(SHAPES) for _ in range(self.random.choice([1, 1, 2]))]
        for side in ("yes", "no"):
            self.lines.append(f"{pad}def {side}{at}({', '.join(f'a{at}{i}' for i in range(len(given)))}):")
            inner = {f"a{at}{i}": scope[name] for i, name in enumerate(given)}
            self.block(inner, self.random.randrange(0, 4), depth + 1, indent + 1)
            # torch refuses results that share memory with an argument or with each other.
            fresh = lambda text: self.random.choice([f"{text}.sin()", f"{text}.clone()", f"{text} * 2", f"{text} + 1"])  # noqa: E731
            results = [fresh(self.shaped(inner, self.any(inner), shape)) for shape in shapes]
            self.lines.append(f"{pad}    return {', '.join(results)}{',' if len(shapes) > 1 else ''}")
        names = [f"v{at}{i}" for i in range(len(shapes))]
        truth = f"{self.any(scope)}.sum() > {self.random.choice([-2, 0, 1])}" if self.random.random() < 0.4 else f"p.sum() > {self.random.choice([-1, 0, 1])}"
        self.lines.append(f"{pad}{', '.join(names)} = cond({truth}, yes{at}, no{at}, ({', '.join(given)},))")
        scope.update(zip(names, shapes))

    def loop(self, scope, depth, indent):
        rows, other = self.any(scope), self.any(scope)
        if len(scope[rows]) > 1 and self.roots.get(rows, rows) != self.roots.get(other, other):
            row = scope[rows][1:]
            text = self.random.choice(UNARY).format(f"(r + {self.shaped({'o': scope[other]}, 'o', row)})")
            # ExecuTorch refuses a view of what a loop returns.
            self.add(scope, scope[rows], f"map_rows(lambda r, o: {text}, {rows}, {other}) * 1", indent)


def linear(x):
    """A linear layer with a weight of its own size."""
    weight = torch.linspace(-0.5, 0.5, 3 * x.shape[-1]).reshape(3, x.shape[-1])
    return nn.functional.linear(x.reshape(1, -1, x.shape[-1]), weight)


def chosen(predicate, yes, no, arguments):
    return (yes if predicate else no)(*arguments)


class Program(nn.Module):
    """A random program: `forward` has a predicate and two tensors."""

    def __init__(self, seed: int):
        super().__init__()
        writer = Writer(seed)
        self.text = writer.program()
        self.functions = [self.compiled(cond) for cond in (torch.cond, chosen)]
        self.shapes = writer.inputs
        # ExecuTorch does not keep the first values of a state that is written.
        for name in ("state", "other"):
            self.register_buffer(name, torch.zeros(writer.state))

    def compiled(self, cond):
        names = {"torch": torch, "map_rows": map_rows, "cond": cond, "linear": linear}
        exec(self.text, names)
        return names["forward"]

    def forward(self, p, x, y):
        return self.functions[0](self, p, x, y)

    def eager(self, p, x, y):
        """The same, without what export makes of a condition."""
        return self.functions[1](self, p, x, y)

    def inputs(self, predicate: float) -> tuple:
        return torch.tensor([predicate]), *(torch.randn(shape) for shape in self.shapes.values())
