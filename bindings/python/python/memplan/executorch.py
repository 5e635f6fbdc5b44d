"""Smaller arenas for ExecuTorch: memplan in place of its greedy memory planning.

    from memplan.executorch import MemoryPlanningPass

    program = to_edge(torch.export.export(model, inputs)).to_executorch(
        ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass())
    )

Make a new pass for every export: it keeps state between the methods of a program.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from executorch.exir import memory
from executorch.exir.memory_planning import MemoryAlgoResult, SpecAllocResult, greedy
from executorch.exir.passes import MemoryPlanningPass as _MemoryPlanningPass
from executorch.exir.tensor import ALIGNMENT

from . import Problem, plan, verify

__all__ = ["Kernels", "MemoryPlanningPass", "Report", "algorithm", "memplan", "portable_kernels", "read_kernels"]

Kernels = Mapping[str, tuple[int, ...]]
"""The arguments that an operator's first output may be written over, by the operator's name, such as `aten::relu`."""


def read_kernels(text: str) -> dict[str, tuple[int, ...]]:
    """Reads a table of kernels: a line is an operator and the places of its arguments; `#` begins a comment."""
    kernels = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words or words[0] == "kernels":
            continue
        if len(words) < 2 or not all(word.isdigit() for word in words[1:]):
            raise ValueError(f"line {number} is not an operator with the places of arguments: {line!r}")
        if words[0] in kernels:
            raise ValueError(f"line {number} repeats {words[0]}")
        kernels[words[0]] = tuple(int(word) for word in words[1:])
    return kernels


@cache
def portable_kernels() -> Kernels:
    """The kernels of ExecuTorch's own CPU libraries, portable and optimized. A backend with other kernels has other
    abilities: start from an empty table there."""
    return read_kernels(resources.files(__package__).joinpath("executorch_kernels.txt").read_text())


# The one object that all specs of an arena belong to; only ExecuTorch's verifier reads it.
_OBJECT = 0


@dataclass(frozen=True)
class Report:
    """The plan of one graph, compared with greedy. Sizes are in bytes, for all arenas of one device."""

    bytes: int
    greedy: int
    lower_bound: int
    """No plan of these tensors, with the same ones in place, is smaller."""
    proven_optimal: bool
    in_place: int
    """The number of tensors that lie over another one."""
    removed: int = 0
    """The number of copies that were removed."""
    requests: int = 0
    """The number of requests to lie over another tensor; most cannot be honoured because it is read later."""

    def __str__(self) -> str:
        number = lambda value: f"{value:,} B".replace(",", " ")  # noqa: E731
        if self.bytes == self.lower_bound:
            bound = "the lower bound, proven" if self.proven_optimal else "the lower bound"
        else:
            bound = f"lower bound {number(self.lower_bound)}"
        text = f"arena {number(self.bytes)} = {bound}" if self.bytes == self.lower_bound else f"arena {number(self.bytes)}, {bound}"
        text += f"; greedy {number(self.greedy)}"
        if self.greedy > self.bytes:
            text += f" (-{100 * (self.greedy - self.bytes) / self.greedy:.1f} %)"
        if self.in_place:
            text += f"; {self.in_place} in place"
        if self.removed:
            text += f", {self.removed} {'copy' if self.removed == 1 else 'copies'} removed"
        return text


@dataclass
class _Planned:
    """A plan before it is written on the specs."""

    result: MemoryAlgoResult
    lower_bound: int
    proven_optimal: bool
    requests: int
    bases: list[tuple[Any, Any, int]]
    """Specs that lie over another: the spec, the one below it, and the offset there."""
    copies: list[Any]
    """Nodes that copy bytes to the place where they already lie."""


class _Graph:
    """The chunks of a graph: specs with their lifetimes in steps, and the specs that they may lie over."""

    def __init__(self, specs: list, graph_module, alignment: int):
        self.alignment = alignment
        self.specs = list({id(spec): spec for spec in specs}.values())
        self.index = {id(spec): at for at, spec in enumerate(self.specs)}
        self.nodes = list(graph_module.graph.nodes)
        # The allocation of an output stands before its operator, and has its step: an output then begins in the last
        # step of the argument that it may lie over.
        steps, step = [], 0
        for node in self.nodes:
            steps.append(step)
            step += node.target is not memory.alloc
        self.sizes = [spec.realign(alignment) for spec in self.specs]
        self.begins = [steps[spec.lifetime[0]] for spec in self.specs]
        self.ends = [steps[spec.lifetime[1]] + 1 for spec in self.specs]

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
            return _Graph.shape_of(node.args[0], node.args[1])
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
                    others = [self.spec_of(other) for other in _flat(node.args) if other is not argument]
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
        if shape is None or shape != self.shape_of(node) or _base(out) is not None or _base(below) is not None:
            return False
        if (below.mem_id or 1) != (out.mem_id or 1):
            return False
        # Another view of the same bytes with other sizes would be read in another order.
        others = [other for other in _flat(node.args) if other is not argument and self.spec_of(other) is below]
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
            if {id(below), id(out)} & written or id(out) in outputs or _base(out) is not None or _base(below) is not None:
                continue
            if out.is_dynamic_shape_tensor or below.is_dynamic_shape_tensor:
                continue
            if (below.mem_id or 1) != (out.mem_id or 1) or out.scalar_type != below.scalar_type:
                continue
            offset = _same_bytes(node, name, node.args[0].meta["spec"], out)
            if offset is not None and offset % self.alignment == 0 and out.nbytes() > 0:
                found.append((node, out, below, offset))
        return found


def _base(spec):
    """The spec that this one is declared to lie in; ExecuTorch 1.0 has none."""
    return getattr(spec, "storage_base", None)


def _flat(arguments):
    for argument in arguments:
        if isinstance(argument, (list, tuple)):
            yield from _flat(argument)
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


def _same_bytes(node, name: str, argument, out) -> int | None:
    """The offset in the argument at which the output's bytes already lie, or None."""
    if name not in _SAME_ORDER or isinstance(argument, (list, tuple)):
        return None
    dense = lambda spec: list(spec.dim_order) == list(range(len(spec.shape)))  # noqa: E731
    if name in ("aten::clone", "aten::alias_copy", "aten::detach_copy", "dim_order_ops::_clone_dim_order"):
        return 0 if list(argument.shape) == list(out.shape) and list(argument.dim_order) == list(out.dim_order) else None
    if not dense(argument) or not dense(out):
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


