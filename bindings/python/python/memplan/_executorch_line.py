"""One line of steps for a graph and for the branches and loops that it runs.

The graphs inside an operator have steps of their own, one graph after another, between the operator's first step and its
last. Only one branch of a condition runs, so what is alive in another branch may lie in the same bytes. The result of a
condition begins in the operator's last step, and what each branch returns lies at its place: programs read a view of a
result there, whichever branch has run.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping

import torch
from executorch.exir import memory
from torch.fx import GraphModule, Node

Inside = Mapping[int, list]
"""The specs of each graph that an operator runs, by the id of its module."""


class Line:
    """The specs of a graph and of those inside it, with their lifetimes in steps."""

    def __init__(self, specs: list, graph_module, inside: Inside):
        self.top = list(graph_module.graph.nodes)
        self.inside = inside
        self.seen: set[int] = set()
        self.nodes: list[Node] = []
        """The nodes of all graphs."""
        self.specs: list = []
        self.index: dict[int, int] = {}
        """The places of specs in the list, by id."""
        self.begins: list[int] = []
        self.ends: list[int] = []
        self.returned: list[tuple[int, int]] = []
        """The values that branches return, each with the result of its condition; inner conditions come first."""
        self._add(graph_module, specs, 0)

    def _add(self, graph_module, specs: list, step: int) -> int:
        """Adds a graph from a step on, and returns the step after it. The allocation of an output stands before its
        operator, and has its step: an output then begins in the last step of the argument that it may lie over."""
        nodes, firsts, lasts, conditions = list(graph_module.graph.nodes), [], [], []
        results: set[int] = set()
        for node in nodes:
            firsts.append(step)
            self.nodes.append(node)
            modules = [module for module in modules_of(graph_module, node) if id(module) in self.inside]
            step += bool(modules)
            for module in modules:
                if id(module) in self.seen:
                    raise ValueError(f"{node.name}: it runs a graph that another operator runs as well; give each a copy")
                self.seen.add(id(module))
                bound = {id(spec) for placeholder in _bound(module, node) for spec in specs_of(placeholder)}
                step = self._add(module, [spec for spec in self.inside[id(module)] if id(spec) not in bound], step)
            if modules and node.target is torch.ops.higher_order.cond:
                conditions.append((node, modules))
                results |= {id(spec) for spec in specs_of(node)}
            lasts.append(step)
            step += node.target is not memory.alloc
        # A caller may count in nodes that the graph does not have.
        for _ in range(len(nodes), 1 + max((spec.lifetime[1] for spec in specs), default=-1)):
            firsts.append(step)
            lasts.append(step)
            step += 1
        for spec in specs:
            if id(spec) not in self.index:
                self.index[id(spec)] = len(self.specs)
                self.specs.append(spec)
                self.begins.append((lasts if id(spec) in results else firsts)[spec.lifetime[0]])
                self.ends.append(lasts[spec.lifetime[1]] + 1)
        for node, modules in conditions:
            for module in modules:
                self._return(node, module, lasts)
        return step

    def _return(self, node, module, lasts: list[int]) -> None:
        """Notes what a branch returns."""
        made = {id(spec) for other in module.graph.nodes if other.op != "placeholder" for spec in specs_of(other)}
        specs = node.meta["spec"]
        for output, spec in zip(_all(list(module.graph.nodes)[-1].args), specs if isinstance(specs, (list, tuple)) else [specs]):
            if spec is None or not isinstance(output, Node):
                continue
            own = spec_of(output)
            if id(own) not in made or id(own) not in self.index:
                raise ValueError(
                    f"{node.name}: a branch returns '{output.name}', which it does not make, or returns twice; return a clone of it"
                )
            made.remove(id(own))
            at = self.index[id(own)]
            if id(spec) in self.index:
                self.returned.append((at, self.index[id(spec)]))
            else:
                # The result has no place of its own, and is read where the branch has made it.
                self.ends[at] = max(self.ends[at], 1 + lasts[-1 if spec.lifetime[1] is None else spec.lifetime[1]])


def modules_of(graph_module, node) -> list:
    """The graphs that a node runs."""
    attributes = [argument for argument in flat(node.args) if argument.op == "get_attr"]
    modules = [getattr(graph_module, str(attribute.target), None) for attribute in attributes]
    return [module for module in modules if isinstance(module, GraphModule)]


def _bound(module, node) -> list:
    """The placeholders of a graph that stand for values of the graph around it. They have no memory of their own: a view
    of one is made when the program runs, where that value lies."""
    placeholders = [placeholder for placeholder in module.graph.nodes if placeholder.op == "placeholder"]
    if node.target is torch.ops.higher_order.cond:
        return placeholders
    if node.target is torch.ops.higher_order.map_impl:
        return placeholders[len(node.args[1]) :]
    if node.target is torch.ops.higher_order.scan:
        carried, scanned = len(node.args[1]), len(node.args[2])
        return placeholders[:carried] + placeholders[carried + scanned :]
    return []


def viewed(node):
    """The node whose memory a node's output lies in: a view lies in the memory of its argument."""
    while getattr(node, "target", None) is memory.view:
        node = node.args[0]
    return node


def spec_of(node, place: int = 0):
    """The spec that has memory of its own, or None."""
    node = viewed(node)
    if getattr(node, "target", None) is operator.getitem:
        return spec_of(node.args[0], node.args[1])
    spec = getattr(node, "meta", {}).get("spec")
    if isinstance(spec, (list, tuple)):
        spec = spec[place] if place < len(spec) else None
    return spec


def base_of(spec):
    """The spec that this one is declared to lie in. ExecuTorch 1.5.1 calls it `storage_base`, and development versions
    `inplace_base`; 1.0 has none."""
    base = getattr(spec, "storage_base", None)
    return getattr(spec, "inplace_base", None) if base is None else base


def base_offset(spec) -> int:
    """The byte of the other spec at which this one begins."""
    return getattr(spec, "storage_base_offset", 0)


def lay_in(spec, base, offset: int) -> None:
    """Declares a spec to lie in another one, as far as this version of ExecuTorch has words for it."""
    if hasattr(spec, "storage_base"):
        spec.storage_base, spec.storage_base_offset = base, offset
    elif hasattr(spec, "inplace_base") and offset == 0:
        spec.inplace_base = base


def specs_of(node) -> list:
    specs = node.meta.get("spec")
    return [spec for spec in (specs if isinstance(specs, (list, tuple)) else [specs]) if spec is not None]


def arguments_of(node) -> list:
    """The nodes that a node reads. Its outputs are keyword arguments."""
    outs = {a.name for a in getattr(getattr(node.target, "_schema", None), "arguments", ()) if a.is_out}
    return list(flat([*node.args, *(value for name, value in node.kwargs.items() if name not in outs)]))


def flat(arguments):
    """The nodes among some arguments."""
    return (argument for argument in _all(arguments) if hasattr(argument, "meta"))


def _all(arguments) -> list:
    return [item for argument in arguments for item in (_all(argument) if isinstance(argument, (list, tuple)) else [argument])]
