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
from ._executorch_line import _all, _bound, arguments_of, base_of, flat, modules_of, spec_of, specs_of, viewed
from ._executorch_state import UPDATES, is_copy
from ._shadow import Fault, Segment, Shadow, Written, lost, overwritten

_LOOPED = 2
"""The number of iterations of a loop that are followed: a second one reads what the first has left."""

Bound = dict[int, tuple[Any, bool]]
"""What placeholders of a body stand for, by the ids of their specs: as `MethodAudit._source` has it."""


class MethodAudit:
    """The run of one method on a shadow of its arenas."""

    def __init__(self, program: Any, kernels: Kernels):
        self.kernels = kernels
        self.module = program.graph_module
        self.signature = program.graph_signature
        self.sizes = list(self.module.meta.get("non_const_buffer_sizes", []))
        self.faults: list[Fault] = []
        self.step = 0
        self.followed: set[int] = set()
        self.written: set[int] = set()
        """The specs that some operator writes, or that are there before the run."""
        self.held: dict[int, list[Segment]] = {}
        """What lay in the bytes of specs when they were allocated."""
        self.names: dict[int, str] = {}
        self.where: dict[int, list[tuple[int, int, int]]] = {}
        """The places of results of conditions: the arenas, first bytes and ends of what the branches return."""
        self.relatives: dict[int, int] = {}
        self.delegates = False
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
        self.delegates |= any(node.target is executorch_call_delegate for node in module.graph.nodes)

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
        if spec is None or spec.mem_id is None or spec.mem_offset is None or not spec.nbytes():
            return None
        return spec.mem_id, spec.mem_offset, spec.mem_offset + spec.nbytes()

    @staticmethod
    def _outs(node: Any) -> list:
        """The specs that a node writes."""
        if node.op == "placeholder" or isinstance(node.target, torch._ops.HigherOrderOperator):
            return specs_of(node)
        schema = getattr(node.target, "_schema", None)
        outs = [value for a in getattr(schema, "arguments", ()) if a.is_out for value in flat([node.kwargs.get(a.name)])]
        found = [spec for value in outs for spec in specs_of(viewed(value))]
        return [spec for spec in found + _updated(node) if spec is not None]

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

    def _graph(self, module: Any, shadow: Shadow, bound: Bound) -> Shadow:
        """Runs the nodes of a graph. `bound` has the tensors around it that its placeholders stand for."""
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

    def _operator(self, module: Any, node: Any, shadow: Shadow, bound: Bound) -> Shadow:
        for argument in arguments_of(node)[is_copy(node) :]:
            self._argument(shadow, argument, node.name, bound)
        if modules := modules_of(module, node):
            run = self._condition if node.target is torch.ops.higher_order.cond else self._loop
            return run(node, modules, shadow, bound)
        for out in self._outs(node):
            self._in_place(node, out, bound)
            self._write(shadow, out, self.name(out), node.name)
        return shadow

    def _in_place(self, node: Any, out: Any, bound: Bound) -> None:
        """Notes an operator that writes over an argument, and may not."""
        place, schema = self.place(out), getattr(node.target, "_schema", None)
        if place is None or schema is None:
            return
        able = {id(spec_of(node.args[at])) for at in self.kernels.get(schema.name, ()) if at < len(node.args)}
        updated = {id(spec) for spec in _updated(node)}
        read = arguments_of(node)
        for argument in dict.fromkeys(read):
            spec, is_view = self._source(argument, bound)
            for other in self._places(spec, is_view):
                if id(spec) in updated or place[0] != other[0] or place[1] >= other[2] or other[1] >= place[2]:
                    continue
                own = spec_of(argument)
                # An update reads its other arguments when it has begun to write.
                alone = schema.name not in UPDATES or sum(spec_of(one) is own for one in read) == 1
                if place != other or not alone or id(own) not in able or _shape(argument) != _shape(node):
                    self._note(overwritten(self.step, node.name, self.name(out), self.name(spec)))

    def _note(self, fault: Fault) -> None:
        if fault.text not in {other.text for other in self.faults}:
            self.faults.append(fault)

    def _condition(self, node: Any, branches: list, shadow: Shadow, bound: Bound) -> Shadow:
        """Runs the branches of a condition, each in memory as it is."""
        results, after = specs_of(node), []
        for branch in branches:
            inner = self._standing(node, _bound(branch, node), bound)
            after.append(self._graph(branch, shadow.copy(), inner))
            # Where the branch leaves its results.
            for value, spec in zip(_all(list(branch.graph.nodes)[-1].args), results):
                self.where.setdefault(id(spec), []).extend(self._places(*self._source(value, inner)))
        unknown = Written(("branch", node.name), f"a tensor of a branch of {node.name}", self.step, node.name)
        shadow = after[0]
        for other in after[1:]:
            shadow = shadow.merged(other, unknown)
        for spec in results:
            places = set(self.where.get(id(spec), []))
            written = Written(id(spec), self.name(spec), self.step, node.name)
            if len(places) > 1:
                # It depends on the branch which of the places holds the result.
                written = Written(_one_of(spec), f"the result of some branches of {node.name}", self.step, node.name)
            for place in places:
                shadow.write(*place, written)
        return shadow

    def _loop(self, node: Any, bodies: list, shadow: Shadow, bound: Bound) -> Shadow:
        """Runs some iterations of a loop. Each reads its slices, and writes a part of what the loop returns."""
        results = specs_of(node)
        for spec in results:
            self._write(shadow, spec, self.name(spec), node.name)
        for body in bodies * _LOOPED:
            stand = _bound(body, node)
            for argument in flat(node.args[-2:-1]):
                self._argument(shadow, argument, node.name, bound)
            slices = [other for other in body.graph.nodes if other.op == "placeholder" and other not in stand]
            for spec in (spec for other in slices for spec in specs_of(other)):
                self._write(shadow, spec, self.name(spec), node.name)
            shadow = self._graph(body, shadow, self._standing(node, stand, bound))
            for spec in results:
                self._read(shadow, spec, node.name)
        return shadow

    def _standing(self, node: Any, stand: list, bound: Bound) -> Bound:
        """What some placeholders of a body stand for: the states of a scan, which lie in its results, and operands."""
        operands = _all(node.args[-1:])
        around = [(spec, False) for spec in specs_of(node)[: len(stand) - len(operands)]]
        around += [self._source(operand, bound) for operand in operands]
        return {id(spec): source for other, source in zip(stand, around) for spec in specs_of(other)}

    def _write(self, shadow: Shadow, spec: Any, name: str, by: str) -> None:
        if (place := self.place(spec)) is not None:
            if id(spec) not in self.followed:
                self._inside(spec)
            self.written.add(id(spec))
            self.followed.add(id(spec))
            shadow.write(*place, Written(id(spec), name, self.step, by))

    def _allocate(self, shadow: Shadow, spec: Any) -> None:
        """Notes what lies in the bytes of a tensor: it is the value of one that nobody writes, as a copy was removed."""
        if (place := self.place(spec)) is not None:
            self.held[id(spec)] = shadow.read(*place)

    def _argument(self, shadow: Shadow, argument: Any, by: str, bound: Bound) -> None:
        """Checks the bytes that an operator reads of an argument."""
        spec, is_view = self._source(argument, bound)
        if id(spec) not in self.where:
            return self._read(shadow, spec, by)
        for place in self._places(spec, is_view):
            self._bytes(shadow, spec, place, by, {id(spec)} if is_view else {id(spec), _one_of(spec)})
        return None

    def _source(self, argument: Any, bound: Bound) -> tuple[Any, bool]:
        """The spec that an argument lies in, and whether a plan says where it is read there, as for a view. A view of
        what has no place in a body is made when the program runs, where the tensor around it lies."""
        spec, is_view = spec_of(argument), viewed(argument) is not argument
        if id(spec) in bound and not (is_view and self.place(spec)):
            return bound[id(spec)]
        return spec, is_view

    def _places(self, spec: Any, is_view: bool) -> list[tuple[int, int, int]]:
        """Where a tensor may lie: the result of a condition lies where one of the branches has made it."""
        if id(spec) in self.where and not is_view:
            return self.where[id(spec)]
        place = self.place(spec)
        return [] if place is None else [place]

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
                    self._note(lost(self.step, by, self.name(spec), spec.nbytes(), place[1], now))
                    return
        else:
            self._bytes(shadow, spec, place, by, family | {id(spec)})

    def _bytes(self, shadow: Shadow, spec: Any, place: tuple[int, int, int], by: str, keys: set[Any]) -> None:
        if (wrong := shadow.other_than(*place, keys)) is not None:
            self._note(lost(self.step, by, self.name(spec), spec.nbytes(), place[1], wrong))


def _one_of(spec: Any) -> tuple[str, int]:
    """The key of a result in one of several places, where a view must not be read."""
    return "one of", id(spec)


def _updated(node: Any) -> list:
    """The specs of arguments that a node writes by its schema, such as a cache."""
    pairs = zip(getattr(getattr(node.target, "_schema", None), "arguments", ()), node.args)
    return [spec_of(value) for a, value in pairs if a.alias_info is not None and a.alias_info.is_write and not a.is_out]


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