def _plan_graph(graph: _Graph, reserved: list[int], extra_padding: int, pairs: list, copies: list, options: dict) -> _Planned:
    """Plans the chunks arena by arena. `pairs` may lie over each other, and `copies` share a chunk with their argument."""
    specs, index = graph.specs, graph.index
    # A spec lies in a root, at an offset: declared parts of another spec, and copies.
    declared = [(spec, _base(spec), spec.storage_base_offset) for spec in specs if _base(spec) is not None]
    merged = [(out, below, offset) for _, out, below, offset in copies]
    links = {index[id(spec)]: (below, offset) for spec, below, offset in declared + merged}

    def root(at: int) -> tuple[int, int]:
        if at not in links:
            return at, 0
        below, offset = links[at]
        if id(below) not in index:
            raise ValueError(f"{_name(specs[at])} lies in a tensor that is not planned with it")
        found, inside = root(index[id(below)])
        return found, inside + offset

    base, inner = list(range(len(specs))), [0] * len(specs)
    begins, ends = list(graph.begins), list(graph.ends)
    for at in links:
        base[at], inner[at] = root(at)
        begins[base[at]] = min(begins[base[at]], graph.begins[at])
        ends[base[at]] = max(ends[base[at]], graph.ends[at])

    arenas: dict[int, list[int]] = {}
    for at, spec in enumerate(specs):
        if at not in links:
            arenas.setdefault(spec.mem_id or 1, []).append(at)
    sizes = [0] * max([1 + max(arenas, default=1), len(reserved)])
    for arena, size in enumerate(reserved):
        sizes[arena] = size
    bound = sum(sizes)
    offsets = [0] * len(specs)
    bases = []
    proven = True
    for arena, roots in sorted(arenas.items()):
        number = {at: chunk for chunk, at in enumerate(roots)}
        requests = []
        for out, below, others in pairs:
            upper, lower = index[id(out)], index[id(below)]
            over, under = base[upper], base[lower]
            # The operator must not read another spec that lies in the same chunk.
            read = [index[id(other)] for other in others if other is not below and id(other) in index]
            apart = all(base[at] != under for at in read)
            # A chunk that has grown to hold its copies must fit into the one that it lies over.
            fits = inner[lower] + graph.sizes[over] <= graph.sizes[under]
            if over in number and under in number and over != under and inner[upper] == 0 and apart and fits:
                requests.append((number[over], number[under], inner[lower], out, below))
        problem = Problem.from_arrays(
            [begins[at] for at in roots],
            [ends[at] for at in roots],
            [graph.sizes[at] for at in roots],
            [(over, under, offset) for over, under, offset, _, _ in requests],
            alignment=graph.alignment,
        )
        planned = plan(problem, **options)
        # ExecuTorch checks only the plans of its own algorithms.
        if wrong := verify(problem, planned):
            raise RuntimeError(f"memplan made a wrong plan; please report it: {wrong[0]}")
        bottom = -(-(reserved[arena] if arena < len(reserved) else 0) // graph.alignment) * graph.alignment
        for at, offset in zip(roots, planned.offsets):
            offsets[at] = bottom + offset
        honoured = dict(enumerate(planned.overwritten))
        for over, under, offset, out, below in requests:
            if honoured.get(over) == under:
                bases.append((out, below, 0))
                honoured[over] = None
        sizes[arena] = bottom + planned.pool_size + extra_padding
        bound += bottom - (reserved[arena] if arena < len(reserved) else 0) + planned.lower_bound + extra_padding
        proven &= planned.proven_optimal
    results = {
        spec: SpecAllocResult(specs[base[at]].mem_id or 1, _OBJECT, offsets[base[at]] + inner[at])
        for at, spec in enumerate(specs)
    }
    result = MemoryAlgoResult(results, sizes)
    return _Planned(result, bound, proven, len(pairs), bases + merged, [node for node, *_ in copies])


def _name(spec) -> str:
    return f"a tensor of the shape {list(spec.shape)}"


def _best_plan(alignment, specs, graph_module, extra_padding, *, kernels, copies, top, options) -> _Planned:
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"alignment {alignment} is not a power of two")
    reserved = list(getattr(graph_module, "input_mem_buffer_sizes", None) or [])
    graph = _Graph(specs, graph_module, alignment)
    pairs = graph.in_place(kernels, top) if kernels else []
    best = _plan_graph(graph, reserved, extra_padding, pairs, [], options)
    if copies and top:
        outputs = {id(graph.spec_of(node)) for node in _flat(graph.nodes[-1].args)}
        found = graph.copies(outputs)
        merged = _plan_graph(graph, reserved, extra_padding, pairs, found, options) if found else best
        # A small slice can keep a large tensor alive, and then it costs more than it saves.
        if sum(merged.result.bufsizes) <= sum(best.result.bufsizes):
            best = merged
    return best


