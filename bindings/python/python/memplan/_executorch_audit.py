"""An audit of the memory of an ExecuTorch program, whoever planned it.

The offsets are those on the specs of the program's graphs. The operators are run on a shadow of the arenas, with
branches and loops. What a plan declares about itself is not believed, with one exception: where an operator that copies
was removed, its output is read where nobody has written it, so its bytes must hold a tensor that it is declared to lie
in.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from executorch.exir import memory
from executorch.exir.delegate import executorch_call_delegate

from ._executorch_graph import Kernels
from ._executorch_line import _all, _bound, base_of, flat, modules_of, spec_of, specs_of, viewed
from ._executorch_state import is_copy
from ._shadow import Fault, Segment, Shadow, Written, lost, overwritten

_LOOPED = 2
"""The number of iterations of a loop that are followed: a second one reads what the first has left."""


class MethodAudit:
    """The run of one method on a shadow of its arenas."""

    def __init__(self, program: Any, kernels: Kernels):
        self.kernels = kernels
        self.module = program.graph_module
        self.signature = program.graph_signature
        self.sizes = list(self.module.meta.get("non_const_buffer_sizes", []))
        self.faults: list[Fault] = []
        self.unseen: list[str] = []
        self.step = 0
        self.followed: set[int] = set()
        self.written: set[int] = set()
        """The specs that some operator writes, or that are there before the run."""
        self.held: dict[int, list[Segment]] = {}
        """What lay in the bytes of specs that nobody writes when they were allocated."""
        self.names: dict[int, str] = {}
        self.where: dict[int, list[tuple[int, int, int]]] = {}
        """The places of results of conditions: the arenas, first bytes and ends of what the branches return."""
        self.relatives: dict[int, int] = {}
        self._prepare(self.module)

    def _prepare(self, module: Any) -> None:
        for node in module.graph.nodes:
            for spec in specs_of(node):
                if node.target is not memory.alloc:
                    self.names.setdefault(id(spec), node.name)
                if (base := base_of(spec)) is not None:
                    self.relatives[self._relative(id(spec))] = self._relative(id(base))
            for written in self._outs(node):
                self.written.add(id(written))
            for inner in modules_of(module, node):
                self._prepare(inner)
        self.delegates = any(node.target is executorch_call_delegate for node in module.graph.nodes)

    def _inside(self, spec: Any) -> None:
        """Notes a tensor that is not all in its arena."""
        arena, _, end = self.place(spec) or (0, 0, 0)
        size = self.sizes[arena] if arena < len(self.sizes) else 0
        if end > size:
            name = self.name(spec)
            text = f"'{name}' ends at byte {end} of arena {arena}, which has {size} B"
            self.faults.append(Fault(self.step, name, name, None, text))

    def _relative(self, key: int) -> int:
        while key in self.relatives and self.relatives[key] != key:
            key = self.relatives[key]
        return key

    @staticmethod
    def place(spec: Any) -> tuple[int, int, int] | None:
        """The arena of a spec, its first byte, and the byte after its last one; None if it has no bytes there."""
        if spec is None or spec.const or spec.mem_id is None or spec.mem_offset is None or not spec.nbytes():
            return None
        return spec.mem_id, spec.mem_offset, spec.mem_offset + spec.nbytes()

    @staticmethod
    def _outs(node: Any) -> list:
        """The specs that a node writes."""
        if node.op == "placeholder" or node.target is executorch_call_delegate:
            return specs_of(node)
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None:
            runs_graphs = node.op == "call_function" and isinstance(node.target, torch._ops.HigherOrderOperator)
            return specs_of(node) if runs_graphs else []
        outs = [value for a in schema.arguments if a.is_out for value in flat([node.kwargs.get(a.name)])]
        found = [spec for value in outs for spec in specs_of(viewed(value))]
        for argument, value in zip(schema.arguments, node.args):
            if argument.alias_info is not None and argument.alias_info.is_write and not argument.is_out:
                found.append(spec_of(value))
        return [spec for spec in found if spec is not None]

    def name(self, spec: Any) -> str:
        return self.names.get(id(spec), "?")

    def run(self) -> None:
        """Runs the method, and looks at its buffers after it."""
        shadow = Shadow()
        nodes = list(self.module.graph.nodes)
        state = set(getattr(self.signature, "buffers_to_mutate", {}).values())
        buffers = getattr(self.signature, "inputs_to_buffers", {})
        kept = []
        for node in nodes:
            if node.op == "placeholder":
                for spec in specs_of(node):
                    self._write(shadow, spec, node.name, "before the run")
                    kept += [spec] if buffers.get(node.target) in state else []
        shadow = self._graph(self.module, shadow, {})
        for spec in kept:
            self._read(shadow, spec, "the next run", related=True)

    def _graph(self, module: Any, shadow: Shadow, bound: dict[int, Any]) -> Shadow:
        """Runs the nodes of a graph. `bound` has the specs around it that its placeholders stand for."""
        for node in module.graph.nodes:
            self.step += module is self.module
            if node.op == "output":
                for argument in flat(node.args):
                    self._argument(shadow, argument, "output", bound)
            elif node.target is memory.alloc:
                for spec in specs_of(node):
                    self._allocate(shadow, spec)
            elif node.op == "call_function" and node.target not in (memory.view, operator.getitem):
                shadow = self._operator(module, node, shadow, bound)
        return shadow

    def _operator(self, module: Any, node: Any, shadow: Shadow, bound: dict[int, Any]) -> Shadow:
        name = node.name
        read = [argument for argument in flat(node.args[is_copy(node) :]) if argument.op != "get_attr"]
        for argument in read:
            self._argument(shadow, argument, name, bound)
        modules = modules_of(module, node)
        if modules:
            return self._inner(node, modules, shadow, bound)
        outs = self._outs(node)
        table = self.kernels.get(getattr(getattr(node.target, "_schema", None), "name", ""), ())
        for out in outs:
            self._in_place(node, name, out, read, table)
            self._write(shadow, out, self.name(out), name)
        return shadow

    def _in_place(self, node: Any, name: str, out: Any, read: list, table: tuple[int, ...]) -> None:
        """Notes an operator that writes over an argument, and may not."""
        place = self.place(out)
        able = [node.args[at] for at in table if at < len(node.args)]
        for argument in {id(spec_of(argument)): argument for argument in read}.values():
            spec = spec_of(argument)
            other = self.place(spec)
            if place is None or other is None or spec is out and is_copy(node):
                continue
            if place[0] != other[0] or place[1] >= other[2] or other[1] >= place[2]:
                continue
            exact = place == other and argument in able and _shape(argument) == _shape(node)
            if not exact and getattr(node.target, "_schema", None) is not None:
                self.faults.append(overwritten(self.step, name, self.name(out), self.name(spec)))

    def _inner(self, node: Any, modules: list, shadow: Shadow, bound: dict[int, Any]) -> Shadow:
        """Runs the branches of a condition, each in memory as it is, or a loop, some iterations in turn."""
        condition = node.target is torch.ops.higher_order.cond
        results = specs_of(node)
        after: list[Shadow] = []
        for module in modules:
            inner = dict(bound)
            given = [argument for argument in flat(node.args) if argument.op != "get_attr"]
            placeholders = [other for other in module.graph.nodes if other.op == "placeholder"]
            stand = _bound(module, node)
            arguments = given[-len(stand) :] if stand else []
            for placeholder, argument in zip(stand, arguments):
                inner[id(placeholder.meta.get("spec"))] = argument
            state = shadow.copy() if condition else shadow
            for _ in range(1 if condition else _LOOPED):
                for placeholder in placeholders:
                    if placeholder not in stand:
                        for spec in specs_of(placeholder):
                            self._write(state, spec, placeholder.name, node.name)
                state = self._graph(module, state, inner)
            after.append(state)
            if condition:
                self._returned(node, module, results)
        unknown = Written(("branch", node.name), f"a tensor of a branch of {node.name}", self.step, node.name)
        shadow = after[0]
        for other in after[1:]:
            shadow = shadow.merged(other, unknown)
        for spec in results:
            if condition:
                for arena, begin, end in self.where.get(id(spec), []):
                    shadow.write(arena, begin, end, Written(id(spec), self.name(spec), self.step, node.name))
            else:
                self._write(shadow, spec, self.name(spec), node.name)
        return shadow

    def _returned(self, node: Any, module: Any, results: list) -> None:
        """Notes where a branch leaves the results of a condition."""
        output = list(module.graph.nodes)[-1]
        for value, spec in zip(_all(output.args), results):
            place = self.place(spec_of(value)) if hasattr(value, "meta") else None
            if place is not None:
                self.where.setdefault(id(spec), []).append(place)

    def _write(self, shadow: Shadow, spec: Any, name: str, by: str) -> None:
        if (place := self.place(spec)) is not None:
            if id(spec) not in self.followed:
                self._inside(spec)
            self.written.add(id(spec))
            self.followed.add(id(spec))
            shadow.write(*place, Written(id(spec), name, self.step, by))

    def _allocate(self, shadow: Shadow, spec: Any) -> None:
        """Notes what lies in the bytes of a tensor that nobody writes: a copy of it was removed."""
        place = self.place(spec)
        if place is not None and id(spec) not in self.written:
            self.held[id(spec)] = shadow.read(*place)

    def _argument(self, shadow: Shadow, argument: Any, by: str, bound: dict[int, Any]) -> None:
        """Checks the bytes that an operator reads of an argument."""
        base, spec = viewed(argument), spec_of(argument)
        if id(spec) in bound and base is argument:
            # A placeholder of a body is the value around it; a view of it is read at the place that a plan gave it.
            outer = bound[id(spec)]
            return self._argument(shadow, outer, by, {})
        places = self.where.get(id(spec))
        if places and base is argument:
            for arena, begin, end in places:
                self._bytes(shadow, spec, (arena, begin, end), by, {id(spec)})
            return None
        return self._read(shadow, spec, by)

    def _read(self, shadow: Shadow, spec: Any, by: str, related: bool = False) -> None:
        place = self.place(spec)
        if place is None:
            return
        self.followed.add(id(spec))
        if id(spec) in self.written and not related:
            self._bytes(shadow, spec, place, by, {id(spec)})
            return
        family = {key for key in (*self.names, *self.relatives) if self._relative(key) == self._relative(id(spec))}
        if id(spec) in self.held:
            # Its bytes must be as they were when it was made: bytes of the tensors that it is declared to lie in.
            for (low, high, was), now in zip(self.held[id(spec)], shadow.read(*place)):
                if (low, high, was) != now or was is None or was.key not in family:
                    self.faults.append(lost(self.step, by, self.name(spec), spec.nbytes(), place[1], now))
                    return
        else:
            self._bytes(shadow, spec, place, by, family | {id(spec)})

    def _bytes(self, shadow: Shadow, spec: Any, place: tuple[int, int, int], by: str, keys: set[int]) -> None:
        if (wrong := shadow.other_than(*place, keys)) is not None:
            fault = lost(self.step, by, self.name(spec), spec.nbytes(), place[1], wrong)
            if fault.text not in {other.text for other in self.faults}:
                self.faults.append(fault)


def _shape(node: Any) -> tuple[Any, ...]:
    """Type, sizes and order of dimensions. Sizes that only a run knows are symbols."""
    spec, value = node.meta["spec"], node.meta.get("val")
    place = node.args[1] if node.target is operator.getitem else 0
    spec = spec[place] if isinstance(spec, (list, tuple)) else spec
    value = value[place] if isinstance(value, (list, tuple)) else value
    sizes = tuple(map(str, getattr(value, "shape", spec.shape)))
    return spec.scalar_type, sizes, tuple(spec.dim_order)


def methods(program: Any) -> Iterator[tuple[str, Any]]:
    """The methods of a program manager, or of one exported program, with their exported programs."""
    if hasattr(program, "methods"):
        yield from ((name, program.exported_program(name)) for name in sorted(program.methods))
    else:
        yield "forward", program
