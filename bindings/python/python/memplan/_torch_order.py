"""An FX graph with its operators in another order, or with copies where some run again."""

from __future__ import annotations

import operator

from torch import fx

from . import Sequence
from ._torch_arena import tensor_name


def in_order(graph_module: fx.GraphModule, sequence: Sequence) -> fx.GraphModule:
    """Returns the graph with the operators of a sequence that was made from it and then reordered, or recomputed: with
    copies where operators run again."""
    rewritten = _Rewritten(graph_module)
    for step in range(len(sequence)):
        rewritten.run(sequence[step])
    return rewritten.finish()


class _Rewritten:
    def __init__(self, graph_module: fx.GraphModule):
        self.module, self.graph = graph_module, fx.Graph()
        self.nodes = {node.name: node for node in graph_module.graph.nodes}
        self.versions: dict[fx.Node, list[tuple[str | None, fx.Node]]] = {}
        """The nodes that stand for each of the old ones, with the tensors that they make."""
        for node in self.nodes.values():
            if node.op in ("placeholder", "get_attr"):
                self.add(node, node.name, {}, is_copy=False)

    def run(self, step) -> None:
        """Adds an operator, or its copy, which has `~` behind its name, and the parts of its result."""
        name = step.name.split("~")[0]
        node, is_copy, read = self.nodes[name], name != step.name, set(step.inputs)
        arguments = {argument: self.version(argument, read) for argument in node.all_input_nodes}
        outputs = [output.name for output in step.outputs]
        new = self.add(node, outputs[0] if outputs else None, arguments, is_copy)
        places = [_place(node, output.split("~")[0]) for output in outputs]
        if is_copy:
            new.meta = {**new.meta, "planned": dict(zip(places, outputs))}
        for part in node.users:
            if part.target is operator.getitem:
                made = dict(zip(places, outputs)).get(part.args[1])
                self.add(part, made, {node: new}, is_copy)

    def version(self, node: fx.Node, read: set[str]) -> fx.Node:
        """The node that stands for an argument: the one whose tensor is read."""
        versions = self.versions[node]
        return next((new for made, new in reversed(versions) if made in read), versions[0][1])

    def add(self, node: fx.Node, made: str | None, arguments: dict[fx.Node, fx.Node], is_copy: bool) -> fx.Node:
        new = self.graph.node_copy(node, arguments.__getitem__)
        # In the plan, tensors have the names of the nodes. Those of copies are no names in Python.
        new.name = node.name
        while is_copy and new.name in self.nodes:
            new.name += "_again"
        self.versions.setdefault(node, []).append((made, new))
        return new

    def finish(self) -> fx.GraphModule:
        output = self.module.graph.output_node()
        # Results are never made again.
        self.add(output, None, {node: self.versions[node][0][1] for node in output.all_input_nodes}, is_copy=False)
        return fx.GraphModule(self.module, self.graph)


def _place(node: fx.Node, tensor: str) -> int | None:
    """The place of a tensor in the result of an operator; None if it is the result."""
    return None if tensor == tensor_name(node) else int(tensor.rsplit(".", 1)[1])
