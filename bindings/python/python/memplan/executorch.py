"""Smaller arenas for ExecuTorch: memplan in place of its greedy memory planning.

    from memplan.executorch import MemoryPlanningPass

    program = to_edge(torch.export.export(model, inputs)).to_executorch(
        ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass())
    )

Make a new pass for every export: it keeps state between the methods of a program.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from itertools import zip_longest
from operator import getitem
from typing import Any

from executorch.exir import memory
from executorch.exir.memory_planning import MemoryAlgoResult, greedy
from executorch.exir.passes import MemoryPlanningPass as _MemoryPlanningPass
from executorch.exir.tensor import ALIGNMENT

from . import Pool, Problem, plan
from ._executorch_audit import MethodAudit, methods
from ._executorch_graph import Graph, Kernels
from ._executorch_line import flat, lay_in, modules_of, spec_of
from ._executorch_plan import Planned, Sharing, Target, plan_graph
from ._executorch_report import Report, bound_of_all_choices, folding, method_name
from ._executorch_state import State, is_copy
from ._shadow import Audit

_log = logging.getLogger(__name__)

__all__ = ["Audit", "Kernels", "MemoryPlanningPass", "Report", "algorithm", "audit", "memplan", "portable_kernels", "read_kernels"]


def read_kernels(text: str) -> dict[str, tuple[int, ...]]:
    """Reads a table of kernels: a line is an operator and the places of its arguments; `#` begins a comment."""
    kernels = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words or words[0] == "kernels":
            continue
        if len(words) < 2 or not all(word.isdigit() for word in words[1:]):
            raise ValueError(f"line {number} is not an operator with the places of arguments: {line!r}")
        if words[0] in kernels:
            raise ValueError(f"line {number} repeats {words[0]}")
        kernels[words[0]] = tuple(int(word) for word in words[1:])
    return kernels


@cache
def portable_kernels() -> Kernels:
    """The kernels of ExecuTorch's own CPU libraries, portable and optimized. A backend with other kernels has other
    abilities: start from an empty table there."""
    return read_kernels(resources.files(__package__).joinpath("executorch_kernels.txt").read_text())


def _best_plan(specs, graph_module, alignment, target, *, kernels, copies=False, inside=None) -> Planned:
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"alignment {alignment} is not a power of two")
    graph = Graph(specs, graph_module, alignment, inside)
    pairs = graph.in_place(kernels) if kernels else []
    choices = [Sharing(pairs)]
    if copies:
        outputs = {id(spec_of(node)) for node in flat(graph.top[-1].args)}
        found, cats = graph.copies(outputs), graph.cats(outputs)
        state = State(graph, kernels, outputs)
        choices = [Sharing(pairs, found, cats, state), Sharing(pairs, found, [], state)]
        choices += [Sharing(pairs, [], cats, state), Sharing(pairs, [], [], state), Sharing(pairs)]
    if target.pools:
        choices.append(Sharing())  # What shares memory must lie in one pool, which can make it too large.
    # A small slice can keep a large tensor alive, and then a copy less costs more than it saves.
    different = [choice for at, choice in enumerate(choices) if choice not in choices[:at]]
    best, error = None, None
    for choice in different:
        try:
            planned = plan_graph(graph, choice, target)
        except ValueError as wrong:
            error = wrong
        else:
            best = planned if best is None or planned.rank < best.rank else best
    if best is None:
        raise error
    if any(choice != different[0] for choice in different) or not best.proven_for_all:
        best.proven_for_all = not target.pools and best.size <= bound_of_all_choices(graph, different[0]) + best.padding
    best.advice = folding(graph)
    return best


class _MemberResult(MemoryAlgoResult):
    """The result of a member of a suite. A pass that used it directly would read the sizes immediately."""

    def __getitem__(self, _):
        raise TypeError(
            "memplan is an algorithm for MemoryPlanningAlgorithmSuite, which writes the results on the tensors; "
            "as a pass, use memplan.executorch.MemoryPlanningPass"
        )


def _checked(alignment: int, kernels: Kernels | None, options: dict[str, Any]) -> dict[str, Any]:
    """The options of `memplan.plan`. An error in writing is one where it is made, not in an export minutes later."""
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"alignment {alignment} is not a power of two")
    if kernels is not None and not isinstance(kernels, Mapping):
        raise TypeError(f"kernels is a table such as read_kernels returns, not {kernels!r}")
    plan(Problem([(0, 1, 1)]), **options)
    return options


def algorithm(
    *,
    kernels: Kernels | None = None,
    name: str = "memplan",
    strategy: str = "best",
    effort: int | None = None,
    time_limit: float | None = None,
    threads: int = 1,
) -> Callable[..., MemoryAlgoResult]:
    """Returns an algorithm for `MemoryPlanningAlgorithmSuite`, with its own name: a suite keeps one result per name.

    It uses lifetimes alone, unless `kernels` lists kernels that may work in place. The other arguments are the
    same as in `memplan.plan`.
    """
    options = _checked(1, kernels, {"strategy": strategy, "effort": effort, "time_limit": time_limit, "threads": threads})

    def planned(alignment, specs, graph_module, graph_signature=None, extra_padding=0) -> MemoryAlgoResult:
        target = Target(_reserved(graph_module), extra_padding, options=options)
        result = _best_plan(specs, graph_module, alignment, target, kernels=kernels or {}).result
        return _MemberResult(result.spec_dict, result.bufsizes)

    planned.__name__ = planned.__qualname__ = name
    return planned


memplan = algorithm()
"""An algorithm for `MemoryPlanningAlgorithmSuite` that uses lifetimes alone."""


def _reserved(graph_module) -> list[int]:
    """The bytes that branches and loops have taken of each arena."""
    return list(getattr(graph_module, "input_mem_buffer_sizes", None) or [])


class _Algorithm:
    """The algorithm of the pass: greedy and memplan on the same specs, and the smaller of the two."""

    __name__ = "memplan"

    def __init__(self, kernels: Kernels, copies: bool, pools: Mapping[int, Pool], options: dict):
        self.kernels, self.copies, self.pools, self.options = kernels, copies, pools, options
        self.reports: list[Report] = []
        self.begin(None)

    def begin(self, top) -> None:
        """Forgets the graphs before, for another method of the program."""
        self.top = top
        self.inside: dict[int, list] = {}
        self.greedy: dict[int, list[int]] = {}
        self.removed: list = []
        self.padding = 0
        self.method = ""

    def __call__(self, alignment, specs, graph_module, graph_signature, extra_padding) -> list[int]:
        specs = list(specs)
        self.padding = max(self.padding, extra_padding)
        theirs = self.greedys(alignment, specs, graph_module, graph_signature, extra_padding)
        if graph_module is not self.top:
            # A branch or a loop is planned with the graph around it.
            self.inside[id(graph_module)] = specs
            return [0, 0]
        if self.pools and any(int(getattr(spec, "device", 0) or 0) for spec in specs):
            raise ValueError("pools are memories of the CPU, but this graph has tensors on another device")
        # Tensors of another device are planned after the CPU's, and none of them lies in a branch.
        inside, self.inside = self.inside, {}
        if not specs and not any(inside.values()):
            return [0, 0]
        target = Target([], self.padding, self.pools, self.options)
        best = _best_plan(
            specs, graph_module, alignment, target, kernels=self.kernels, copies=self.copies, inside=inside
        )
        # Greedy's plan is wrong where a view of a condition's result is read, or one condition overwrites another's.
        if not self.pools and not inside and sum(theirs.bufsizes) < best.size:
            best = Planned(theirs, best.lower_bound, False, advice=best.advice)
        for spec, place in best.result.spec_dict.items():
            spec.mem_id, spec.mem_obj_id, spec.mem_offset = place.mem_id, place.mem_obj_id, place.mem_offset
        for spec, below, offset in best.bases.values():
            lay_in(spec, below, offset)
        self.removed += best.copies + [cat.node for cat in best.cats]
        sizes = dict(enumerate(best.result.bufsizes))
        pools = {pool.name: sizes.pop(arena) for arena, pool in self.pools.items()}
        pools |= {f"arena {arena}": size for arena, size in sizes.items() if size}
        self.reports.append(
            Report(
                best.size, sum(theirs.bufsizes), min(best.lower_bound, best.size),
                best.proven_optimal and best.lower_bound == best.size, best.in_place, len(best.copies),
                len(best.cats), best.requests, best.result is theirs, pools if self.pools else {}, self.method,
                "all_choices" if best.proven_for_all else "these_choices", best.advice,
            )
        )  # fmt: skip
        return best.result.bufsizes

    def greedys(self, alignment, specs, graph_module, *rest) -> MemoryAlgoResult:
        """Greedy's plan, which has planned the branches and loops as well."""
        before = _reserved(graph_module)
        inner = [module for node in graph_module.graph.nodes for module in modules_of(graph_module, node)]
        sizes = [self.greedy[id(module)] for module in inner if id(module) in self.greedy]
        graph_module.input_mem_buffer_sizes = [max(sizes) for sizes in zip_longest(*sizes, fillvalue=0)]
        result = greedy(alignment, specs, graph_module, *rest)
        graph_module.input_mem_buffer_sizes = before
        self.greedy[id(graph_module)] = result.bufsizes
        return result


