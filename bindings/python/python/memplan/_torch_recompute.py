"""A partitioner for torch.compile and AOTAutograd: what the backward pass saves, and what it runs again."""

from __future__ import annotations

import hashlib
import operator
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import fx
from torch._functorch import config, partitioners
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import CheckpointPolicy

from . import Operator, Output, Sequence, __version__, plan, recompute

try:
    from torch._inductor.custom_graph_pass import CustomPartitionerFn
except ImportError:  # Before torch 2.9, only `aot_autograd` takes it.
    CustomPartitionerFn = object

FLOPS, BANDWIDTH = 100e12, 1.5e12
"""Of the roofline: operations and bytes per second."""

FUSED = 10
"""Inductor computes an element-wise operator inside the kernel that reads its result, so that running it again moves no
bytes for it: its cost is divided by this."""

_ATTEMPTS = 5
"""The model differs from what torch makes of the tags by a few tensors; the budget of the model is tightened so often."""

_MORE = (1, 1.05, 1.2, 1.5)
"""If nothing fits a capacity, larger ones are tried: these multiples of it, or the least peak that the search has met if
that is larger."""

_EFFORT, _LEAST_EFFORT = 4_000, 1_000_000
"""The nodes of a search for each operator, and at least."""

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


@dataclass
class Report:
    """What became of one graph."""

    budget: int
    """In bytes."""
    planned_peak: int
    """The most bytes of activations, gradients and results alive at once; parameters and inputs are outside."""
    given_peak: int
    """The same if every value is saved that the backward pass reads; with Inductor, for its own partition."""
    peak_bound: int
    """No recomputation in this order has a smaller peak."""
    extra_cost: int
    forward_cost: int
    saved: list[str] = field(default_factory=list)
    """The values that pass from the forward to the backward graph."""
    runs: list[str] = field(default_factory=list)
    """The nodes that run twice."""
    exact: bool = True
    """False if the compiler fuses operators afterwards, so that the peak is an estimate."""

    @property
    def fits(self) -> bool:
        return self.planned_peak <= self.budget

    def __str__(self) -> str:
        kind = "peak" if self.exact else "estimate of the peak"
        share = 100 * self.extra_cost / max(self.forward_cost, 1)
        return (
            f"{kind} {self.planned_peak} bytes of {self.given_peak}, budget {self.budget}; {len(self.runs)} operators run "
            f"twice, {share:.1f} % of the forward pass; {len(self.saved)} values are saved"
        )


