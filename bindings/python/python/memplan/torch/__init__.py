"""Plans of PyTorch graphs: exported programs and FX graphs, and a runner that executes one inside its arena.

    from memplan.torch import Planned, from_exported_program

    exported = torch.export.export(model, inputs)
    plan = memplan.plan(from_exported_program(exported), alignment=64)

Two tensors share memory if the fake tensors of a trace share their storage: views and in-place operators follow from
that, not from a list of operators. Where a trace has lost this, as with AOTAutograd or after saving, the graph is run once
with fake tensors. Weights and graph inputs stay outside the pool. The branches of `torch.cond` share memory, and make
their results in its outputs where each fills a storage of its own. The graphs of `while_loop`, `scan` and `map` are
planned in the workspace of the loop. Values that pass to the next iteration, and slices, are copied there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from dataclasses import dataclass

import torch
from torch import fx
from torch._subclasses import FakeTensor, FakeTensorMode

from .. import Operator, Output, Sequence
from .._torch_arena import Planned, graphs, is_condition, is_operator, span
from .._torch_order import in_order
from .._torch_recompute import Recompute, check_cost, cost_of, is_once

__all__ = ["Planned", "Recompute", "from_exported_program", "from_graph", "in_order"]


def from_exported_program(
    program, *, inplace: bool = False, cost: str | Callable[[fx.Node], float] = "roofline"
) -> Sequence:
    """Returns the operators of a `torch.export.ExportedProgram`. Parameters, buffers and constants are weights.

    `inplace` requests that element-wise operators, softmax and inference's batch norm be written over an argument: only for
    a runtime that passes the output to the kernel, which eager PyTorch does not do.
    """
    signature = program.graph_signature
    weights = [
        *signature.inputs_to_parameters,
        *signature.inputs_to_buffers,
        *getattr(signature, "inputs_to_lifted_tensor_constants", {}),
    ]
    return from_graph(program.graph_module, weights=weights, inplace=inplace, cost=cost)


def from_graph(
    graph_module: fx.GraphModule,
    *,
    weights: Collection[str] = (),
    inplace: bool = False,
    cost: str | Callable[[fx.Node], float] = "roofline",
) -> Sequence:
    """Returns the operators of an FX graph whose nodes have fake tensors in `meta["val"]`, such as those that `make_fx`
    and AOTAutograd make. `weights` names placeholders that are the same in every run. Operators that draw random numbers
    keep their order. `cost` means the same as in `Recompute`; random operators and operators with effects must not run twice."""
    check_cost(cost)
    names = {node.name for node in graph_module.graph.nodes if node.op in ("placeholder", "get_attr")}
    if unknown := [name for name in weights if name not in names]:
        raise ValueError(f"weights: the graph has no placeholder '{unknown[0]}'")
    if (node := next(filter(_is_untraced, graph_module.graph.nodes), None)) is not None:
        raise ValueError(
            f"'{node.name}' has no fake tensor in meta['val']: make the graph with torch.export, make_fx or AOTAutograd"
        )
    return _Reader(graph_module, frozenset(weights), inplace, cost=cost).sequence()


def _is_untraced(node: fx.Node) -> bool:
    """Returns whether a node that has a value has none in a trace."""
    if "val" in node.meta or node.op in ("get_attr", "output"):
        return False
    if node.target is operator.getitem:
        # A result that an operator leaves out has no value, either.
        whole = node.args[0].meta.get("val")
        return isinstance(whole, (list, tuple)) and whole[node.args[1]] is not None
    schema = getattr(node.target, "_schema", None)
    return schema is None or any("Tensor" in str(result.type) for result in schema.returns)


def _is_random(node: fx.Node) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


class _FakeRun(fx.Interpreter):
    """Runs a graph with fake tensors, and keeps what each node returns."""

    def __init__(self, graph_module: fx.GraphModule, mode: FakeTensorMode):
        super().__init__(graph_module, garbage_collect_values=False)
        self.mode = mode
        self.values: dict[fx.Node, object] = {}

    def run_node(self, n: fx.Node):
        # The results of a loop in a trace are parts of a storage with a slice for each iteration.
        is_loop = n.target is torch.ops.higher_order.while_loop
        result = tuple(map(_empty_like, n.meta["val"])) if is_loop else super().run_node(n)
        if n.op == "get_attr" and isinstance(result, torch.Tensor):
            result = self.mode.from_tensor(result)
        self.values[n] = result
        return result


def _values(graph_module: fx.GraphModule, *, is_loop: bool = False) -> dict[fx.Node, object]:
    """The value of each node, as fake tensors that share their storage where the real ones would. The graph of a loop gets
    copies, which share no storage."""
    nodes = list(graph_module.graph.nodes)
    values = {node: node.meta.get("val") for node in nodes}
    if not is_loop and not any(_lost_its_storage(node) for node in nodes):
        return values
    inputs = [values[node] for node in nodes if node.op == "placeholder"]
    modes = {id(value.fake_mode): value.fake_mode for value in inputs if isinstance(value, FakeTensor)}
    # A trace of real tensors makes a mode of its own for each value.
    mode = next(iter(modes.values())) if len(modes) == 1 else FakeTensorMode()
    if is_loop or len(modes) != 1:
        with mode:
            inputs = list(map(_empty_like, inputs))
    run = _FakeRun(graph_module, mode)
    with mode:
        run.run(*inputs)
    return run.values


def _empty_like(value):
    """A tensor like another in a storage of its own, or a number as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)


