"""Smaller pools for torch.compile: memplan in place of Inductor's memory planner, and beside its orders.

    import memplan.torch.inductor

    memplan.torch.inductor.install()
    compiled = torch.compile(model)

For inference, the buffers of a compiled graph then lie in one pool per device, at offsets that memplan has planned,
unless Inductor's own pools are smaller. memplan's order of the kernels is one more candidate in Inductor's
`reorder_for_peak_memory`, which keeps the one with the smallest peak. Outputs of the graph keep buffers of their own,
and sizes that only a run knows are left to Inductor. Graphs that were compiled before keep their code.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import sympy
import torch
from torch._inductor import config
from torch._inductor import memory as _memory
from torch._inductor.codegen import memory_planning as _planning

from .. import Operator, Output, Problem, Sequence, __version__, plan, verify
from .. import reorder as _reorder

__all__ = ["Pools", "install", "installed", "pools", "uninstall"]

_log = logging.getLogger(__name__)

_ALIGNMENT = 64
"""Inductor's `ALIGN_BYTES`."""


@dataclass(frozen=True)
class Pools:
    """The pool of one compiled graph on one device. Sizes are in bytes."""

    device: str
    bytes: int
    lower_bound: int
    buffers: int
    """The number of buffers that lie in it."""


pools: list[Pools] = []
"""memplan's pools of the graphs that have been compiled since `install`, in order. Graphs that come from torch's cache
are not planned again."""


@dataclass
class _Flat(_planning.AllocationTreeNode):
    """Allocations at fixed offsets, as the root of one of Inductor's pools."""

    allocations: list[Any]
    offsets: list[int]
    size: int

    def get_live_ranges(self) -> Any:
        ranges = [allocation.live_range for allocation in self.allocations]
        return _planning.LiveRanges(ranges)

    def get_size_hint(self) -> int:
        return self.size

    def get_symbolic_size(self) -> sympy.Expr:
        return sympy.Integer(self.size)

    def finalize(self, pool: Any, offset: Any) -> Any:
        for allocation, at in zip(self.allocations, self.offsets):
            allocation.finalize(pool, offset + sympy.Integer(at))
        return self


class _Planner(_planning.MemoryPlanner):
    """Inductor's planner, with memplan's offsets for the buffers whose sizes are known, if the pools are not larger."""

    def allocate_groups(self) -> None:
        for group in self.buffer_groups:
            group.make_allocation()
        combined = config.memory_pool == "combined"
        outputs = [group.allocation for group in self.buffer_groups if group.is_output and not combined]
        others = [group.allocation for group in self.buffer_groups if combined or not group.is_output]
        trial = _planning.AllocationPools()
        _stock(trial, *([replace(allocation) for allocation in several] for several in (outputs, others)))
        known = [allocation for allocation in others if _is_known(allocation)]
        unknown = [allocation for allocation in others if not _is_known(allocation)]
        mine = _planning.AllocationPools()
        _stock(mine, [replace(allocation) for allocation in outputs], [replace(allocation) for allocation in unknown])
        plans = [
            _planned(device, [allocation for allocation in known if allocation.device == device])
            for device in dict.fromkeys(allocation.device for allocation in known)
        ]
        if _size(mine) + sum(root.size for _, root, _ in plans) > _size(trial):
            # Inductor's planner can use the bytes of an output before it is made.
            plans, unknown = [], others
        _stock(self.pools, outputs, unknown)
        for device, root, bound in plans:
            for allocation in root.allocations:
                allocation.mark_allocated()
            pool = _planning.AllocationPool(device, root, can_expand=False)
            self.pools.device_to_pools.setdefault(device, []).append(pool)
            pools.append(Pools(str(device), root.size, bound, len(root.allocations)))
            _log.info("pool of %d B on %s for %d buffers", root.size, device, len(root.allocations))
        self.pools.finalize()