class Recompute(CustomPartitionerFn):
    """Saves, or runs again, what the backward pass reads, so that the peak of a training step is within a budget.

        budget = memplan.torch.Recompute("8GiB")
        step = torch.compile(model, options={"custom_partitioner_fn": budget})

    It is a `partition_fn` of `aot_autograd` as well. `budget` is a number of bytes, or text such as "8GiB". `cost` is
    "roofline" (the larger of the time for operations and for bytes, in nanoseconds), "flops", or a function of a node.
    `effort` is in nodes, as in `memplan.recompute`. The budget holds for one graph; `reports` has one for each.
    """

    def __init__(self, budget: int | str, *, cost: str | Callable[[fx.Node], float] = "roofline", effort: int | None = None):
        check_cost(cost)
        self.budget, self.cost, self.effort = _bytes(budget), cost, effort
        self.reports: list[Report] = []

    @property
    def report(self) -> Report | None:
        """The report of the last graph; None if torch took all that it compiled from its cache."""
        return self.reports[-1] if self.reports else None

    def uuid(self):
        if callable(self.cost):
            return None
        text = f"{__version__} {torch.__version__} {self.budget} {self.cost} {self.effort}"
        return hashlib.sha256(text.encode()).digest()

    def __call__(self, joint: fx.GraphModule, joint_inputs, *, num_fwd_outputs: int, **options):
        options = {"num_fwd_outputs": num_fwd_outputs, **options}
        joint.graph.eliminate_dead_code()
        if config.cse:
            joint.graph = partitioners.fx_graph_cse(joint.graph)
        _save_mutated_inputs(joint)
        joint.recompile()
        static = options.get("static_lifetime_input_indices") or []
        info = partitioners.classify_nodes(joint, static, num_fwd_outputs)
        fuses = options.get("compiler") == "inductor"
        graph = _Joint(joint, info, self.cost, fuses)
        # Inductor's own partition runs again what costs nothing in a fused kernel.
        full = best = self._partition(joint, joint_inputs, graph, None if fuses else set(), options)
        target = self.budget
        for _ in range(_ATTEMPTS if full.peak > self.budget else 0):
            again, within = graph.choose(target, self.effort)
            tried = self._partition(joint, joint_inputs, graph, again, options)
            if (max(tried.peak, self.budget), tried.extra) < (max(best.peak, self.budget), best.extra):
                best = tried
            aim = max(self.budget, within)
            if tried.peak <= aim or target <= graph.peak_bound:
                break
            target = within - (tried.peak - aim)
        report = Report(
            self.budget, best.peak, full.peak, graph.peak_bound, best.extra, graph.forward_cost, best.saved, best.runs, not fuses
        )
        self.reports.append(report)
        if not report.fits:
            warnings.warn(f"no recomputation within {self.budget} bytes was found: {report}", RuntimeWarning, stacklevel=2)
        return best.modules

    def _partition(self, joint, joint_inputs, graph, again, options):
        module = _copy(joint)
        if again is not None:
            graph.tag(module, again)
        with config.patch(activation_memory_budget=1.0):
            modules = partitioners.min_cut_rematerialization_partition(module, joint_inputs, **options)
        return _Realised.of(*modules, graph, options["num_fwd_outputs"])


def _bytes(budget: int | str) -> int:
    if isinstance(budget, int):
        found = budget
    else:
        match = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*", budget)
        if not match or match[2].upper() not in _UNITS:
            raise ValueError(f"budget: '{budget}' is no number of bytes, such as 8GiB or 500MB")
        found = int(float(match[1]) * _UNITS[match[2].upper()])
    if found <= 0:
        raise ValueError("budget: it must be at least a byte")
    return found


def _save_mutated_inputs(joint: fx.GraphModule) -> None:
    """What runs again must read the buffers of the forward pass, not those that it has updated."""
    placeholders = [node for node in joint.graph.nodes if node.op == "placeholder"]
    copies = [node for node in joint.graph.nodes if node.target is torch.ops.aten.copy_.default]
    # If the runtime applies the updates, they are results that name their input.
    descriptions = list(joint.graph.nodes)[-1].meta.get("desc") or []
    inputs = [getattr(one, "mutated_input", None) for one in descriptions]
    named = {node for node in placeholders if any(one is not None and one == node.meta.get("desc") for one in inputs)}
    mutated = ({node.args[0] for node in copies} | named) & set(placeholders)
    for node in placeholders:
        if node not in mutated:
            continue
        readers = [user for user in node.users if user not in copies and user.op != "output"]
        if not readers:
            continue
        with joint.graph.inserting_after(placeholders[-1]):
            clone = joint.graph.call_function(torch.ops.aten.clone.default, (node,))
        clone.meta = {**node.meta, "recompute": CheckpointPolicy.MUST_SAVE}
        for reader in readers:
            reader.replace_input_with(node, clone)


def _copy(module: fx.GraphModule) -> fx.GraphModule:
    graph, made = fx.Graph(), {}
    for node in module.graph.nodes:
        made[node] = graph.node_copy(node, made.__getitem__)
        made[node].meta = dict(node.meta)
    return fx.GraphModule(module, graph)


def _tensors(node: fx.Node) -> list[torch.Tensor]:
    value = node.meta.get("val")
    values = value if isinstance(value, (list, tuple)) else [value]
    return [one for one in values if isinstance(one, torch.Tensor)]


def _size(number) -> int:
    """A size, or the hint of a symbol, without specializing it."""
    return number if isinstance(number, int) else number.node.hint if number.node.has_hint() else 4096