def _lost_its_storage(node: fx.Node) -> bool:
    """Returns whether a node is a view or an argument that it writes by its schema, but its fake tensor does not lie in
    that of an argument, or whether it is a loop, whose results have no storage of their own in a trace."""
    if node.target is torch.ops.higher_order.while_loop:
        return True
    schema, value = getattr(node.target, "_schema", None), node.meta.get("val")
    if schema is None or not any(result.alias_info is not None for result in schema.returns):
        return False
    # These return a view or a copy, as it happens.
    if torch._C._dispatch_has_kernel_for_dispatch_key(node.target.name(), "CompositeImplicitAutograd"):
        return False
    results = value if isinstance(value, (list, tuple)) else [value]
    arguments = [argument.meta.get("val") for argument in node.all_input_nodes]
    known = {_storage(argument) for argument in arguments if isinstance(argument, torch.Tensor)}
    return any(isinstance(result, torch.Tensor) and _storage(result) not in known for result in results)


def _whole(value, node: fx.Node) -> int:
    """A size as an integer: a symbol's largest value."""
    if isinstance(value, int):
        return value
    symbol = value.node
    upper = symbol.shape_env.bound_sympy(symbol.expr).upper
    if not upper.is_Integer:
        raise ValueError(f"{node.name}: {symbol.expr} has no upper bound; give its dimension a max")
    return int(upper)


def _span(tensor: torch.Tensor, node: fx.Node) -> int:
    sizes = [_whole(size, node) for size in tensor.shape]
    return span(sizes, [_whole(stride, node) for stride in tensor.stride()], tensor.element_size())


def _offset(tensor: torch.Tensor, node: fx.Node) -> int:
    """The bytes from the start of a tensor's storage to its first element."""
    return _whole(tensor.storage_offset(), node) * tensor.element_size()


def _capacity(tensor: torch.Tensor, node: fx.Node) -> int:
    """The bytes of a tensor's storage. For an example input that is a view, export may make this a
    symbol; the result is then the bytes up to the end of the view."""
    size = tensor.untyped_storage().nbytes()
    if isinstance(size, int):
        return size
    return _offset(tensor, node) + _span(tensor, node)


def _storage(tensor: torch.Tensor) -> int:
    # The fake tensors stay alive in the graph, so no address is used twice.
    return tensor.untyped_storage()._cdata


# In training mode (argument 5), they write the running mean and variance (arguments 3 and 4), which their schemas omit.
_NORMS_WITH_STATISTICS = {"aten::batch_norm", "aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::instance_norm"}


def _reads_before_it_writes(node: fx.Node) -> bool:
    """Returns whether an operator's kernel reads an element, or a row, before it writes the one at the same place."""
    if torch.Tag.pointwise in getattr(node.target, "tags", ()):
        return True
    name = getattr(getattr(node.target, "_schema", None), "name", "")
    if name == "aten::batch_norm":
        return not node.args[5]  # In training, it reads the whole input first, and then again.
    return name in ("aten::_softmax", "aten::softmax", "aten::_native_batch_norm_legit_no_training")


