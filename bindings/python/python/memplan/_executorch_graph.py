"""What ExecuTorch's graphs say of memory: who lives when, and who may lie over or inside whom."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from executorch.exir import memory

from ._executorch_line import Inside, Line, arguments_of, base_of, spec_of, specs_of
from ._executorch_state import UPDATES

Kernels = Mapping[str, tuple[int, ...]]
"""The arguments that an operator's first output may be written over, by the operator's name, such as `aten::relu`."""


class Graph:
    """The chunks of a graph: specs with their lifetimes in steps, and the specs that they may lie over."""

    def __init__(self, specs: list, graph_module, alignment: int, inside: Inside | None = None):
        self.alignment = alignment
        line = Line(specs, graph_module, inside or {})
        self.specs, self.index, self.begins, self.ends = line.specs, line.index, line.begins, line.ends
        self.top, self.nodes, self.returned = line.top, line.nodes, line.returned
        self.sizes = [spec.realign(alignment) for spec in self.specs]
        declared = [spec for spec in self.specs if base_of(spec) is not None]
        self.declared = {id(other) for spec in declared for other in (spec, base_of(spec))}
        """Specs that are declared to lie in another one, and those: one may be written while a copy of the other is read."""
        for made, result in self.returned:
            self.sizes[result] = max(self.sizes[result], self.sizes[made])
        self.arenas = self._arenas()

    def _arenas(self) -> list[int | None]:
        """The arenas that specs ask for. A condition's result lies in the arena of what its branches return."""
        arenas = [spec.mem_id for spec in self.specs]
        for made, result in self.returned:
            if None not in (arenas[made], arenas[result]) and arenas[made] != arenas[result]:
                raise ValueError(f"a branch returns a tensor of arena {arenas[made]} as a result in arena {arenas[result]}")
            arenas[result] = arenas[result] or arenas[made]
        for made, result in reversed(self.returned):
            arenas[made] = arenas[result]
        return arenas

    def arena(self, spec) -> int:
        return self.arenas[self.index[id(spec)]] or 1

    def names(self) -> list[str]:
        """The names of the nodes that make the specs."""
        makers: dict[int, str] = {}
        for node in self.nodes:
            if node.target is not memory.alloc:
                for spec in specs_of(node):
                    makers.setdefault(id(spec), node.name)
        return [makers.get(id(spec), "?") for spec in self.specs]

    def traffic(self) -> list[int]:
        """The bytes that operators move to and from the specs: each is written once and read by its readers."""
        times = dict.fromkeys(self.index, 1)
        for node in self.nodes:
            for argument in dict.fromkeys(arguments_of(node)):
                spec = spec_of(argument) if node.target not in (memory.view, operator.getitem) else None
                if id(spec) in times:
                    times[id(spec)] += 1
        return [size * times[id(spec)] for spec, size in zip(self.specs, self.sizes)]

    @staticmethod
    def shape_of(node, place: int = 0):
        """Type, sizes and order of dimensions as a kernel sees them. Sizes known only at run time are symbols: two of
        them may have the same largest value."""
        if getattr(node, "target", None) is operator.getitem:
            return Graph.shape_of(node.args[0], node.args[1])
        spec, value = node.meta.get("spec"), node.meta.get("val")
        if isinstance(spec, (list, tuple)):
            spec = spec[place]
        if isinstance(value, (list, tuple)):
            value = value[place]
        if spec is None:
            return None
        symbols = tuple(map(str, getattr(value, "shape", ()))) if spec.is_dynamic_shape_tensor else ()
        if spec.is_dynamic_shape_tensor and not symbols:
            return None
        return spec.scalar_type, tuple(spec.shape), tuple(spec.dim_order), symbols

    def operators(self, nodes: list):
        """Out-variant operators: the node, its name, and its first output's spec."""
        for node in nodes:
            schema = getattr(node.target, "_schema", None)
            if node.op != "call_function" or schema is None:
                continue
            outs = [name for name in (a.name for a in schema.arguments if a.is_out)]
            outs = [name for name in outs if node.kwargs.get(name) is not None]
            if outs and node.kwargs[outs[0]].target is memory.alloc:
                spec = spec_of(node)
                if spec is not None and id(spec) in self.index:
                    yield node, schema.name, spec

    def writers(self) -> dict[int, list]:
        """The nodes that write a spec as an argument, such as a cache, by the id of the spec."""
        writers: dict[int, list] = {}
        for node in self.nodes:
            schema = getattr(node.target, "_schema", None)
            for argument, value in zip(getattr(schema, "arguments", ()), node.args):
                if argument.alias_info is not None and argument.alias_info.is_write and not argument.is_out:
                    writers.setdefault(id(spec_of(value)), []).append(node)
        return writers

    def in_place(self, kernels: Kernels) -> list[tuple[Any, Any, list]]:
        """Each output's spec, one that it may be written over, and the others that its operator reads."""
        pairs = []
        for node, name, out in self.operators(self.nodes):
            for place in kernels.get(name, ()):
                argument = node.args[place] if place < len(node.args) else None
                if self.may_overwrite(node, out, argument):
                    others = [spec_of(other) for other in arguments_of(node) if other is not argument]
                    pairs.append((out, spec_of(argument), [other for other in others if other is not None]))
        return pairs

    def may_overwrite(self, node, out, argument) -> bool:
        below = spec_of(argument)
        if below is None or id(below) not in self.index or below is out or below.const:
            return False
        shape = self.shape_of(argument)
        if shape is None or shape != self.shape_of(node) or base_of(out) is not None or base_of(below) is not None:
            return False
        if self.arena(below) != self.arena(out):
            return False
        # Another view of the same bytes with other sizes would be read in another order.
        read = arguments_of(node)
        others = [other for other in read if other is not argument and spec_of(other) is below]
        if node.target._schema.name in UPDATES and (others or read.count(argument) > 1):
            return False
        return all(self.shape_of(other) == shape for other in others)

    def copies(self, outputs: set[int]) -> list[tuple[Any, Any, Any, int]]:
        """Operators whose output holds bytes of the argument in the same order: the node, the two specs and the
        offset. Two outputs of the graph never share bytes: whoever runs it may write them."""
        written, found = set(self.writers()) | self.declared, []
        roots: dict[int, int] = {}
        holding = set(outputs)
        for node, name, out in self.operators(self.top):
            if not node.args or not hasattr(node.args[0], "meta"):
                continue
            below = spec_of(node.args[0])
            if below is None or id(below) not in self.index or below is out:
                continue
            if {id(below), id(out)} & written:
                continue
            root = roots.get(id(below), id(below))
            if id(out) in outputs and root in holding:
                continue
            if out.is_dynamic_shape_tensor or below.is_dynamic_shape_tensor:
                continue
            if self.arena(below) != self.arena(out) or out.scalar_type != below.scalar_type:
                continue
            offset = _same_bytes(node, name, node.args[0].meta["spec"], out)
            if offset is not None and offset % self.alignment == 0 and out.nbytes() > 0:
                found.append((node, out, below, offset))
                roots[id(out)] = root
                holding |= {root} if id(out) in outputs else set()
        return found

    def cats(self, outputs: set[int]) -> list[Cat]:
        """Concatenations without gaps whose inputs are made in the arena, and could be made inside the output."""
        written = set(self.writers()) | self.declared
        fixed = written | outputs
        made = {id(node.meta.get("spec")) for node in self.nodes if node.target is memory.alloc}
        found = []
        for node, name, out in self.operators(self.top):
            if name != "aten::cat" or id(out) in written or out.is_dynamic_shape_tensor:
                continue
            dim = (node.args[1] if len(node.args) > 1 else 0) % max(len(out.shape), 1)
            if any(size != 1 for size in out.shape[:dim]) or not _is_dense(out):
                continue
            parts, offset = [], 0
            for argument in node.args[0]:
                part, seen = spec_of(argument), argument.meta.get("spec")
                if seen is None or isinstance(seen, (list, tuple)):
                    break
                if seen.nbytes() == 0:
                    continue
                whole = id(part) in self.index and id(part) in made and id(part) not in fixed and part.nbytes() == seen.nbytes()
                if not whole or part.is_dynamic_shape_tensor or not _is_dense(seen):
                    break
                if seen.scalar_type != out.scalar_type or self.arena(part) != self.arena(out) or offset % self.alignment:
                    break
                parts.append((part, offset))
                offset += seen.nbytes()
            else:
                if parts and len({id(part) for part, _ in parts}) == len(parts):
                    found.append(Cat(node, out, parts))
        # As the library does for sequences: the largest first.
        return sorted(found, key=lambda cat: -cat.whole.nbytes())


