"""What ExecuTorch's graphs say of memory: who lives when, and who may lie over or inside whom."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
from executorch.exir import memory
from torch.fx import GraphModule

Kernels = Mapping[str, tuple[int, ...]]
"""The arguments that an operator's first output may be written over, by the operator's name, such as `aten::relu`."""


class Graph:
    """The chunks of a graph: specs with their lifetimes in steps, and the specs that they may lie over."""

    def __init__(self, specs: list, graph_module, alignment: int, rooms: list[Room] | None = None):
        self.alignment = alignment
        self.rooms = rooms or []
        elsewhere = {id(result.spec) for room in self.rooms for result in room.results}
        self.specs = list({id(spec): spec for spec in specs if id(spec) not in elsewhere}.values())
        self.index = {id(spec): at for at, spec in enumerate(self.specs)}
        self.nodes = list(graph_module.graph.nodes)
        steps = steps_of(self.nodes)
        # A caller may count in nodes that the graph does not have.
        missing = 1 + max((spec.lifetime[1] for spec in self.specs), default=-1) - len(steps)
        steps.extend(range(len(steps), len(steps) + missing))
        self.sizes = [spec.realign(alignment) for spec in self.specs]
        self.begins = [steps[spec.lifetime[0]] for spec in self.specs]
        self.ends = [steps[spec.lifetime[1]] + 1 for spec in self.specs]

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
            for argument in {id(argument): argument for argument in flat(node.args)}.values():
                spec = self.spec_of(argument) if node.target not in (memory.view, operator.getitem) else None
                if id(spec) in times:
                    times[id(spec)] += 1
        return [size * times[id(spec)] for spec, size in zip(self.specs, self.sizes)]

    @staticmethod
    def base(node):
        """The node whose memory a node's output lies in: views have that of their argument."""
        while getattr(node, "target", None) is memory.view:
            node = node.args[0]
        return node

    @classmethod
    def spec_of(cls, node, place: int = 0):
        """The spec that has memory of its own, or None."""
        node = cls.base(node)
        if getattr(node, "target", None) is operator.getitem:
            return cls.spec_of(node.args[0], node.args[1])
        spec = getattr(node, "meta", {}).get("spec")
        if isinstance(spec, (list, tuple)):
            spec = spec[place] if place < len(spec) else None
        return spec

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

    def operators(self):
        """Out-variant operators: the node, its name, and its first output's spec."""
        for node in self.nodes:
            schema = getattr(node.target, "_schema", None)
            if node.op != "call_function" or schema is None:
                continue
            outs = [name for name in (a.name for a in schema.arguments if a.is_out)]
            outs = [name for name in outs if node.kwargs.get(name) is not None]
            if outs and node.kwargs[outs[0]].target is memory.alloc:
                spec = self.spec_of(node)
                if spec is not None and id(spec) in self.index:
                    yield node, schema.name, spec

    def written(self) -> set[int]:
        """The specs that operators write as arguments, such as caches."""
        written = set()
        for node in self.nodes:
            schema = getattr(node.target, "_schema", None)
            for argument, value in zip(getattr(schema, "arguments", ()), node.args):
                if argument.alias_info is not None and argument.alias_info.is_write and not argument.is_out:
                    written.add(id(self.spec_of(value)))
        return written

    def in_place(self, kernels: Kernels, top: bool) -> list[tuple[Any, Any, list]]:
        """Each output's spec, one that it may be written over, and the others that its operator reads."""
        pairs = []
        for node, name, out in self.operators():
            for place in kernels.get(name, ()):
                argument = node.args[place] if place < len(node.args) else None
                if self.may_overwrite(node, out, argument, top):
                    others = [self.spec_of(other) for other in flat(node.args) if other is not argument]
                    pairs.append((out, self.spec_of(argument), [other for other in others if other is not None]))
        return pairs

    def may_overwrite(self, node, out, argument, top: bool) -> bool:
        below = self.spec_of(argument)
        if below is None or id(below) not in self.index or below is out or below.const:
            return False
        # In a branch or a loop, an argument may be a value that others still read.
        if not top and self.base(argument).op == "placeholder":
            return False
        shape = self.shape_of(argument)
        if shape is None or shape != self.shape_of(node) or base_of(out) is not None or base_of(below) is not None:
            return False
        if (below.mem_id or 1) != (out.mem_id or 1):
            return False
        # Another view of the same bytes with other sizes would be read in another order.
        others = [other for other in flat(node.args) if other is not argument and self.spec_of(other) is below]
        return all(self.shape_of(other) == shape for other in others)

    def copies(self, outputs: set[int]) -> list[tuple[Any, Any, Any, int]]:
        """Operators whose output holds bytes of the argument in the same order: the node, the two specs and the offset."""
        written, found = self.written(), []
        for node, name, out in self.operators():
            if not node.args or not hasattr(node.args[0], "meta"):
                continue
            below = self.spec_of(node.args[0])
            if below is None or id(below) not in self.index or below is out:
                continue
            if {id(below), id(out)} & written or id(out) in outputs or base_of(out) is not None or base_of(below) is not None:
                continue
            if out.is_dynamic_shape_tensor or below.is_dynamic_shape_tensor:
                continue
            if (below.mem_id or 1) != (out.mem_id or 1) or out.scalar_type != below.scalar_type:
                continue
            offset = _same_bytes(node, name, node.args[0].meta["spec"], out)
            if offset is not None and offset % self.alignment == 0 and out.nbytes() > 0:
                found.append((node, out, below, offset))
        return found

    def cats(self, outputs: set[int]) -> list[Cat]:
        """Concatenations without gaps whose inputs are made in the arena, and could be made inside the output."""
        fixed = self.written() | outputs
        made = {id(node.meta.get("spec")) for node in self.nodes if node.target is memory.alloc}
        found = []
        for node, name, out in self.operators():
            if name != "aten::cat" or id(out) in fixed or base_of(out) is not None or out.is_dynamic_shape_tensor:
                continue
            dim = (node.args[1] if len(node.args) > 1 else 0) % max(len(out.shape), 1)
            if any(size != 1 for size in out.shape[:dim]) or not _is_dense(out):
                continue
            parts, offset = [], 0
            for argument in node.args[0]:
                part, seen = self.spec_of(argument), argument.meta.get("spec")
                if seen is None or isinstance(seen, (list, tuple)):
                    break
                if seen.nbytes() == 0:
                    continue
                whole = id(part) in self.index and id(part) in made and id(part) not in fixed and part.nbytes() == seen.nbytes()
                if not whole or part.is_dynamic_shape_tensor or base_of(part) is not None or not _is_dense(seen):
                    break
                if seen.scalar_type != out.scalar_type or (part.mem_id or 1) != (out.mem_id or 1) or offset % self.alignment:
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