@dataclass(frozen=True)
class _Operand:
    """A tensor around a body in which one of the body's arguments lies."""

    owner: str
    """The tensor that its storage was made for."""
    offset: int
    """Bytes from the start of that tensor to the argument."""
    size: int | None
    """The owner's size in bytes."""


@dataclass(frozen=True)
class _Surroundings:
    """The surroundings of a body, which is a branch of a condition or a graph of a loop."""

    prefix: str
    """Tensors of the body have names that begin with it, unlike those around it."""
    operands: list[_Operand | None]
    """The tensors that its placeholders stand for; None for numbers and for copies that a loop makes."""
    results: list[tuple[str, int] | None]
    """The outputs of the condition, with their sizes in bytes; None for what is no tensor. A loop has none here."""
    arguments: list
    """The nodes and numbers of the graph around it that its placeholders stand for; None for copies that a loop makes."""
    is_loop: bool
    """True if its results become the arguments of the next iteration, so that they must not lie in them."""


class _Reader:
    def __init__(
        self, graph_module: fx.GraphModule, weights: frozenset[str], inplace: bool, around: _Surroundings | None = None, cost="roofline"
    ):
        self.module = graph_module
        self.graph = graph_module.graph
        self.around = around or _Surroundings("", [], [], [], False)
        self.values = _values(graph_module, is_loop=self.around.is_loop)
        self.weight_names, self.inplace, self.cost = weights, inplace, cost
        self.operands: dict[fx.Node, _Operand] = {}
        """The tensors that a body's placeholders stand for."""
        self.owners: dict[int, tuple[str, int]] = {}
        """The tensor that each storage was made for, and the byte of that tensor at which the storage begins."""
        self.inputs: dict[str, int] = {}
        self.weights: dict[str, int | None] = {}
        self.operators: list[Operator] = []
        self.outputs: list[str] = []
        self.touched: dict[int, list[str]] = {}
        """For each storage, the operator that wrote it last and those that have used it since."""
        self.writers: dict[int, str] = {}
        """The operator that wrote each storage last."""
        self.results: dict[int, int] = {}
        """The storages that may be made in outputs of the condition, by the places of these."""
        self.made: dict[int, int] = {}
        """Those that are made there."""
        self.last_random: str | None = None
        """The operator that drew random numbers last."""

    def name(self, node: fx.Node) -> str:
        """The name of the tensor that an argument stands for."""
        if node.target is operator.getitem and isinstance(node.args[0], fx.Node):
            return f"{self.name(node.args[0])}.{node.args[1]}"
        return self.operands[node].owner if node in self.operands else self.around.prefix + node.name

    def sequence(self) -> Sequence:
        self.operands = {node: operand for node, operand in zip(self.placeholders(), self.around.operands) if operand}
        self.results = self.results_by_storage()
        self.weights |= dict(result for result in self.around.results if result is not None)
        for node in self.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                self.supplied(node)
            elif node.op == "output":
                self.output(node)
            elif is_operator(node):
                self.operator(node)
        return Sequence(self.operators, inputs=self.inputs, outputs=self.outputs, weights=self.weights)

    def output(self, node: fx.Node) -> None:
        if not self.around.results:
            known = set(self.inputs) | set(self.weights) | {name for n in self.graph.nodes for name, _ in self.tensors(n)}
            for value in node.all_input_nodes:
                name = self.name(value)
                if name in known:
                    self.outputs.append(self.copied(value, name) if self.around.is_loop else name)
            return
        for at, (value, result) in enumerate(zip(self.returned(node), self.around.results)):
            if result is None:
                continue
            name, size = result
            source = self.name(value)
            if self.made.get(_storage(self.values[value])) == at:
                self.outputs.append(source)
            else:
                # It fills only some of the bytes of its storage.
                copy = f"{source} in {name}"
                self.operators.append(Operator(f"copy {source}", [source, name], [Output(copy, size, updates=name)]))
                self.outputs.append(copy)

    def copied(self, value: fx.Node, name: str) -> str:
        """The name of a value that a loop returns, or of its copy if it lies in an argument of the loop."""
        tensor = self.values[value]
        owner, _ = self.owners.get(_storage(tensor), (name, 0))
        if owner not in self.inputs and owner not in self.weights:
            return name
        copy = f"{name} returned"
        self.operators.append(Operator(f"copy {name}", [owner], [Output(copy, _span(tensor, value))]))
        return copy

    @staticmethod
    def returned(node: fx.Node) -> list:
        """The values that a body returns, in order."""
        values = node.args[0]
        return list(values) if isinstance(values, (list, tuple)) else [values]

    def results_by_storage(self) -> dict[int, int]:
        """The storages that may be made in outputs of the condition, whose types and strides `torch.cond` makes equal."""
        found: dict[int, int] = {}
        for at, (value, result) in enumerate(zip(self.returned(self.graph.output_node()), self.around.results)):
            if result is not None:
                inside = self.values[value]
                if _capacity(inside, value) == result[1]:
                    found.setdefault(_storage(inside), at)
        return found

    def placeholders(self) -> list[fx.Node]:
        return [node for node in self.graph.nodes if node.op == "placeholder"]

    def bodies(self, node: fx.Node) -> list[_Reader]:
        """Readers of the branches of a condition, or of the graphs of a loop."""
        inner = graphs(node)
        modules = [getattr(self.module, str(graph.target), None) for graph, _ in inner]
        if not all(isinstance(module, fx.GraphModule) for module in modules):
            return []
        is_tensor = lambda n: isinstance(n, fx.Node) and isinstance(self.values[n], torch.Tensor)  # noqa: E731
        operands = lambda arguments: [self.operand(n) if is_tensor(n) else None for n in arguments]  # noqa: E731
        results: list[tuple[str, int] | None] = []
        if is_condition(node):
            value = self.values[node]
            values = [value] if isinstance(value, torch.Tensor) else value
            outputs = {id(tensor): name for name, tensor in self.tensors(node)}
            results = [(outputs[id(v)], _capacity(v, node)) if id(v) in outputs else None for v in values]
        around = lambda graph, arguments: _Surroundings(  # noqa: E731
            f"{self.around.prefix}{graph.target}.", operands(arguments), results, arguments, not is_condition(node)
        )
        return [
            _Reader(module, frozenset(), self.inplace, around(graph, arguments))
            for (graph, arguments), module in zip(inner, modules)
        ]

    def operand(self, node: fx.Node) -> _Operand:
        """The place of a condition's argument in the tensor that its storage was made for."""
        tensor = self.values[node]
        offset = _offset(tensor, node)
        owner, begin = self.owners.get(_storage(tensor), (self.name(node), -offset))
        return _Operand(owner, begin + offset, self.weights.get(owner, _capacity(tensor, node)))

    def tensors(self, node: fx.Node) -> list[tuple[str, torch.Tensor]]:
        """The tensors that a node returns, with their names in the plan. A tuple may hold None."""
        value = self.values[node]
        if isinstance(value, torch.Tensor):
            return [(self.name(node), value)]
        if isinstance(value, (list, tuple)):
            return [(f"{self.name(node)}.{at}", item) for at, item in enumerate(value) if isinstance(item, torch.Tensor)]
        return []

    def supplied(self, node: fx.Node) -> None:
        if node in self.operands:
            return self.stands_for(node, self.operands[node])
        for name, tensor in self.tensors(node):
            self.owners.setdefault(_storage(tensor), (name, 0))
            size = _capacity(tensor, node)
            if node.op == "placeholder" and node.name not in self.weight_names:
                self.inputs[name] = size
            else:
                self.weights[name] = size

    def stands_for(self, node: fx.Node, operand: _Operand) -> None:
        """A placeholder of a body may begin anywhere in its own storage and in that around the body."""
        tensor = self.values[node]
        owner = (operand.owner, operand.offset - _offset(tensor, node))
        if self.owners.setdefault(_storage(tensor), owner) != owner:
            name = self.around.prefix + node.name
            raise ValueError(f"{name}: it shares memory with another argument in the branch or loop, but not around it")
        self.weights[operand.owner] = operand.size

    def operator(self, node: fx.Node) -> None:
        arguments = [n for n in node.all_input_nodes if self.tensors(n)]
        read = [self.name(argument) for argument in arguments]
        values = [self.values[a] for a in arguments if isinstance(self.values[a], torch.Tensor)]
        used = {_storage(value) for value in values}
        written = {_storage(value) for value in self.written(node)}
        made: set[int] = set()
        outputs = []
        readers = self.bodies(node)
        bodies = [body.sequence() for body in readers]
        for body in readers:
            read += [operand.owner for operand in body.operands.values()]
            written |= self.written_in(body)
        # A body inside makes its results in this operator's own outputs.
        results = {} if bodies else self.results
        for name, tensor in self.tensors(node):
            storage = _storage(tensor)
            used.add(storage)
            owner, begin = self.owners.get(storage, (None, 0))
            if owner is None or storage in made:
                # This counts the storage, not the elements: padding and gaps between rows have bytes as well.
                size = _capacity(tensor, node) if owner is None else _span(tensor, node)
                if storage in results and owner is None:
                    self.made[storage] = results[storage]
                    place = self.around.results[results[storage]][0]
                    read.append(place)
                    outputs.append(Output(name, size, updates=place))
                else:
                    outputs.append(Output(name, size, overwrites=self.overwritable(node, tensor, size) or None))
                self.owners.setdefault(storage, (name, 0))
                made.add(storage)
            else:
                # A view, or an argument that was written in place: both lie in the bytes of the owner.
                place = (owner, begin + _offset(tensor, node))
                outputs.append(Output(name, _span(tensor, node), reads=place, required=True))
                read.append(owner)
        # A size that is known only at run time is not a tensor, but an operator makes it.
        makers = (n.args[0] if n.target is operator.getitem else n for n in node.all_input_nodes if n not in arguments)
        after = [n.name for n in makers if n.op not in ("placeholder", "get_attr")]
        # An operator that writes in place runs after all readers of the old bytes and before all readers of the new ones.
        for storage in sorted(used - made, key=lambda key: self.owners.get(key, ("", 0))):
            users = self.touched.setdefault(storage, [])
            if storage in written:
                after += users
                self.touched[storage] = [node.name]
                self.writers[storage] = node.name
            else:
                if storage in self.writers:
                    after.append(self.writers[storage])
                users.append(node.name)
        if _is_random(node) or any(body.last_random for body in readers):
            # In another order, the operators would draw other numbers.
            after += [self.last_random] if self.last_random else []
            self.last_random = node.name
        self.operators.append(
            Operator(
                node.name, list(dict.fromkeys(read)), outputs, kind=str(node.target), bodies=bodies,
                after=[other for other in dict.fromkeys(after) if other != node.name],
                cost=cost_of(node, self.cost), once=bool(written) or is_once(node),
            )
        )  # fmt: skip

    def written_in(self, body: _Reader) -> set[int]:
        """The storages of a condition's or a loop's arguments that a body writes."""
        pairs = zip(body.placeholders(), body.around.arguments)
        arguments = [(body.values[inside], self.values[n]) for inside, n in pairs if inside in body.operands]
        return {_storage(around) for inside, around in arguments if _storage(inside) in body.writers}

    def written(self, node: fx.Node) -> list[torch.Tensor]:
        """The arguments that a node writes."""
        schema = getattr(node.target, "_schema", None)
        written = []
        for place, argument in enumerate(getattr(schema, "arguments", ())):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = node.kwargs.get(argument.name, node.args[place] if place < len(node.args) else None)
                values = value if isinstance(value, (list, tuple)) else [value]
                written += [self.values[v] for v in values if isinstance(v, fx.Node) and isinstance(self.values[v], torch.Tensor)]
        if getattr(schema, "name", "") in _NORMS_WITH_STATISTICS and node.args[5]:
            written += [self.values[v] for v in node.args[3:5] if isinstance(v, fx.Node)]
        return written

    def overwritable(self, node: fx.Node, tensor: torch.Tensor, size: int) -> list[str]:
        """The arguments that an operator may be written over: whole tensors of equal type, sizes and strides."""
        if not self.inplace or not _reads_before_it_writes(node):
            return []
        same = lambda value: (  # noqa: E731
            value.dtype == tensor.dtype
            and value.shape == tensor.shape
            and value.stride() == tensor.stride()
            and _capacity(value, node) == size
        )
        values = [(n, self.values[n]) for n in node.all_input_nodes]
        return [self.name(n) for n, value in values if isinstance(value, torch.Tensor) and same(value)]
