"""State that a method updates, such as a KV cache, and the values that can be made in its place.

A method does not write its buffers and mutated inputs while it runs: operators make new values, and `copy_` copies each
into its buffer at the end. A value is instead made in the buffer itself if nothing reads the old one after that, and
`copy_` is removed. An update that writes some elements, such as `index_put`, is made over the version before it, so a
chain of updates needs the bytes of the buffer only.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from executorch.exir import memory

from ._executorch_line import arguments_of, base_of, spec_of, specs_of

if TYPE_CHECKING:
    from ._executorch_graph import Graph, Kernels
    from ._executorch_plan import Chunks

UPDATES = {"aten::index_put", "aten::scatter", "aten::scatter_add", "aten::select_scatter", "aten::slice_scatter"}
"""Operators that copy their first argument, and then write some elements of it. They read the other arguments after
they have begun to write, so none of these may lie in the same bytes."""


@dataclass(frozen=True)
class WriteBack:
    """A copy of a value into a buffer at the end of a method."""

    node: Any
    buffer: Any
    """The spec of the buffer."""
    value: Any
    """The spec of the value."""


class State:
    """The buffers that a graph writes back, and when its operators make and read specs."""

    def __init__(self, graph: Graph, kernels: Kernels, outputs: set[int]):
        self.graph, self.kernels, self.outputs = graph, kernels, outputs
        places = {node: at for at, node in enumerate(graph.top)}
        self.makers = {id(out): (places[node], node, name) for node, name, out in graph.operators(graph.top)}
        self.reads: dict[int, list[tuple[int, Any]]] = {}
        """The nodes that read a spec, with their places in the graph. A condition or a loop reads what its graphs read."""
        for at, node in enumerate(graph.top):
            if node.target in (memory.alloc, memory.view, operator.getitem):
                continue
            for argument in arguments_of(node)[is_copy(node) :]:
                # What reads the result of `copy_` reads the new value.
                if not is_copy(argument) and (spec := spec_of(argument)) is not None:
                    self.reads.setdefault(id(spec), []).append((at, node))
        self.backs = self._write_backs()

    def _write_backs(self) -> list[WriteBack]:
        graph, writers, found = self.graph, self.graph.writers(), []
        for node in filter(is_copy, graph.top):
            buffer, value = spec_of(node.args[0]), spec_of(node.args[1])
            known = id(buffer) in graph.index and id(value) in graph.index
            if not known or node.args[0].op != "placeholder":
                continue
            # An operator that writes the buffer itself may do so while others read it.
            if writers[id(buffer)] != [node] or id(value) in writers:
                continue
            shape = graph.shape_of(node.args[0])
            if shape is None or shape != graph.shape_of(node.args[1]) or buffer.is_dynamic_shape_tensor:
                continue
            if graph.arena(buffer) == graph.arena(value):
                found.append(WriteBack(node, buffer, value))
        return found

    def versions(self, back: WriteBack, chunks: Chunks) -> list[Any]:
        """The specs that are made in the buffer, the last one first. Each is the root of a chunk, and is written over
        the one before; all that read the buffer's old value run before the first of them."""
        graph, root = self.graph, self.graph.index[id(back.buffer)]
        candidate: int | None = chunks.base[graph.index[id(back.value)]]
        found: list[Any] = []
        over: tuple[int, Any, str] | None = None
        while candidate is not None and candidate != root and chunks.base[root] == root:
            spec = graph.specs[candidate]
            members = [graph.specs[other] for other in chunks.members(candidate)]
            maker = self.makers.get(id(spec))
            if maker is None or not self._fits(spec, back.buffer, members):
                break
            if over is not None and not self._read_before(members, over, found[-1], chunks):
                break
            if not self._read_before([graph.specs[other] for other in chunks.members(root)], maker, spec, chunks):
                break
            found.append(spec)
            over = maker
            candidate = self._before(maker, spec, chunks)
        return found

    def _fits(self, spec, buffer, members: list) -> bool:
        if any(id(member) in self.outputs or base_of(member) is not None for member in members):
            return False
        # The value may be the beginning of a larger one.
        return spec.nbytes() == buffer.nbytes()

    def _read_before(self, members: list, maker: tuple[int, Any, str], out, chunks: Chunks) -> bool:
        """True if all reads of some specs, which lie in one chunk, are over when an operator writes there."""
        step, node, name = maker
        reads = [(at, reader) for member in members for at, reader in self.reads.get(id(member), [])]
        if any(at > step for at, _ in reads):
            return False
        if all(at < step for at, _ in reads):
            return True
        inside = {id(member) for member in members}
        read = [argument for argument in arguments_of(node) if id(spec_of(argument)) in inside]
        places = [node.args[place] for place in self.kernels.get(name, ()) if place < len(node.args)]
        for argument in places:
            if all(spec_of(other) is spec_of(argument) for other in read) and self.graph.may_overwrite(node, out, argument):
                return True
        return False

    def _before(self, maker: tuple[int, Any, str], out, chunks: Chunks) -> int | None:
        """The chunk that an operator may write over."""
        _, node, name = maker
        for place in self.kernels.get(name, ()):
            argument = node.args[place] if place < len(node.args) else None
            if self.graph.may_overwrite(node, out, argument):
                return chunks.base[self.graph.index[id(spec_of(argument))]]
        return None


def is_copy(node) -> bool:
    """True if a node copies its second argument into its first one."""
    return getattr(getattr(node.target, "_schema", None), "name", "") == "aten::copy_"


def phantoms(graph: Graph) -> list[tuple[Any, Any, int]]:
    """Specs of the output node that no node makes, each with a buffer that it may lie in. The output node has one for
    each buffer that is written back, and no operator reads or writes it."""
    if not graph.top:
        return []
    known = {id(spec) for node in graph.nodes if node is not graph.top[-1] for spec in specs_of(node)}
    written = [spec_of(node.args[0]) for node in graph.top if is_copy(node)]
    buffers = [spec for spec in written if id(spec) in graph.index and base_of(spec) is None]
    found = []
    for spec in specs_of(graph.top[-1]):
        if id(spec) in known or id(spec) not in graph.index or base_of(spec) is not None:
            continue
        size = graph.sizes[graph.index[id(spec)]]
        hosts = [host for host in buffers if graph.sizes[graph.index[id(host)]] == size]
        hosts = [host for host in hosts if graph.arena(host) == graph.arena(spec)]
        if hosts:
            buffers.remove(hosts[0])
            found.append((spec, hosts[0], 0))
    return found
