"""Smaller arenas for ExecuTorch: memplan in place of its greedy memory planning.

    from memplan.executorch import MemoryPlanningPass

    program = to_edge(torch.export.export(model, inputs)).to_executorch(
        ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass())
    )

Make a new pass for every export: it keeps state between the methods of a program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import zip_longest
from typing import Any

from executorch.exir.memory_planning import MemoryAlgoResult, greedy
from executorch.exir.passes import MemoryPlanningPass as _MemoryPlanningPass
from executorch.exir.tensor import ALIGNMENT

from . import Pool
from ._executorch_graph import Graph, Inside, Kernels, Room, flat, rooms_of, stacked_rooms
from ._executorch_plan import Planned, Sharing, Target, plan_graph

__all__ = ["Kernels", "MemoryPlanningPass", "Report", "algorithm", "memplan", "portable_kernels", "read_kernels"]


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
    concatenated: int = 0
    """The number of concatenations that were removed, because their inputs lie in the output."""
    requests: int = 0
    """The number of requests to lie over another tensor; most cannot be honoured because it is read later."""
    is_greedys: bool = False
    """True if greedy's plan was smaller, and is used."""
    pools: Mapping[str, int] = field(default_factory=dict)
    """The bytes of each pool, if there are several."""

    def __str__(self) -> str:
        number = lambda value: f"{value:,} B".replace(",", " ")  # noqa: E731
        if self.bytes == self.lower_bound:
            bound = "the lower bound, proven" if self.proven_optimal else "the lower bound"
        else:
            bound = f"lower bound {number(self.lower_bound)}"
        if self.pools:
            text = ", ".join(f"{name} {number(size)}" for name, size in self.pools.items())
            text += "; proven the least traffic and the smallest arenas" if self.proven_optimal else ""
        elif self.bytes == self.lower_bound:
            text = f"arena {number(self.bytes)} = {bound}"
        else:
            text = f"arena {number(self.bytes)}, {bound}"
        text += f"; greedy {number(self.greedy)}"
        if self.greedy > self.bytes:
            text += f" (-{100 * (self.greedy - self.bytes) / self.greedy:.1f} %)"
        if self.is_greedys:
            text += ", whose plan is used"
        if self.in_place:
            text += f"; {self.in_place} in place"
        counts = [(self.removed, "copy", "copies"), (self.concatenated, "concatenation", "concatenations")]
        removed = [f"{count} {one if count == 1 else several}" for count, one, several in counts if count]
        return text + (f", {' and '.join(removed)} removed" if removed else "")


def _best_plan(specs, graph_module, alignment, target, *, kernels, copies=False, top=False, rooms=None) -> Planned:
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"alignment {alignment} is not a power of two")
    graph = Graph(specs, graph_module, alignment, rooms)
    pairs = graph.in_place(kernels, top) if kernels else []
    choices = [Sharing(pairs)]
    if copies and top:
        outputs = {id(graph.spec_of(node)) for node in flat(graph.nodes[-1].args)}
        found, cats = graph.copies(outputs), graph.cats(outputs)
        choices = [Sharing(pairs, found, cats), Sharing(pairs, found), Sharing(pairs, cats=cats), *choices]
    if target.pools:
        choices.append(Sharing())  # What shares memory must lie in one pool, which can make it too large.
    # A small slice can keep a large tensor alive, and then a copy less costs more than it saves.
    different = [choice for at, choice in enumerate(choices) if choice not in choices[:at]]
    best, error = None, None
    for choice in different:
        try:
            planned = plan_graph(graph, choice, target)
        except ValueError as wrong:
            error = wrong
        else:
            best = planned if best is None or planned.rank < best.rank else best
    if best is None:
        raise error
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
        target = Target(_reserved(graph_module), extra_padding, options=options)
        result = _best_plan(specs, graph_module, alignment, target, kernels=kernels or {}).result
        return _MemberResult(result.spec_dict, result.bufsizes)

    planned.__name__ = planned.__qualname__ = name
    return planned


memplan = algorithm()
"""An algorithm for `MemoryPlanningAlgorithmSuite` that uses lifetimes alone."""


