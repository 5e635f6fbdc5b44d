"""Runs a PyTorch graph with every tensor of a plan inside one arena, and names the graphs that its operators run."""

from __future__ import annotations

import operator

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from . import Plan


def is_condition(node: fx.Node) -> bool:
    return node.target is torch.ops.higher_order.cond


def graphs(node: fx.Node) -> list[tuple[fx.Node, list]]:
    """The graphs that an operator runs, with their arguments; None for those that are copied in each iteration."""
    ops = torch.ops.higher_order
    if is_condition(node):
        _, *branches, operands = node.args
        return [(branch, list(operands)) for branch in branches]
    if node.target is ops.while_loop:
        condition, body, state, further = node.args
        return [(graph, [None] * len(state) + list(further)) for graph in (condition, body)]
    if node.target is ops.scan:
        graph, state, scanned, further = node.args
        return [(graph, [None] * (len(state) + len(scanned)) + list(further))]
    if node.target is ops.map_impl:
        graph, scanned, further = node.args
        return [(graph, [None] * len(scanned) + list(further))]
    return []


def is_operator(node: fx.Node) -> bool:
    return node.op not in ("placeholder", "get_attr", "output") and node.target is not operator.getitem


def tensor_name(node: fx.Node, at: int | None = None) -> str:
    """The name in a plan of what an operator makes, or of a part of it. The copies of a node have names of their own."""
    name = node.name if at is None else f"{node.name}.{at}"
    return node.meta.get("planned", {}).get(at, name)


def span(sizes, strides, width: int) -> int:
    """The bytes from a tensor's first element to the end of its last one; fewer than its elements if it is expanded."""
    return 0 if 0 in sizes else (1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))) * width


def _written(place, value):
    """Writes a value into a tensor, and returns that tensor. Numbers have no bytes in the arena: they pass as they are."""
    if not isinstance(place, torch.Tensor):
        return value
    # All elements of an expanded dimension are one in memory, which PyTorch refuses to write more than once.
    firsts = tuple(slice(1) if strides == (0, 0) else slice(None) for strides in zip(place.stride(), value.stride()))
    place[firsts].copy_(value[firsts])
    return place


def _clone(value):
    return value.clone() if isinstance(value, torch.Tensor) else value