def _stock(pools: Any, outputs: list[Any], others: list[Any]) -> None:
    """Puts allocations into Inductor's own pools, in its order: small outputs first, then large values first."""
    for allocation in sorted(outputs, key=lambda a: (a.size_hint, -len(a.live_range))):
        pools.allocate_output(allocation)
    for allocation in sorted(others, key=lambda a: (-a.size_hint, -len(a.live_range))):
        pools.allocate(allocation)


def _size(pools: Any) -> int:
    return sum(pool.root.get_size_hint() for several in pools.device_to_pools.values() for pool in several)


def _planned(device: torch.device, allocations: list[Any]) -> tuple[torch.device, _Flat, int]:
    """A pool for allocations of known sizes, with its lower bound."""
    begins = [int(allocation.live_range.begin) for allocation in allocations]
    # A buffer that no kernel uses is allocated and freed in one step.
    ends = [max(int(allocation.live_range.end), begin + 1) for allocation, begin in zip(allocations, begins)]
    sizes = [int(allocation.symbolic_size) for allocation in allocations]
    problem = Problem.from_arrays(begins, ends, sizes, alignment=_ALIGNMENT)
    answer = plan(problem)
    if wrong := verify(problem, answer):
        raise RuntimeError(f"memplan made a wrong plan; please report it: {wrong[0]}")
    return device, _Flat(allocations, list(answer.offsets), answer.pool_size), answer.lower_bound


def _is_known(allocation: Any) -> bool:
    """True if the size is a number, and the buffer may be allocated before the graph runs."""
    return allocation.earliest_available is None and getattr(allocation.symbolic_size, "is_number", True)


def _order(nodes: list[Any], outputs: Any) -> list[Any]:
    """The scheduler's nodes in memplan's order, or in theirs if memplan has no better one."""
    names = {node: f"{at}" for at, node in enumerate(nodes)}
    makers: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    for node in nodes:
        for buffer in node.get_outputs():
            info, maker = buffer.mpi_buffer, node
            if not info.size_alloc:
                # The parts of a kernel's output are allocated with it, and freed one by one.
                infos = {other.get_name(): other.mpi_buffer for other in node.mpi_node.pred_buffers}
                whole = [other for other, its in infos.items() if its.size_alloc > its.size_free and other in makers]
                maker = makers[whole[0]] if whole else node
            makers[buffer.get_name()], sizes[buffer.get_name()] = maker, info.size_free
    made: dict[Any, list[Output]] = {}
    for name, maker in makers.items():
        made.setdefault(maker, []).append(Output(name, sizes[name]))
    inputs: dict[str, int] = {}
    operators = []
    for node in nodes:
        read = []
        for buffer in node.mpi_node.pred_buffers:
            read.append(buffer.get_name())
            if buffer.get_name() not in makers:
                inputs[buffer.get_name()] = buffer.mpi_buffer.size_free
        after = [names[other] for other in node.mpi_node.pred_nodes if other in names]
        operators.append(Operator(names[node], read, made.get(node, []), after=after))
    kept = [name for name in outputs if name in makers or name in inputs]
    sequence = Sequence(operators, inputs=inputs, outputs=kept, weights={})
    return [nodes[at] for at in _reorder(sequence, inputs_in_pool=True).order]


def _reordering(original: Callable[..., Any]) -> Callable[..., Any]:
    """Inductor's choice among orders, with memplan's as one more candidate."""
    methods = list(inspect.signature(original).parameters["methods"].default)

    def reorder_for_peak_memory(
        nodes: list[Any],
        name_to_buf: Any,
        name_to_fused_node: Any,
        graph_inputs: Any,
        graph_outputs: Any,
        methods: Any = methods,
    ) -> list[Any]:
        def topological_sort_memplan(nodes: list[Any]) -> list[Any]:
            try:
                return _order(nodes, graph_outputs)
            except ValueError as error:
                _log.warning("no order of %d nodes: %s", len(nodes), error)
                return list(nodes)

        candidates = [*methods, topological_sort_memplan]
        return original(nodes, name_to_buf, name_to_fused_node, graph_inputs, graph_outputs, candidates)

    return reorder_for_peak_memory