class MemoryPlanningPass(_MemoryPlanningPass):
    """Plans the arenas of a program with memplan; not larger than greedy, whose plan is used if it is
    smaller and right, unless there are pools.

    `inplace` lets outputs of ExecuTorch's CPU kernels lie over an argument that is not read again; `kernels` is a table for
    other kernels. `remove_copies` removes operators that copy bytes to where they already lie, and concatenations whose
    inputs can be made inside the output, except for graph outputs. `pools` are the memories of the device, the fastest first:
    a dictionary from `mem_id` to `memplan.Pool`, or ExecuTorch's `TargetMemoryMap`. As little traffic as possible goes to
    pools that cost more, and greedy, which supports no capacities, is not compared.
    `report` is called with a sentence per method; by default it is the `info` of the logger `memplan.executorch`, and None
    disables it. `reports` holds the figures. Other arguments are those of ExecuTorch's pass and of `memplan.plan`.
    """

    def __init__(
        self,
        *,
        inplace: bool = True,
        kernels: Kernels | None = None,
        remove_copies: bool = True,
        pools: Mapping[int, Pool] | Any = None,
        report: Callable[[str], object] | None = _log.info,
        alloc_graph_input: bool = True,
        alloc_graph_output: bool = True,
        alloc_mutable_buffers: bool = True,
        share_mutable_buffers: bool = False,
        alignment: int = ALIGNMENT,
        strategy: str = "best",
        effort: int | None = None,
        time_limit: float | None = None,
        threads: int = 1,
    ):
        options = {"strategy": strategy, "effort": effort, "time_limit": time_limit, "threads": threads}
        _checked(alignment, kernels, options)
        table = (portable_kernels() if kernels is None else kernels) if inplace else {}
        pools = _pools(pools)
        if pools and share_mutable_buffers:
            raise ValueError("ExecuTorch shares mutable buffers only where all other tensors lie in one arena, without pools")
        self._planner = _Algorithm(table, remove_copies, pools, options)
        self._say = report
        super().__init__(
            memory_planning_algo=self._planner,
            # In the step of its operator, an output in place is alive together with the tensor that it lies over.
            allow_lifetime_and_storage_overlap=False,
            alloc_graph_input=alloc_graph_input,
            alloc_graph_output=alloc_graph_output,
            alloc_mutable_buffers=alloc_mutable_buffers,
            share_mutable_buffers=share_mutable_buffers,
            alignment=alignment,
        )

    @property
    def reports(self) -> list[Report]:
        """A report for each method."""
        return self._planner.reports

    def run(self, graph_module, graph_signature=None):
        planner = self._planner
        planner.begin(graph_module)
        planner.method = method_name()
        known = len(planner.reports)
        result = super().run(graph_module, graph_signature)
        for node in planner.removed:
            if is_copy(node):
                node.replace_all_uses_with(node.args[0])
                graph_module.graph.erase_node(node)
                continue
            (out,) = [node.kwargs[a.name] for a in node.target._schema.arguments if a.is_out]
            node.replace_all_uses_with(out)
            graph_module.graph.erase_node(node)
        if planner.removed:
            graph_module.recompile()
        if self._say is not None:
            for report in planner.reports[known:]:
                self._say(f"memplan: {report}")
        return result