@dataclass
class Result:
    """What a branch returns lies in its own memory, where the graph around it reads it."""

    spec: Any
    arena: int
    low: int
    high: int
    """The bytes of the room where it lies, whichever branch has run."""


@dataclass
class Room:
    """The memory of a branch or a loop, in the graph around it."""

    step: int
    end: int
    """The last step that reads a result, plus 1."""
    sizes: list[int]
    """Bytes by arena."""
    results: list[Result]
    modules: list[Any]


@dataclass
class Inside:
    """What is planned in a branch or a loop."""

    sizes: list[int]
    specs: list[Any]
    """With those of the graphs inside it."""
    results: dict[int, tuple[int, int, int]]
    """By the id of a spec whose place depends on a branch: the arena, and where it may begin and end."""
    is_stacked: bool = False
    """Its branches and loops keep their memory for the whole run."""


def steps_of(nodes) -> list[int]:
    """The step of every node. The allocation of an output stands before its operator, and has its step: an output then
    begins in the last step of the argument that it may lie over."""
    steps, step = [], 0
    for node in nodes:
        steps.append(step)
        step += node.target is not memory.alloc
    return steps


def specs_of(node) -> list:
    specs = node.meta.get("spec")
    return [spec for spec in (specs if isinstance(specs, (list, tuple)) else [specs]) if spec is not None]


def _modules(graph_module, node) -> list:
    """The graphs that a node runs."""
    attributes = [argument for argument in flat(node.args) if argument.op == "get_attr"]
    modules = [getattr(graph_module, str(attribute.target), None) for attribute in attributes]
    return [module for module in modules if isinstance(module, GraphModule)]