class _InArena(fx.Interpreter):
    """Runs a graph with every tensor of a plan's pool in an arena, from `begin` on. Of a body, which is a branch of a
    condition or a graph of a loop, `around` has the places in the arena of the tensors around it, by name."""

    def __init__(
        self, graph_module: fx.GraphModule, plan: Plan, arena: torch.Tensor, begin: int, prefix: str, around: dict[str, int]
    ):
        super().__init__(graph_module)
        self.tensors, self.arena, self.begin, self.prefix, self.around = plan.tensors, arena, begin, prefix, around
        steps = [node.name for node in graph_module.graph.nodes if is_operator(node)]
        self.rooms = {}
        """The plans of bodies, and the places of the copies of their inputs and of their pools, by operator and body."""
        for body in plan.bodies:
            workspace = plan.workspaces[body.operator] if body.plan.pool_size or body.inputs else None
            room = begin if workspace is None else begin + plan.offsets[workspace]
            self.rooms[steps[body.operator], body.index] = (body.plan, room, room + body.inputs)

    def run_node(self, n: fx.Node):
        if is_condition(n):
            (predicate, *branches, operands), _ = self.fetch_args_kwargs_from_env(n)
            index = 0 if predicate else 1
            result = self.body(n, index, branches[index], operands)
        elif graphs(n):
            result = self.loop(n)
        else:
            result = super().run_node(n)
        if not is_operator(n):
            return result
        if isinstance(result, (list, tuple)):
            return type(result)(self.placed(self.prefix + tensor_name(n, at), item) for at, item in enumerate(result))
        return self.placed(self.prefix + tensor_name(n), result)

    def body(self, n: fx.Node, index: int, module: fx.GraphModule, arguments):
        """Runs a body in the workspace of its operator."""
        if (n.name, index) not in self.rooms:
            return module(*arguments)
        plan, _, begin = self.rooms[n.name, index]
        around = {name: self.offset(name) for name in {tensor.supplied for tensor in plan.tensors.values()} if name}
        around = {name: offset for name, offset in around.items() if offset is not None}
        prefix = f"{self.prefix}{graphs(n)[index][0].target}."
        return _InArena(module, plan, self.arena, begin, prefix, around).run(*arguments)

    def loop(self, n: fx.Node):
        """Runs a loop. What its graph gets anew in each iteration lies at the start of the workspace."""
        arguments, _ = self.fetch_args_kwargs_from_env(n)
        if n.target is torch.ops.higher_order.while_loop:
            condition, body, state, further = arguments
            copies = self.copies(n, 1, state)
            while self.body(n, 0, condition, [*copies, *further]):
                copies = list(map(_written, copies, self.body(n, 1, body, [*copies, *further])))
            return tuple(map(_clone, copies))
        body, *state, scanned, further = arguments
        state = state[0] if state else []
        copies = self.copies(n, 0, [*state, *(x[0] for x in scanned)])
        collected = []
        for at in range(len(scanned[0])):
            for copy, x in zip(copies[len(state) :], scanned):
                _written(copy, x[at])
            values = self.body(n, 0, body, [*copies, *further])
            collected.append([value.clone() for value in values[len(state) :]])
            for copy, value in zip(copies, values[: len(state)]):
                _written(copy, value)
        return (*(copy.clone() for copy in copies[: len(state)]), *map(torch.stack, zip(*collected)))

    def copies(self, n: fx.Node, index: int, values) -> list:
        """Copies what a graph of a loop gets in its first iteration to the start of the workspace."""
        if (n.name, index) not in self.rooms:
            return list(map(_clone, values))
        plan, at, _ = self.rooms[n.name, index]
        copies = []
        for value in values:
            if isinstance(value, torch.Tensor):
                size = span(value.shape, value.stride(), value.element_size())
                copy = self.at(at, size, value)
                if size:
                    at += -(-(size + plan.padding) // plan.alignment) * plan.alignment
                value = _written(copy, value)
            copies.append(value)
        return copies

    def offset(self, name: str) -> int | None:
        """The place of a tensor in the arena, or None if it does not lie there."""
        tensor = self.tensors.get(name)
        if tensor is not None and tensor.place == "pool":
            return self.begin + tensor.offset
        if tensor is not None and tensor.supplied in self.around:
            return self.around[tensor.supplied] + tensor.offset
        return None

    def placed(self, name: str, result):
        """A result in the bytes that the plan has for it."""
        if not isinstance(result, torch.Tensor):
            return result
        size, offset = span(result.shape, result.stride(), result.element_size()), self.offset(name)
        if name not in self.tensors:
            raise ValueError(f"the plan has no tensor '{name}': it is not one of this graph")
        if offset is None:
            return result
        planned = self.tensors[name].size
        if size > planned:
            raise ValueError(f"'{name}' has {size} B, but {planned} B are planned; plan the graph for the largest inputs")
        storage = result.untyped_storage()
        begin = storage.data_ptr() - self.arena.data_ptr()
        # It is a view, or an argument that was written in place. A plan without views has memory of its own for a view.
        if begin <= offset and offset + planned <= begin + storage.nbytes():
            return result
        return _written(self.at(offset, planned, result), result)

    def at(self, offset: int, size: int, like: torch.Tensor) -> torch.Tensor:
        """A tensor in some bytes of the arena, which are a storage of its own: `as_strided` counts from its start."""
        storage = torch.from_numpy(self.arena.numpy()[offset : offset + size]).untyped_storage()
        return torch.empty(0, dtype=like.dtype).set_(storage, 0, like.shape, like.stride())


class Planned(_InArena):
    """Runs a graph with every tensor of the pool inside one arena, at its planned offset.

    It is slow, because eager operators allocate their own results, which are then copied; but it shows that a plan is
    right: the outputs are equal, bit for bit, to those of the graph run as usual. The plan needs an alignment of 16 or a
    multiple of it. Outputs lie in the arena: the next run overwrites them; clone what you keep.
    """

    def __init__(self, graph_module: fx.GraphModule, plan: Plan):
        # Offsets are counted in elements, and the largest have 16 bytes.
        if plan.alignment % 16:
            raise ValueError(f"the plan has alignment {plan.alignment}; plan with alignment=16 or a multiple of it")
        if len(plan.pool_sizes) > 1:
            raise ValueError(f"the plan has {len(plan.pool_sizes)} pools; a graph runs in one pool")
        if (name := next(iter(_missing(graph_module, plan)), None)) is not None:
            raise ValueError(f"the plan has no tensor '{name}': it is not one of this graph")
        nodes = {name.split(".")[0] for node in graph_module.graph.nodes for name in (node.name, *node.meta.get("planned", {}).values())}
        if (name := next((name for name in plan.tensors if name.split(".")[0] not in nodes), None)) is not None:
            raise ValueError(f"the graph has no node for the plan's tensor '{name}': the plan is not one of this graph")
        # A compiler calls its backend with fake tensors.
        with unset_fake_temporarily():
            # This pattern makes reads of unwritten bytes visible.
            arena = torch.full((max(plan.pool_size, 1),), 0xA5, dtype=torch.uint8)
        super().__init__(graph_module, plan, arena, 0, "", {})
        placeholders = (node for node in graph_module.graph.nodes if node.op == "placeholder")
        self.traced = {node.target: node.meta.get("val") for node in placeholders}
        """The fake tensors of the inputs."""

    def placeholder(self, target, args, kwargs):
        """An input, if it is one that the graph was traced with: views lie elsewhere in a smaller tensor."""
        value, traced = super().placeholder(target, args, kwargs), self.traced.get(target)
        if isinstance(value, torch.Tensor) and isinstance(traced, torch.Tensor):
            pairs = zip(value.shape, traced.shape)
            same = value.dim() == traced.dim() and all(a == b for a, b in pairs if isinstance(b, int))
            if value.dtype != traced.dtype or not same:
                raise ValueError(f"input '{target}' is {_described(value)}, but the plan is for {_described(traced)}")
        return value


def _described(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype} of the shape {list(tensor.shape)}"


def _missing(graph_module: fx.GraphModule, plan: Plan):
    """The tensors that operators make, as far as a trace has kept them, without a place in the plan."""
    known = plan.tensors
    for node in filter(is_operator, graph_module.graph.nodes):
        value = node.meta.get("val")
        parts = list(enumerate(value)) if isinstance(value, (list, tuple)) else [(None, value)]
        values = {tensor_name(node, at): item for at, item in parts}
        yield from (name for name, item in values.items() if isinstance(item, torch.Tensor) and name not in known)