def audit(program: Any, *, kernels: Kernels | None = None) -> dict[str, Audit]:
    """Audits the arenas of a program after `to_executorch`, whoever planned them, by the names of its methods: no tensor may
    be overwritten while its value is needed. `kernels` is a table of the kernels that may work in place, by default that of
    ExecuTorch's CPU libraries."""
    found = {}
    for name, exported in methods(program):
        method = MethodAudit(exported, portable_kernels() if kernels is None else kernels)
        method.run()
        unseen = ["scratch memory of kernels"] + ["the memory of delegates"] * method.delegates
        nodes = [node for node in method.module.graph.nodes if node.op == "call_function"]
        operators = sum(node.target not in (memory.alloc, memory.view, getitem) for node in nodes)
        found[name] = Audit(method.faults, len(method.followed), operators, sum(method.sizes), unseen)
    return found


def _pools(pools) -> dict[int, Pool]:
    """The memories by arena. Each of a `TargetMemoryMap` costs more than those before it."""
    if pools is None:
        return {}
    if banks := getattr(pools, "banks", None):
        return {
            bank.mem_id: Pool(bank.name, capacity=bank.size, alignment=bank.alignment or 1, cost=cost)
            for cost, bank in enumerate(banks)
        }
    for arena, pool in dict(pools).items():
        if not isinstance(arena, int) or arena < 1 or not isinstance(pool, Pool):
            raise ValueError(f"pools is a dictionary from a mem_id, at least 1, to a memplan.Pool, but has {arena!r}: {pool!r}")
    return dict(pools)