def rooms_of(graph_module, inside: dict[int, Inside]) -> list[Room] | None:
    """The rooms of a graph's branches and maps, or None if one of them may need its memory at other times."""
    nodes = list(graph_module.graph.nodes)
    steps, rooms, seen = steps_of(nodes), [], set()
    for at, node in enumerate(nodes):
        modules = _modules(graph_module, node)
        if not modules:
            continue
        # Other loops carry values from one run to the next.
        is_condition = node.target is torch.ops.higher_order.cond
        if not is_condition and node.target is not torch.ops.higher_order.map_impl:
            return None
        if any(id(module) not in inside or inside[id(module)].is_stacked or id(module) in seen for module in modules):
            return None
        seen |= {id(module) for module in modules}
        room = Room(steps[at], steps[at] + 1, _largest(modules, inside), [], modules)
        if is_condition:
            results = _results(node, modules, inside, room.sizes)
            if results is None:
                return None
            room.results = results
            lasts = [spec.lifetime[1] for spec in specs_of(node)]
            room.end = 1 + max([room.step, *(steps[-1 if last is None else last] for last in lasts)])
        rooms.append(room)
    return rooms


def _largest(modules: list, inside: dict[int, Inside]) -> list[int]:
    return [max(sizes) for sizes in zip_longest(*(inside[id(module)].sizes for module in modules), fillvalue=0)]


def stacked_rooms(graph_module, inside: dict[int, Inside], alignment: int) -> tuple[list[Room], list[list[int]], list[int]]:
    """Rooms one above the other at the bottom of each arena, for the whole run: the rooms, their places and all that they
    take. ExecuTorch puts all of them at the bottom, where a condition overwrites what the one before it has returned."""
    rooms, places, top, seen = [], [], [], set()
    for node in graph_module.graph.nodes:
        modules = [module for module in _modules(graph_module, node) if id(module) in inside and id(module) not in seen]
        seen |= {id(module) for module in modules}
        # Only one of the branches runs, but all graphs of other operators do.
        is_condition = node.target is torch.ops.higher_order.cond
        for together in [modules] if is_condition else [[module] for module in modules]:
            sizes = _largest(together, inside)
            top += [0] * (len(sizes) - len(top))
            rooms.append(Room(0, 0, sizes, [], together))
            places.append(list(top))
            top = [below + -(-size // alignment) * alignment for below, size in zip_longest(top, sizes, fillvalue=0)]
    return rooms, places, top


def _results(node, modules: list, inside: dict[int, Inside], sizes: list[int]) -> list[Result] | None:
    """Where the results of a condition lie in its room; None if one does not lie there."""
    specs = specs_of(node)
    results = []
    outputs = [flat_all(list(module.graph.nodes)[-1].args) for module in modules]
    if any(len(branch) != len(specs) for branch in outputs):
        return None
    for spec, *branches in zip(specs, *outputs):
        spans = []
        for module, output in zip(modules, branches):
            own = Graph.spec_of(output) if hasattr(output, "meta") else None
            known = inside[id(module)].results.get(id(own))
            if known is None and own is not None and any(own is other for other in inside[id(module)].specs):
                known = (own.mem_id or 1, own.mem_offset, own.mem_offset + own.allocated_memory)
            if known is None:
                return None
            spans.append(known)
        if len({arena for arena, _, _ in spans}) > 1 or (spec.mem_id or spans[0][0]) != spans[0][0]:
            return None
        arena, low, high = spans[0][0], min(low for _, low, _ in spans), max(high for _, _, high in spans)
        if low + spec.allocated_memory > sizes[arena]:
            return None
        results.append(Result(spec, arena, low, high))
    return results


def flat_all(arguments) -> list:
    return [item for argument in arguments for item in (flat_all(argument) if isinstance(argument, (list, tuple)) else [argument])]


def base_of(spec):
    """The spec that this one is declared to lie in; ExecuTorch 1.0 has none."""
    return getattr(spec, "storage_base", None)


def flat(arguments):
    for argument in arguments:
        if isinstance(argument, (list, tuple)):
            yield from flat(argument)
        elif hasattr(argument, "meta"):
            yield argument


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
