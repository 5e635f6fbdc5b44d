"""A plan of one of ExecuTorch's graphs: the arenas, and where everything lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from executorch.exir.memory_planning import MemoryAlgoResult, SpecAllocResult

from . import Pool, Problem, plan, verify
from ._executorch_graph import Cat, Graph
from ._executorch_line import base_of, base_offset
from ._executorch_state import State, WriteBack, phantoms

# The one object that all specs of an arena belong to; only ExecuTorch's verifier reads it.
_OBJECT = 0


@dataclass(frozen=True)
class Sharing:
    """What may lie over or inside what."""

    pairs: list = field(default_factory=list)
    """Outputs, each with a spec that it may be written over and those that its operator reads as well."""
    copies: list = field(default_factory=list)
    """Operators that copy: the node, the two specs and the offset."""
    cats: list[Cat] = field(default_factory=list)
    state: State | None = None
    """The buffers that are written back, where values may be made in them."""


@dataclass(frozen=True)
class Target:
    """What the arenas look like before anything is planned."""

    reserved: list[int]
    """The bytes at the bottom of each arena that branches and loops have taken in a suite, which plans each by itself."""
    extra_padding: int = 0
    pools: Mapping[int, Pool] = field(default_factory=dict)
    """Memories by arena, the fastest first. Other arenas have no limits, and hold what asks for them."""
    options: dict = field(default_factory=dict)


@dataclass
class Planned:
    """A plan before it is written on the specs."""

    result: MemoryAlgoResult
    lower_bound: int
    proven_optimal: bool
    requests: int = 0
    cost: tuple[int, ...] = ()
    """The traffic and the sizes of the pools, if there are any, the last one first."""
    bases: dict[int, tuple[Any, Any, int]] = field(default_factory=dict)
    """Specs that lie over or in another, by id: the spec, the other one, and the offset there."""
    in_place: int = 0
    copies: list = field(default_factory=list)
    """Nodes that copy bytes to the place where they already lie."""
    cats: list = field(default_factory=list)
    """Nodes that concatenate what lies one behind the other."""
    proven_for_all: bool = True
    """True if the lower bound holds for other choices of what shares bytes as well."""
    padding: int = 0
    """The bytes behind the arenas."""
    advice: str = ""

    @property
    def size(self) -> int:
        return sum(self.result.bufsizes)

    @property
    def rank(self) -> tuple[int, ...]:
        """Smaller is better."""
        return *self.cost, self.size


class Chunks:
    """The specs of a graph as chunks. A declared part of another spec, a copy, or a value that is made in the buffer
    that it is written back to, belongs to the chunk of that one."""

    def __init__(self, graph: Graph, copies: list, state: State | None = None):
        self.graph = graph
        declared = [
            (spec, base_of(spec), base_offset(spec)) for spec in graph.specs if base_of(spec) is not None
        ]
        self.merged = [(out, below, offset) for _, out, below, offset in copies] + phantoms(graph)
        self.links = {graph.index[id(spec)]: (below, offset) for spec, below, offset in declared + self.merged}
        places = [self._root(at) for at in range(len(graph.specs))]
        self.base, self.inner = [root for root, _ in places], [inside for _, inside in places]
        self._members: dict[int, list[int]] = {}
        for at, root in enumerate(self.base):
            self._members.setdefault(root, []).append(at)
        self.outputs = state.outputs if state is not None else set()
        self.backs: list[WriteBack] = []
        """Buffers whose values are made in them."""
        self.versions = 0
        """The number of these values."""
        for back in state.backs if state is not None else ():
            self._make_in(back, state.versions(back, self))
        self.begins, self.ends = list(graph.begins), list(graph.ends)
        for at in self.links:
            root = self.base[at]
            self.begins[root] = min(self.begins[root], graph.begins[at])
            self.ends[root] = max(self.ends[root], graph.ends[at])
        self.roots = [at for at in range(len(graph.specs)) if at not in self.links]

    def _has_output(self, root: int) -> bool:
        """True if a chunk holds an output of the graph."""
        return any(id(self.graph.specs[member]) in self.outputs for member in self.members(root))

    def members(self, root: int) -> list[int]:
        """The specs of a chunk."""
        return self._members.get(root, [])

    def _make_in(self, back: WriteBack, versions: list) -> None:
        """Puts the values of a buffer into its chunk."""
        if not versions:
            return
        buffer = self.graph.index[id(back.buffer)]
        for spec in versions:
            at = self.graph.index[id(spec)]
            self.links[at] = (back.buffer, 0)
            self.merged.append((spec, back.buffer, 0))
            for member in self._members.pop(at):
                self.base[member] = buffer
                self._members[buffer].append(member)
        self.backs.append(back)
        self.versions += len(versions)

    def _root(self, at: int) -> tuple[int, int]:
        inside = 0
        while at in self.links:
            below, offset = self.links[at]
            if id(below) not in self.graph.index:
                raise ValueError(f"a tensor of the shape {list(self.graph.specs[at].shape)} lies in one that is not planned with it")
            at, inside = self.graph.index[id(below)], inside + offset
        return at, inside

    def requests(self, number: dict[int, int], pairs: list) -> list[tuple[int, int, int, Any, Any]]:
        """The requests to overwrite among some roots: two chunks, the offset and the specs."""
        graph, base, inner, found = self.graph, self.base, self.inner, []
        for out, below, others in pairs:
            upper, lower = graph.index[id(out)], graph.index[id(below)]
            over, under = base[upper], base[lower]
            # The operator must not read another spec that lies in the same chunk.
            read = [graph.index[id(other)] for other in others if other is not below and id(other) in graph.index]
            apart = all(base[at] != under for at in read)
            if over in number and under in number and over != under and apart:
                found.append((number[over], number[under], inner[lower], out, below))
        return found

    def returned(self, number: dict[int, int]) -> list[tuple[int, int, int]]:
        """What branches return, as parts of the results of conditions."""
        graph, base, inner, parts = self.graph, self.base, self.inner, []
        for made, result in graph.returned:
            offset = inner[result] - inner[made]
            if base[made] in number and graph.sizes[base[made]]:
                if offset < 0 or offset + graph.sizes[base[made]] > graph.sizes[base[result]]:
                    raise ValueError(f"a branch returns a tensor of the shape {list(graph.specs[made].shape)} inside a larger one")
                parts.append((number[base[made]], number[base[result]], offset))
        return parts

    def parts(self, number: dict[int, int], cat: Cat) -> list[tuple[int, int, int]]:
        """The inputs of a concatenation as parts of its output; empty if one of them is not all of its chunk."""
        graph, base, parts = self.graph, self.base, []
        # No other spec lies around it, except a buffer that it is made in, whose bytes hold the old value until then.
        whole = graph.index[id(cat.whole)]
        if whole not in number:
            return []
        # A buffer may get its next value before the concatenation is read.
        kept = {graph.index[id(back.buffer)] for back in self.backs}
        for spec, offset in cat.parts:
            at = graph.index[id(spec)]
            root = base[at]
            # Whoever runs the graph may write its outputs, so no two of them share bytes.
            if self._has_output(root) and self._has_output(whole):
                return []
            if root in kept or root not in number or graph.sizes[root] != graph.sizes[at]:
                return []
            parts.append((number[root], number[whole], offset))
        return parts


def _gather(problem: Problem, wholes: list[list]) -> tuple[Problem, list[int]]:
    """Puts all inputs of each concatenation inside its output, or none. Returns those where it was possible."""
    kept = [at for at, parts in enumerate(wholes) if parts]
    while kept:
        gathered, refused = problem.gather([wholes[at] for at in kept])
        missing = {part[:3] for part in refused}
        whole = [at for at in kept if not missing.intersection(wholes[at])]
        if whole == kept:
            return gathered, kept
        kept = whole
    return problem, []


def _up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def plan_graph(graph: Graph, sharing: Sharing, target: Target) -> Planned:
    """Plans the chunks of a graph: those of the pools together, and every other arena by itself."""
    specs, alignment = graph.specs, graph.alignment
    chunks = Chunks(graph, sharing.copies, sharing.state)
    groups: dict[int | None, list[int]] = {}
    for at in chunks.roots:
        arena = graph.arenas[at]
        group = None if target.pools and (arena is None or arena in target.pools) else arena or 1
        groups.setdefault(group, []).append(at)
    known = [1, *(arena for arena in groups if arena is not None), *target.pools]
    sizes = [0] * max(1 + max(known), len(target.reserved))
    for arena, size in enumerate(target.reserved):
        sizes[arena] = size
    planned = Planned(MemoryAlgoResult({}, sizes), sum(sizes), True, len(sharing.pairs))
    places = [(1, 0)] * len(specs)
    for group, roots in sorted(groups.items(), key=lambda item: item[0] or 0):
        number = {at: chunk for chunk, at in enumerate(roots)}
        requests = chunks.requests(number, sharing.pairs)
        begins, ends = [chunks.begins[at] for at in roots], [chunks.ends[at] for at in roots]
        lengths = [graph.sizes[at] for at in roots]
        constraints = _pools_of(graph, chunks, roots, target) if group is None else {}
        constraints["parts"] = chunks.returned(number) or None
        problem = Problem.from_arrays(
            begins, ends, lengths, [request[:3] for request in requests], alignment=alignment, **constraints
        )
        wholes = [chunks.parts(number, cat) for cat in sharing.cats]
        problem, gathered = _gather(problem, wholes)
        try:
            answer = plan(problem, **target.options)
        except ValueError as error:
            if group is not None:
                raise
            raise ValueError(_overflow(begins, ends, lengths, alignment, constraints, target.options) or str(error)) from error
        # ExecuTorch checks only the plans of its own algorithms.
        if wrong := verify(problem, answer):
            raise RuntimeError(f"memplan made a wrong plan; please report it: {wrong[0]}")
        planned.cats += [sharing.cats[at] for at in gathered]
        accepted = dict(enumerate(answer.overwritten))
        for over, under, _, out, below in requests:
            if accepted.get(over) == under:
                planned.bases[id(out)] = (out, below, 0)
                planned.in_place += 1
                accepted[over] = None
        if group is None:
            names = {pool.name: arena for arena, pool in target.pools.items()}
            for at, name, offset in zip(roots, answer.chunk_pools, answer.offsets):
                places[at] = (names[name], offset)
            for name, size in answer.pool_sizes.items():
                if name in set(answer.chunk_pools):
                    sizes[names[name]] = size + target.extra_padding
            planned.cost = (answer.traffic, *reversed(answer.pool_sizes.values()))
        else:
            reserved = target.reserved[group] if group < len(target.reserved) else 0
            bottom = _up(reserved, alignment)
            for at, offset in zip(roots, answer.offsets):
                places[at] = (group, bottom + offset)
            sizes[group] = bottom + answer.pool_size + target.extra_padding
            planned.lower_bound += bottom - reserved + answer.lower_bound + target.extra_padding
        planned.proven_optimal &= answer.proven_optimal
        planned.proven_for_all &= answer.scope == "all_choices"
        planned.padding += target.extra_padding
    for at, spec in enumerate(specs):
        arena, offset = places[chunks.base[at]]
        planned.result.spec_dict[spec] = SpecAllocResult(arena, _OBJECT, offset + chunks.inner[at])
    if target.pools:
        planned.lower_bound = planned.size if planned.proven_optimal else 0
    planned.bases |= {id(out): (out, below, offset) for out, below, offset in chunks.merged}
    _link(planned, graph)
    planned.copies = [node for node, *_ in sharing.copies] + [back.node for back in chunks.backs]
    planned.in_place += chunks.versions
    return planned


def _pools_of(graph: Graph, chunks: Chunks, roots: list[int], target: Target) -> dict:
    """The pools of a problem, and what must lie in which."""
    pools = []
    for arena, pool in target.pools.items():
        capacity = pool.capacity
        if capacity is not None:
            capacity = max(capacity - target.extra_padding, 0)
        pools.append(
            Pool(
                pool.name, capacity=capacity, alignment=max(pool.alignment, graph.alignment), cost=pool.cost, base=pool.base,
                reserved=pool.reserved, largest=pool.largest,
            )
        )  # fmt: skip
    traffic = [0] * len(graph.specs)
    for at, amount in enumerate(graph.traffic()):
        traffic[chunks.base[at]] += amount
    names = graph.names()
    return {
        "pools": pools,
        "names": [f"{names[at]} of the shape {list(graph.specs[at].shape)}" for at in roots],
        "only_in": {
            chunk: target.pools[arena].name for chunk, at in enumerate(roots) if (arena := graph.arenas[at]) is not None
        },
        "traffic": {chunk: traffic[at] for chunk, at in enumerate(roots)},
    }


def _overflow(begins: list, ends: list, sizes: list, alignment: int, constraints: dict, options: dict) -> str | None:
    """Says which tensor finds no place: one that would lie in a pool behind all others, if there were one."""
    outside = "outside"
    while outside in {pool.name for pool in constraints["pools"]}:
        outside += "_"
    more = {
        "pools": [*constraints["pools"], Pool(outside, cost=2**32)],
        "only_in": {chunk: [name, outside] for chunk, name in constraints["only_in"].items()},
    }
    try:
        answer = plan(Problem.from_arrays(begins, ends, sizes, alignment=alignment, **constraints | more), **options)
    except ValueError:
        return None
    lost = [chunk for chunk, name in enumerate(answer.chunk_pools) if name == outside and sizes[chunk]]
    if not lost:
        return None
    chunk = max(lost, key=lambda chunk: sizes[chunk])
    mine = constraints["only_in"].get(chunk)
    left = ", ".join(
        f"{pool.name} has {pool.capacity - answer.pool_sizes[pool.name]} of {pool.capacity} B left"
        for pool in constraints["pools"]
        if pool.capacity is not None and mine in (None, pool.name)
    )
    wanted = f"pool {mine}, which it asks for" if mine else "the pools"
    return f"{constraints['names'][chunk]}, {sizes[chunk]} B, finds no place in {wanted}: {left}"


def _link(planned: Planned, graph: Graph) -> None:
    """Declares specs that share bytes on purpose to lie in each other, the smaller in the larger. ExecuTorch's verifier
    accepts two of them only if one is on the path of such declarations that begins at the other, so all that are related
    are on one path."""
    places, related = planned.result.spec_dict, {}

    def first(at: int) -> int:
        while at in related:
            at = related[at]
        return at

    def relate(spec, other) -> None:
        a, b = sorted((first(graph.index[id(spec)]), first(graph.index[id(other)])))
        if a != b:
            related[b] = a

    for spec, below, _ in planned.bases.values():
        relate(spec, below)
    for cat in planned.cats:
        for part, _ in cat.parts:
            relate(part, cat.whole)
    paths: dict[int, list[int]] = {}
    for at in range(len(graph.specs)):
        paths.setdefault(first(at), []).append(at)
    planned.bases = {}
    for path in paths.values():
        path.sort(key=lambda at: (-graph.sizes[at], at))
        for below, at in zip(path, path[1:]):
            spec, other = graph.specs[at], graph.specs[below]
            planned.bases[id(spec)] = (spec, other, places[spec].mem_offset - places[other].mem_offset)