def _nbytes(tensor: torch.Tensor) -> int:
    if not tensor.numel().__class__ is int:
        count = 1
        for size in tensor.shape:
            count *= _size(size)
        return count * tensor.element_size()
    return tensor.numel() * tensor.element_size()


def _is_view(node: fx.Node) -> bool:
    """Whether a node's result lies in the storage of its first argument."""
    if node.target is operator.getitem:
        return True
    schema = getattr(node.target, "_schema", None)
    alias = schema.arguments[0].alias_info if schema is not None and schema.arguments else None
    is_alias = alias is not None and not alias.is_write
    return is_alias or node.target is torch.ops.aten._unsafe_view.default


def is_once(node: fx.Node) -> bool:
    """Whether a node must not run twice: it draws random numbers, writes an argument, communicates, or has another
    effect; and what is no operator of torch's may do any of that."""
    tags = getattr(node.target, "tags", ())
    name = str(node.target)
    effects = getattr(getattr(node.target, "_schema", None), "is_mutable", False)
    return (
        torch.Tag.nondeterministic_seeded in tags
        or effects
        or "inductor_seeds" in name
        or "_c10d_functional" in name
        or "with_effects" in name
        or not isinstance(node.target, (torch._ops.OpOverload,)) and node.target is not operator.getitem
    )


def _meta(value):
    """A tensor of the meta device with the sizes, or their hints, of a value; other values as they are."""
    if not isinstance(value, torch.Tensor):
        return _size(value) if isinstance(value, torch.SymInt) else value
    return torch.empty([_size(size) for size in value.shape], dtype=value.dtype, device="meta")


def _flops(node: fx.Node) -> int:
    from torch.utils.flop_counter import flop_registry

    count = flop_registry.get(getattr(node.target, "_overloadpacket", None))
    if count is None:
        return 0
    value = lambda one: _meta(one.meta.get("val") if isinstance(one, fx.Node) else one)  # noqa: E731
    with unset_fake_temporarily():
        args, kwargs = fx.node.map_aggregate((node.args, node.kwargs), value)
        try:
            return int(count(*args, **kwargs, out_val=tree_map(_meta, node.meta.get("val"))))
        except Exception:  # A shape that the formula does not know.
            return 0


def cost_of(node: fx.Node, cost: str | Callable[[fx.Node], float]) -> int:
    """The cost of a node: its time by the roofline in nanoseconds, its operations, or what a function of it returns."""
    if callable(cost):
        return max(0, round(cost(node)))
    if cost == "flops":
        return max(1, _flops(node))
    values = [tensor for source in (*node.all_input_nodes, node) for tensor in _tensors(source)]
    seconds = max(_flops(node) / FLOPS, sum(map(_nbytes, values)) / BANDWIDTH)
    return max(1, round(seconds * 1e9))


def check_cost(cost: str | Callable[[fx.Node], float]) -> None:
    if not callable(cost) and cost not in ("roofline", "flops"):
        raise ValueError(f"cost: '{cost}' is neither 'roofline', 'flops' nor a function of a node")