def _reserved(graph_module) -> list[int]:
    """The bytes that branches and loops have taken of each arena."""
    return list(getattr(graph_module, "input_mem_buffer_sizes", None) or [])


class _Algorithm:
    """The algorithm of the pass: greedy and memplan on the same specs, and the smaller of the two."""

    __name__ = "memplan"

    def __init__(self, kernels: Kernels, copies: bool, pools: Mapping[int, Pool], options: dict):
        self.kernels, self.copies, self.pools, self.options = kernels, copies, pools, options
        self.reports: list[Report] = []
        self.begin(None)

    def begin(self, top) -> None:
        """Forgets the graphs before, for another method of the program."""
        self.top = top
        self.inside: dict[int, Inside] = {}
        self.greedy: dict[int, list[int]] = {}
        self.removed: list = []

    def __call__(self, alignment, specs, graph_module, graph_signature, extra_padding) -> list[int]:
        specs, reserved = list(specs), _reserved(graph_module)
        if not specs and not any(reserved):
            sizes = reserved if len(reserved) > 1 else [0, 0]
            self.inside[id(graph_module)] = Inside(sizes, [], {})
            return sizes
        if self.pools and any(int(getattr(spec, "device", 0) or 0) for spec in specs):
            raise ValueError("pools are memories of the CPU, but this graph has tensors on another device")
        top = graph_module is self.top
        # Pools have a capacity each, so there a branch keeps its own bytes at the bottom.
        rooms = rooms_of(graph_module, self.inside) if any(reserved) and not self.pools else None
        stacked, places, bottom = [], [], reserved
        if rooms is None and any(reserved):
            stacked, places, bottom = stacked_rooms(graph_module, self.inside, alignment)
        target = Target([] if rooms else bottom, extra_padding, self.pools, self.options)
        best = _best_plan(
            specs, graph_module, alignment, target, kernels=self.kernels, copies=self.copies, top=top, rooms=rooms
        )
        alone = own = greedy(alignment, specs, graph_module, graph_signature, extra_padding)
        if any(reserved):
            # In a program of its own, greedy would have planned the branches as well.
            branches = [self.greedy[id(module)] for module in graph_module.children() if id(module) in self.greedy]
            graph_module.input_mem_buffer_sizes = [max(sizes) for sizes in zip_longest(*branches, fillvalue=0)]
            alone = greedy(alignment, specs, graph_module, graph_signature, extra_padding)
            graph_module.input_mem_buffer_sizes = reserved
        self.greedy[id(graph_module)] = alone.bufsizes
        # Conditions overwrite each other's results in greedy's plan, which is no choice then.
        if not self.pools and not rooms and len(stacked) < 2 and sum(own.bufsizes) < best.size:
            best = Planned(own, best.lower_bound, False)
        for spec, place in best.result.spec_dict.items():
            spec.mem_id, spec.mem_obj_id, spec.mem_offset = place.mem_id, place.mem_obj_id, place.mem_offset
        for spec, below, offset in best.bases.values():
            if hasattr(spec, "storage_base"):
                spec.storage_base, spec.storage_base_offset = below, offset
        self.inside[id(graph_module)] = self.around(specs, rooms or stacked, best, places or best.rooms)
        self.inside[id(graph_module)].is_stacked = bool(stacked)
        if top:
            self.check_branches(best)
            self.removed += best.copies + [cat.node for cat in best.cats]
            sizes = dict(enumerate(best.result.bufsizes))
            pools = {pool.name: sizes.pop(arena) for arena, pool in self.pools.items()}
            pools |= {f"arena {arena}": size for arena, size in sizes.items() if size}
            self.reports.append(
                Report(
                    best.size, sum(alone.bufsizes), min(best.lower_bound, best.size),
                    best.proven_optimal and best.lower_bound == best.size, best.in_place, len(best.copies),
                    len(best.cats), best.requests, best.result is own, pools if self.pools else {},
                )
            )  # fmt: skip
        return best.result.bufsizes

    def check_branches(self, best: Planned) -> None:
        """Raises an error if branches and loops, which lie at the bottom of a pool, are not within its limits."""
        inside = self.inside[id(self.top)].specs
        for arena, pool in self.pools.items():
            size = best.result.bufsizes[arena]
            if pool.capacity is not None and size > pool.capacity:
                raise ValueError(f"pool {pool.name} has {pool.capacity} B, but with its branches and loops {size} B are needed")
            for spec in inside:
                low, high = spec.mem_offset, spec.mem_offset + spec.allocated_memory
                if spec.mem_id == arena and any(low < end and begin < high for begin, end in pool.reserved):
                    raise ValueError(f"a branch or loop would use reserved bytes of pool {pool.name}")

    def around(self, specs: list, rooms: list[Room], planned: Planned, places: list[list[int]]) -> Inside:
        """Moves what is planned in the rooms to their places, and returns all that is planned in this graph."""
        inside = Inside(planned.result.bufsizes, specs, {})
        for room, bottom in zip(rooms, places):
            for module in room.modules:
                for spec in self.inside[id(module)].specs:
                    spec.mem_offset += bottom[spec.mem_id]
                inside.specs = inside.specs + self.inside[id(module)].specs
            for result in room.results:
                place = bottom[result.arena]
                inside.results[id(result.spec)] = (result.arena, place + result.low, place + result.high)
        return inside


