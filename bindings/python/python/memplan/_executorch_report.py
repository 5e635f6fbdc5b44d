"""What a pass says of a plan: its size, over what it is proven, and what would make it smaller."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch

from ._executorch_line import arguments_of, base_of, spec_of
from ._executorch_state import phantoms

if TYPE_CHECKING:
    from ._executorch_graph import Graph
    from ._executorch_plan import Sharing


_WORTH = 20
"""Advice is given on tensors that take at least one part in 20 of the peak."""


@dataclass(frozen=True)
class Report:
    """The plan of one graph, compared with greedy. Sizes are in bytes, for all arenas of one device."""

    bytes: int
    greedy: int
    lower_bound: int
    """No plan of these tensors, with the same ones in place and the same copies removed, is smaller."""
    proven_optimal: bool
    """True if the plan has the size of the lower bound."""
    in_place: int
    """The number of tensors that lie over another one."""
    removed: int = 0
    """The number of copies that were removed."""
    concatenated: int = 0
    """The number of concatenations that were removed, because their inputs lie in the output."""
    requests: int = 0
    """The number of requests to lie over another tensor; most cannot be accepted because it is read later."""
    is_greedys: bool = False
    """True if greedy's plan was smaller, and is used."""
    pools: Mapping[str, int] = field(default_factory=dict)
    """The bytes of each pool, if there are several."""
    method: str = ""
    """The method of the program; empty if the pass was not called by `to_executorch`."""
    scope: Literal["all_choices", "these_choices"] = "all_choices"
    """Whether the bound holds for every choice of tensors in place and copies to remove, or for the one made."""
    advice: str = ""
    """What would make the arena smaller."""

    def __str__(self) -> str:
        text = f"{self.method}: " if self.method else ""
        proof = "proven" if self.scope == "all_choices" else "proven for these choices"
        if self.pools:
            text += ", ".join(f"{name} {_bytes(size)}" for name, size in self.pools.items())
            text += f"; {proof} the least traffic and the smallest arenas" if self.proven_optimal else ""
        elif self.bytes == self.lower_bound:
            text += f"arena {_bytes(self.bytes)} = the lower bound{f', {proof}' if self.proven_optimal else ''}"
        else:
            text += f"arena {_bytes(self.bytes)}, lower bound {_bytes(self.lower_bound)}"
        text += f"; greedy {_bytes(self.greedy)}"
        if self.greedy > self.bytes:
            text += f" (-{100 * (self.greedy - self.bytes) / self.greedy:.1f} %)"
        if self.is_greedys:
            text += ", whose plan is used"
        if self.in_place:
            text += f"; {self.in_place} in place"
        counts = [(self.removed, "copy", "copies"), (self.concatenated, "concatenation", "concatenations")]
        removed = [f"{count} {one if count == 1 else several}" for count, one, several in counts if count]
        text += f", {' and '.join(removed)} removed" if removed else ""
        return f"{text}; {self.advice}" if self.advice else text


def _bytes(value: int) -> str:
    return f"{value:,} B".replace(",", " ")


def method_name() -> str:
    """The method that `to_executorch` is planning. It calls a pass without the name, which it has in a variable."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "to_executorch":
        frame = frame.f_back
    name = frame.f_locals.get("name") if frame is not None else None
    return name if isinstance(name, str) else ""


def bound_of_all_choices(graph: Graph, sharing: Sharing) -> int:
    """A number of bytes below which there is no plan, whichever of the possible copies and concatenations are removed
    and whichever outputs lie over their arguments. In each step, the tensors that might share bytes count as much as
    the largest of them; those related by copies count as one in all steps. The arenas are added up."""
    number = list(range(len(graph.specs)))

    def root(at: int, over: list[int]) -> int:
        while over[at] != at:
            over[at] = at = over[over[at]]
        return at

    def join(a, b, over: list[int]) -> None:
        if id(a) in graph.index and id(b) in graph.index:
            over[root(graph.index[id(a)], over)] = root(graph.index[id(b)], over)

    for spec in graph.specs:
        if (base := base_of(spec)) is not None:
            join(spec, base, number)
    for _, out, below, _ in sharing.copies:
        join(out, below, number)
    for cat in sharing.cats:
        for part, _ in cat.parts:
            join(part, cat.whole, number)
    for made, result in graph.returned:
        join(graph.specs[made], graph.specs[result], number)
    if sharing.state is not None:
        below = {}
        for out, under, _ in sharing.pairs:
            below.setdefault(id(out), []).append(under)
        for back in sharing.state.backs:
            # Each of a chain of updates may be made in the buffer.
            chain, seen = [back.value], set()
            while chain:
                spec = chain.pop()
                if id(spec) not in seen:
                    seen.add(id(spec))
                    join(spec, back.buffer, number)
                    chain += below.get(id(spec), [])
    for spec, buffer, _ in phantoms(graph):
        join(spec, buffer, number)
    groups = [root(at, number) for at in range(len(number))]
    pairs = [(graph.index[id(out)], graph.index[id(below)]) for out, below, _ in sharing.pairs]
    edges: dict[int, list[int]] = {}
    for a, b in pairs:
        edges.setdefault(groups[a], []).append(groups[b])
    bounds: dict[int, int] = {}
    for alive in _alive(graph):
        # Of each group, the largest alive.
        largest: dict[int, int] = {}
        for at in alive:
            largest[groups[at]] = max(largest.get(groups[at], 0), graph.sizes[at])
        over = {group: group for group in largest}

        def top(group: int, over=over) -> int:
            while over[group] != group:
                group = over[group]
            return group

        for group in largest:
            for other in edges.get(group, ()):
                if other in over:
                    over[top(group)] = top(other)
        sizes: dict[int, int] = {}
        for group, size in largest.items():
            sizes[top(group)] = max(sizes.get(top(group), 0), size)
        arenas: dict[int, int] = {}
        for group, size in sizes.items():
            arena = graph.arenas[group] or 1
            arenas[arena] = arenas.get(arena, 0) + size
        for arena, size in arenas.items():
            bounds[arena] = max(bounds.get(arena, 0), size)
    return sum(bounds.values())


def _alive(graph: Graph):
    """The places of the specs that are alive, in each step where one begins."""
    order = sorted((begin, at) for at, begin in enumerate(graph.begins) if graph.sizes[at])
    alive: list[int] = []
    for place, (begin, at) in enumerate(order):
        alive.append(at)
        if place + 1 == len(order) or order[place + 1][0] != begin:
            alive = [other for other in alive if graph.ends[other] > begin]
            yield alive


def folding(graph: Graph) -> str:
    """Advises to fold what operators make of weights alone, if the step with the most bytes has such tensors."""
    constant: dict[int, str] = {}
    for node, _, out in graph.operators(graph.top):
        read = [spec for spec in map(spec_of, arguments_of(node)) if spec is not None]
        random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        if read and not random and all(spec.const or id(spec) in constant for spec in read):
            constant[id(out)] = node.name
    peak = max(_alive(graph), key=lambda alive: sum(graph.sizes[at] for at in alive), default=[])
    folded = [at for at in peak if id(graph.specs[at]) in constant]
    if _WORTH * sum(graph.sizes[at] for at in folded) <= sum(graph.sizes[at] for at in peak):
        return ""
    largest = max(folded, key=lambda at: graph.sizes[at])
    size, name = sum(graph.sizes[at] for at in folded), constant[id(graph.specs[largest])]
    found = f"the peak holds {_bytes(size)} that operators make of weights alone, such as {name}"
    return f"{found}: fold them with constant_prop_pass"