_NEEDED: dict[str, tuple[Any, str, list[str]]] = {
    "a planner's steps": (_planning, "MemoryPlanner.allocate_groups", ["self"]),
    "pools of a planner": (_planning, "MemoryPlanner", ["wrapper", "pools", "buffer_groups"]),
    "a pool": (_planning, "AllocationPool", ["device", "root", "can_expand", "restrict_live_range", "name"]),
    "an allocation": (_planning, "Allocation", ["node", "live_range", "size_hint", "symbolic_size", "allocated"]),
    "a node of a pool": (_planning, "AllocationTreeNode.finalize", ["self", "pool", "offset"]),
    "lifetimes": (_planning, "LiveRange", ["begin", "end"]),
    "the choice of an order": (
        _memory,
        "reorder_for_peak_memory",
        ["nodes", "name_to_buf", "name_to_fused_node", "graph_inputs", "graph_outputs", "methods"],
    ),
    "a buffer of an order": (_memory, "MemoryPlanningInfoForBuffer", ["size_alloc", "size_free", "succ_nodes"]),
    "a node of an order": (_memory, "MemoryPlanningInfoForNode", ["index", "size", "pred_buffers", "pred_nodes"]),
}
"""What memplan uses of Inductor: the first parameters of functions and constructors."""


def _check() -> None:
    """Raises an error if this version's internals differ from those that memplan knows."""
    for what, (module, path, wanted) in _NEEDED.items():
        found: Any = module
        for name in path.split("."):
            found = getattr(found, name, None)
        parameters = list(inspect.signature(found).parameters) if found is not None else []
        if parameters[: len(wanted)] != wanted:
            full = f"{module.__name__}.{path}"
            difference = f"{full}({', '.join(parameters)})" if parameters else f"no {full}"
            raise RuntimeError(
                f"memplan.torch.inductor knows the internals of torch 2.13, but torch {torch.__version__} has "
                f"{difference} for {what}; nothing was changed"
            )
    for name in ("memory_planning", "memory_pool", "reorder_for_peak_memory"):
        if not hasattr(config, name):
            raise RuntimeError(f"torch {torch.__version__} has no torch._inductor.config.{name}; nothing was changed")


@dataclass
class _Installed:
    """What was there before `install`."""

    planner: Any
    reorder: Any
    planning: bool
    tag: str = field(default="")


_before: _Installed | None = None


def install(*, pool: bool = True, reorder: bool = True) -> None:
    """Lets Inductor plan its pools, and choose its orders, with memplan. Graphs that are compiled after this call are
    concerned. `pool` and `reorder` turn one of the two off. A version of torch whose internals differ is a
    `RuntimeError`, and then nothing is changed."""
    global _before
    _check()
    uninstall()
    original = _memory.reorder_for_peak_memory
    _before = _Installed(
        _planning.MemoryPlanner, original, config.memory_planning, torch.compiler.config.cache_key_tag
    )
    # Code that was cached without memplan has other pools.
    torch.compiler.config.cache_key_tag = f"{_before.tag} memplan {__version__} {pool} {reorder}"
    if pool:
        _planning.MemoryPlanner = _Planner
        config.memory_planning = True
    if reorder:
        _memory.reorder_for_peak_memory = _reordering(original)
    pools.clear()


def uninstall() -> None:
    """Restores Inductor's own planner and orders."""
    global _before
    if _before is not None:
        _planning.MemoryPlanner, _memory.reorder_for_peak_memory = _before.planner, _before.reorder
        config.memory_planning, torch.compiler.config.cache_key_tag = _before.planning, _before.tag
        _before = None


@contextlib.contextmanager
def installed(*, pool: bool = True, reorder: bool = True) -> Iterator[list[Pools]]:
    """Installs memplan in Inductor for the graphs that are compiled inside, and returns their pools. A graph is
    compiled when it is first called."""
    install(pool=pool, reorder=reorder)
    try:
        yield pools
    finally:
        uninstall()