class _Joint:
    """The joint graph as a sequence."""

    def __init__(self, joint: fx.GraphModule, info, cost, fuses: bool):
        self.joint, self.info = joint, info
        self.cost, self.fuses = cost, fuses
        self.forward = {node.name for node in info.required_fw_nodes}
        self.nodes = {node.name: node for node in joint.graph.nodes}
        self.root: dict[fx.Node, fx.Node] = {}
        self.costs: dict[str, int] = {}
        self.begin = 1 << 62
        """The place of the first operator of the backward pass."""
        self.sequence = self._sequence()
        full = plan(self.sequence, strategy="pushdown")
        self.given_peak = full.lower_bound
        self.peak_bound = recompute(self.sequence, capacity=1).peak_bound
        self.forward_cost = sum(self.costs[name] for name in self.costs if name in self.forward)

    def _sequence(self) -> Sequence:
        operators, outputs, weights = [], [], {}
        nodes = self._in_order()
        results = set(nodes[-1].all_input_nodes)
        for node in nodes:
            if node.op in ("placeholder", "get_attr"):
                self.root[node] = node
                weights[node.name] = None
                continue
            if node.op != "call_function":
                continue
            if _is_view(node) and node.all_input_nodes:
                self.root[node] = self.root[node.all_input_nodes[0]]
                continue
            self.root[node] = node
            read = list(dict.fromkeys(name for n in node.all_input_nodes for name in self._names(n)))
            made = [Output(f"{node.name}.{at}", _nbytes(tensor)) for at, tensor in enumerate(_tensors(node))]
            tagged = node.meta.get("recompute") == CheckpointPolicy.MUST_SAVE
            # What neither pass needs by itself runs where it is read first.
            is_free = node in self.info.unclaimed_nodes
            once = not (node.name in self.forward or is_free) or tagged or is_once(node)
            self.costs[node.name] = self._cost(node)
            operators.append(Operator(node.name, read, made, cost=self.costs[node.name], once=once))
            if node in self.info.required_bw_nodes:
                self.begin = min(self.begin, len(operators) - 1)
        for node in results:
            outputs += [name for name in self._names(node) if name not in weights]
        return Sequence(operators, outputs=list(dict.fromkeys(outputs)), weights=weights)

    def _cost(self, node: fx.Node) -> int:
        is_fused = self.fuses and self.cost == "roofline" and torch.Tag.pointwise in getattr(node.target, "tags", ())
        cost = cost_of(node, self.cost)
        return max(1, cost // FUSED) if is_fused else cost

    def _in_order(self) -> list[fx.Node]:
        """The nodes, with the forward pass before the backward pass. Updates of buffers, which torch puts behind both,
        belong to the forward pass."""
        before: list[fx.Node] = []
        after: list[fx.Node] = []
        late: set[fx.Node] = set()
        for node in self.joint.graph.nodes:
            is_forward = node in self.info.required_fw_nodes and not any(n in late for n in node.all_input_nodes)
            begins = not after and node not in self.info.required_bw_nodes
            if is_forward or begins or node.op == "placeholder":
                before.append(node)
            else:
                after.append(node)
                late.add(node)
        return before + after

    def _names(self, node: fx.Node) -> list[str]:
        """The tensors that a node's value lies in."""
        root, path = self.root[node], node
        if root.op in ("placeholder", "get_attr"):
            return [root.name]
        while path is not root and path.target is not operator.getitem:
            path = path.all_input_nodes[0]
        count = len(_tensors(root))
        if path.target is operator.getitem and path.args[0] is root and isinstance(root.meta.get("val"), (list, tuple)):
            values = root.meta["val"]
            at = sum(isinstance(value, torch.Tensor) for value in values[: path.args[1]])
            return [f"{root.name}.{at}"] if isinstance(values[path.args[1]], torch.Tensor) else []
        return [f"{root.name}.{at}" for at in range(count)]

    def choose(self, capacity: int, effort: int | None) -> tuple[set[str], int]:
        """The names of the nodes that run again, and the capacity that they are within: a larger one if nothing was found
        within that one."""
        # A search without limits goes on where it finds nothing; here, a larger capacity is tried instead.
        usual = max(_LEAST_EFFORT, _EFFORT * len(self.costs))
        options = {"effort": usual if effort is None else effort}
        capacity = within = max(capacity, self.peak_bound)
        found = recompute(self.sequence, capacity=within, **options)
        for more in _MORE:
            if found.possible is True:
                break
            within = min(max(found.least, int(more * capacity)), self.given_peak)
            found = recompute(self.sequence, capacity=within, **options)
        names = list(self.costs)
        # A run again before the backward pass begins is none of the partitioner's.
        later = [names[at] for at, before, _ in found.later if before >= self.begin]
        return {name for name in later if name in self.forward}, within

    def tag(self, module: fx.GraphModule, again: set[str]) -> None:
        """Marks what is saved and what runs again. Views and parts of results go with their storage."""
        for node in module.graph.nodes:
            if node.op != "call_function" or node.meta.get("recompute") is not None:
                continue
            original = self.nodes[node.name]
            root = self.root.get(original)
            if root is None or node.name not in self.forward:
                continue
            if root.name in again:
                node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
            elif root is original or not _is_view(original) or original.target is operator.getitem:
                node.meta["recompute"] = CheckpointPolicy.MUST_SAVE


@dataclass
class _Realised:
    """What torch made of the tags."""

    modules: tuple[fx.GraphModule, fx.GraphModule]
    peak: int
    extra: int
    saved: list[str]
    runs: list[str]

    @classmethod
    def of(cls, forward, backward, graph: _Joint, results: int) -> _Realised:
        names = lambda module: {n.name for n in module.graph.nodes if n.op == "call_function"}  # noqa: E731
        twice = names(forward) & names(backward)
        runs = sorted(name for name in twice if name in graph.costs)
        outputs = list(forward.graph.nodes)[-1].args[0]
        saved = [node.name for node in outputs[results:] if isinstance(node, fx.Node)]
        owners = _owners(forward, {})
        own = {node.name for node in forward.graph.nodes if node.op == "call_function"}
        made = lambda node: [owner for owner in owners[node] if owner[0] in own]  # noqa: E731
        given = {node.name: made(node) for node in outputs[results:] if isinstance(node, fx.Node)}
        held = [owner for node in outputs[:results] if isinstance(node, fx.Node) for owner in made(node)]
        peak = max(_peak(forward, [], {}), _peak(backward, held, given))
        return cls((forward, backward), peak, sum(graph.costs[name] for name in runs), saved, runs)


def _owners(module: fx.GraphModule, given: dict[str, tuple]) -> dict[fx.Node, list[tuple]]:
    """By node: the storages that its value lies in, each with the name of a node, the place among its results, and the
    bytes. `given` has the storages of placeholders."""
    owners: dict[fx.Node, list[tuple]] = {}
    for node in module.graph.nodes:
        sources = node.all_input_nodes
        if node.op == "output":
            continue
        if node.target is operator.getitem and sources and _is_view(sources[0]):
            # All parts of a split, or of an unbound tensor, lie in its storage.
            owners[node] = owners[sources[0]]
        elif node.target is operator.getitem and sources:
            whole = owners[sources[0]]
            values = sources[0].meta.get("val")
            place = sum(isinstance(value, torch.Tensor) for value in values[: node.args[1]])
            is_tensor = isinstance(values[node.args[1]], torch.Tensor)
            owners[node] = whole[place : place + 1] if is_tensor else []
        elif node.op == "call_function" and _is_view(node) and sources:
            owners[node] = owners[sources[0]]
        else:
            own = [(node.name, at, _nbytes(tensor)) for at, tensor in enumerate(_tensors(node))]
            owners[node] = given.get(node.name, own)
    return owners


def _peak(module: fx.GraphModule, results: list, given: dict[str, list[tuple]]) -> int:
    """The most bytes alive while a graph runs. `given` has the storages of the placeholders that were saved; The caller
    holds `results`, the results of the forward pass."""
    nodes = list(module.graph.nodes)
    # Parameters, buffers and inputs are outside, and so are their views.
    placeholders = [node.name for node in nodes if node.op in ("placeholder", "get_attr")]
    outside = {name: [] for name in placeholders if name not in given and not name.startswith("tangents")}
    owners = _owners(module, {**given, **outside})
    first: dict[tuple, int] = {}
    last: dict[tuple, int] = {}
    for at, node in enumerate(nodes):
        for owner in owners.get(node, ()):
            first.setdefault(owner, 0 if node.op == "placeholder" else at)
            last[owner] = max(last.get(owner, 0), at)
        for source in node.all_input_nodes:
            for owner in owners[source]:
                last[owner] = len(nodes) if node.op == "output" else max(last.get(owner, 0), at)
    for owner in results:
        first[owner], last[owner] = 0, len(nodes)
    changes = [0] * (len(nodes) + 2)
    for owner, begin in first.items():
        changes[begin] += owner[2]
        changes[last[owner] + 1] -= owner[2]
    peak = alive = 0
    for change in changes:
        alive += change
        peak = max(peak, alive)
    return peak