class MemoryPlanningPass(_MemoryPlanningPass):
    """Plans the arenas of a program with memplan; not larger than greedy, whose plan is used if it is
    smaller and right, unless there are pools.

    `inplace` lets outputs of ExecuTorch's CPU kernels lie over an argument that is not read again; `kernels` is a table for
    other kernels. `remove_copies` removes operators that copy bytes to where they already lie, and concatenations whose
    inputs can be made inside the output, except for graph outputs. `pools` are the memories of the device, the fastest first:
    a dictionary from `mem_id` to `memplan.Pool`, or ExecuTorch's `TargetMemoryMap`. As little traffic as possible goes to
    pools that cost more, and greedy, which knows no capacities, is not compared.
    `report` is called with a sentence per method, printed to standard error by default; None disables it. `reports` holds
    the figures. Other arguments are those of ExecuTorch's pass and of `memplan.plan`.
    """

    def __init__(
        self,
        *,
        inplace: bool = True,
        kernels: Kernels | None = None,
        remove_copies: bool = True,
        pools: Mapping[int, Pool] | Any = None,
        report: Callable[[str], object] | None = lambda text: print(text, file=sys.stderr),
        alloc_graph_input: bool = True,
        alloc_graph_output: bool = True,
        alloc_mutable_buffers: bool = True,
        share_mutable_buffers: bool = False,
        alignment: int = ALIGNMENT,
        **options,
    ):
        table = (portable_kernels() if kernels is None else kernels) if inplace else {}
        pools = _pools(pools)
        if pools and share_mutable_buffers:
            raise ValueError("ExecuTorch shares mutable buffers only where all other tensors lie in one arena, without pools")
        self._planner = _Algorithm(table, remove_copies, pools, options)
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
        planner.begin(graph_module)
        known = len(planner.reports)
        result = super().run(graph_module, graph_signature)
        for node in planner.removed:
            (out,) = [node.kwargs[a.name] for a in node.target._schema.arguments if a.is_out]
            node.replace_all_uses_with(out)
            graph_module.graph.erase_node(node)
        if planner.removed:
            graph_module.recompile()
        if self._say is not None:
            for report in planner.reports[known:]:
                self._say(f"memplan: {report}")
        return result


def _pools(pools) -> dict[int, Pool]:
    """The memories by arena. Each of a `TargetMemoryMap` costs more than those before it."""
    if pools is None:
        return {}
    if banks := getattr(pools, "banks", None):
        return {
            bank.mem_id: Pool(bank.name, capacity=bank.size, alignment=bank.alignment or 1, cost=cost)
            for cost, bank in enumerate(banks)
        }
    for arena, pool in dict(pools).items():
        if not isinstance(arena, int) or arena < 1 or not isinstance(pool, Pool):
            raise ValueError(f"pools is a dictionary from a mem_id, at least 1, to a memplan.Pool, but has {arena!r}: {pool!r}")
    return dict(pools)