@dataclass
class Cat:
    """A concatenation, and the offsets of its inputs in its output."""

    node: Any
    whole: Any
    parts: list[tuple[Any, int]]


_SAME_ORDER = {
    "aten::alias_copy",
    "aten::clone",
    "aten::detach_copy",
    "aten::expand_copy",
    "aten::permute_copy",
    "aten::slice_copy",
    "aten::squeeze_copy",
    "aten::unsqueeze_copy",
    "aten::view_copy",
    "dim_order_ops::_clone_dim_order",
}


def _is_dense(spec) -> bool:
    return list(spec.dim_order) == list(range(len(spec.shape)))


def _same_bytes(node, name: str, argument, out) -> int | None:
    """The offset in the argument at which the output's bytes already lie, or None."""
    if name not in _SAME_ORDER or isinstance(argument, (list, tuple)):
        return None
    if name in ("aten::clone", "aten::alias_copy", "aten::detach_copy", "dim_order_ops::_clone_dim_order"):
        return 0 if list(argument.shape) == list(out.shape) and list(argument.dim_order) == list(out.dim_order) else None
    if not _is_dense(argument) or not _is_dense(out):
        return None
    if name == "aten::slice_copy":
        return _slice_offset(node, argument, out)
    if argument.nbytes() != out.nbytes():
        return None
    if name == "aten::permute_copy":
        # Dimensions of one element may go anywhere.
        kept = [dim % len(argument.shape) for dim in node.args[1] if argument.shape[dim] != 1]
        return 0 if kept == sorted(kept) else None
    return 0


def _slice_offset(node, argument, out) -> int | None:
    dim, start, end, step = (list(node.args[1:]) + [0, None, None, 1][len(node.args) - 1 :])[:4]
    if not all(isinstance(value, int) or value is None for value in (dim, start, end, step)) or step not in (1, None):
        return None
    shape = list(argument.shape)
    dim %= len(shape)
    # The slice is contiguous if all dimensions before it have one element, or if it takes everything.
    if any(size != 1 for size in shape[:dim]) and list(out.shape) != shape:
        return None
    start = min(max((start or 0) + (shape[dim] if (start or 0) < 0 else 0), 0), shape[dim])
    row = argument.nbytes() // max(_product(shape), 1)
    return start * _product(shape[dim + 1 :]) * row


def _product(sizes) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product