class _MemberResult(MemoryAlgoResult):
    """The result of a member of a suite. A pass that used it directly would read the sizes immediately."""

    def __getitem__(self, _):
        raise TypeError(
            "memplan is an algorithm for MemoryPlanningAlgorithmSuite, which writes the results on the tensors; "
            "as a pass, use memplan.executorch.MemoryPlanningPass"
        )


def algorithm(*, kernels: Kernels | None = None, name: str = "memplan", **options) -> Callable[..., MemoryAlgoResult]:
    """Returns an algorithm for `MemoryPlanningAlgorithmSuite`, with its own name: a suite keeps one result per name.

    It uses lifetimes alone, unless `kernels` lists those that may work in place. `options` are those of `memplan.plan`.
    """

    def planned(alignment, specs, graph_module, graph_signature=None, extra_padding=0) -> MemoryAlgoResult:
        result = _best_plan(
            alignment, specs, graph_module, extra_padding, kernels=kernels or {}, copies=False, top=False, options=options
        ).result
        return _MemberResult(result.spec_dict, result.bufsizes)

    planned.__name__ = planned.__qualname__ = name
    return planned


memplan = algorithm()
"""An algorithm for `MemoryPlanningAlgorithmSuite` that uses lifetimes alone."""


class _Algorithm:
    """The algorithm of the pass: greedy and memplan on the same specs, and the smaller of the two."""

    __name__ = "memplan"

    def __init__(self, kernels: Kernels, copies: bool, options: dict):
        self.kernels, self.copies, self.options = kernels, copies, options
        self.top = None
        self.reports: list[Report] = []
        self.copy_nodes: list = []

    def __call__(self, alignment, specs, graph_module, graph_signature, extra_padding) -> list[int]:
        specs = list(specs)
        if not specs:
            reserved = list(getattr(graph_module, "input_mem_buffer_sizes", None) or [])
            return reserved if len(reserved) > 1 else [0, 0]
        top = graph_module is self.top
        best = _best_plan(
            alignment, specs, graph_module, extra_padding,
            kernels=self.kernels, copies=self.copies, top=top, options=self.options,
        )  # fmt: skip
        own = greedy(alignment, specs, graph_module, graph_signature, extra_padding)
        if sum(own.bufsizes) < sum(best.result.bufsizes):
            best = _Planned(own, best.lower_bound, False, 0, [], [])
        for spec, place in best.result.spec_dict.items():
            spec.mem_id, spec.mem_obj_id, spec.mem_offset = place.mem_id, place.mem_obj_id, place.mem_offset
        for spec, below, offset in best.bases:
            if hasattr(spec, "storage_base"):
                spec.storage_base, spec.storage_base_offset = below, offset
        if top:
            self.copy_nodes += best.copies
            size = sum(best.result.bufsizes)
            self.reports.append(
                Report(
                    size, sum(own.bufsizes), min(best.lower_bound, size), best.proven_optimal and best.lower_bound == size,
                    len(best.bases), len(best.copies), best.requests,
                )
            )  # fmt: skip
        return best.result.bufsizes


class MemoryPlanningPass(_MemoryPlanningPass):
    """Plans the arenas of a program with memplan; never larger than greedy, whose plan is used if it is smaller.

    `inplace` lets outputs of ExecuTorch's CPU kernels lie over an argument that is not read again; `kernels` is a table for
    other kernels. `remove_copies` removes operators that copy bytes to where they already lie, except for graph outputs.
    `report` is called with a sentence per method, printed to standard error by default; None disables it. `reports` holds
    the figures. Other arguments are those of ExecuTorch's pass and of `memplan.plan`.
    """

    def __init__(
        self,
        *,
        inplace: bool = True,
        kernels: Kernels | None = None,
        remove_copies: bool = True,
        report: Callable[[str], object] | None = lambda text: print(text, file=sys.stderr),
        alloc_graph_input: bool = True,
        alloc_graph_output: bool = True,
        alloc_mutable_buffers: bool = True,
        share_mutable_buffers: bool = False,
        alignment: int = ALIGNMENT,
        **options,
    ):
        table = (portable_kernels() if kernels is None else kernels) if inplace else {}
        self._planner = _Algorithm(table, remove_copies, options)
        self._say = report
        super().__init__(
            memory_planning_algo=self._planner,
            # In the step of its operator, an output in place is alive together with the tensor that it lies over.
            allow_lifetime_and_storage_overlap=False,
            alloc_graph_input=alloc_graph_input,
            alloc_graph_output=alloc_graph_output,
            alloc_mutable_buffers=alloc_mutable_buffers,
            share_mutable_buffers=share_mutable_buffers,
            alignment=alignment,
        )

    @property
    def reports(self) -> list[Report]:
        """A report for each method."""
        return self._planner.reports

    def run(self, graph_module, graph_signature=None):
        planner = self._planner
        planner.top, planner.copy_nodes = graph_module, []
        known = len(planner.reports)
        result = super().run(graph_module, graph_signature)
        for node in planner.copy_nodes:
            (out,) = [node.kwargs[a.name] for a in node.target._schema.arguments if a.is_out]
            node.replace_all_uses_with(out)
            graph_module.graph.erase_node(node)
        if planner.copy_nodes:
            graph_module.recompile()
        if self._say is not None:
            for report in planner.reports[known:]:
                self._say(f"memplan: {report}")
        return result
