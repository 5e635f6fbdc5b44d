"""memplan plans the memory of a deep-learning graph before it runs: one pool, and a fixed offset for every tensor.

    import memplan

    problem = memplan.Problem([(0, 2, 4096), (1, 3, 8192), (2, 4, 8192)])
    plan = memplan.plan(problem, alignment=64)
    plan.pool_size, list(plan.offsets)

Inputs are a `Sequence` of operators or a `Problem` of chunks with known lifetimes; `read` reads one from a file.
Sizes and offsets are bytes; lifetimes are half-open ranges of steps. Wrong input raises `ValueError`.
"""

from __future__ import annotations as _annotations

import inspect as _inspect
import json as _json
from collections.abc import Callable as _Callable, Sequence as _Sequence
from dataclasses import dataclass as _dataclass
from typing import TYPE_CHECKING, Any as _Any, TypedDict as _TypedDict

from . import _native
from ._audit import audit
from ._native import (
    STRATEGIES,
    Operator,
    Output,
    Plan,
    PlanCache,
    Pool,
    Problem,
    Sequence,
    __version__,
    copied_views,
    lower,
    plan,
    read,
    verify,
)
from ._shadow import Audit, Fault

__all__ = [
    "STRATEGIES",
    "Audit",
    "Body",
    "Comparison",
    "Fault",
    "Fit",
    "Operator",
    "Output",
    "Plan",
    "PlanCache",
    "Pool",
    "Problem",
    "Recomputed",
    "Reordered",
    "Sequence",
    "Tensor",
    "__version__",
    "audit",
    "compare",
    "copied_views",
    "explain",
    "fit",
    "lower",
    "plan",
    "read",
    "recompute",
    "reorder",
    "verify",
]


if TYPE_CHECKING:
    from typing_extensions import Unpack as _Unpack


class _OptionsOfEveryStrategy(_TypedDict, total=False):
    alignment: int | None
    padding: int | None
    effort: int | None
    time_limit: float | None
    threads: int
    views: bool
    inplace: bool
    gathers: bool
    inputs_in_pool: bool
    weights_in_pool: bool
    pools: _Sequence[Pool] | None
    pins: dict[str, int | tuple[str, int]] | None


class _Options(_OptionsOfEveryStrategy, total=False):
    """The options of `plan`."""

    strategy: str


def _in_full(function: _Callable[..., _Any]) -> _Callable[..., _Any]:
    """Lists the options of `plan` in the signature of a function that passes them on."""
    own = list(_inspect.signature(function).parameters.values())
    known = {"progress"} | {parameter.name for parameter in own} | ({"strategy"} if function.__name__ == "compare" else set())
    options = [parameter for parameter in _inspect.signature(plan).parameters.values() if parameter.name not in known]
    named = [parameter for parameter in own if parameter.kind is not parameter.VAR_KEYWORD]
    function.__signature__ = _inspect.Signature([*named, *(option for option in options if option.kind is option.KEYWORD_ONLY)])
    return function


@_dataclass(frozen=True)
class Tensor:
    """A tensor with its place."""

    name: str
    size: int
    """In bytes."""
    place: str
    """ "pool", "supplied" (in the memory of an input or a weight) or "nowhere" (it has no bytes)."""
    offset: int
    """In bytes, from the start of the pool or of the supplied tensor."""
    supplied: str | None = None
    """The supplied tensor in which it lies."""
    pool: str | None = None
    """The pool in which it lies, if the plan has pools with names."""


def _tensor(name: str, size: int, place: str, offset: int, memory: str | None) -> Tensor:
    return Tensor(name, size, place, offset, **({place: memory} if memory else {}))


def _tensors(plan: Plan) -> dict[str, Tensor]:
    """The tensors of a sequence by name; empty for a problem. The dictionary is made once; do not change it."""
    return plan._tensors(_tensor)


Plan.tensors = property(_tensors)


@_dataclass(frozen=True)
class Body:
    """The plan of a sequence that an operator runs, such as a branch of a condition. Its pool lies in the operator's
    workspace."""

    operator: int
    """The operator's place in the order of the plan."""
    index: int
    """The place in the operator's list of bodies."""
    inputs: int
    """Bytes from the start of the workspace to the pool. The inputs of the body are copied there, one after another,
    each padded and rounded up to the alignment."""
    plan: Plan
    """Its offsets count from the start of its own pool."""


def _bodies(plan: Plan) -> list[Body]:
    """The plans of the sequences that operators run. The list is made once; do not change it."""
    return plan._bodies(Body)


Plan.bodies = property(_bodies)


def _arena(plan: Plan) -> dict[str, _Any] | None:
    """The runtime's memory for a TensorFlow Lite model, or for an ONNX model that was read with
    `runtime="onnxruntime"`, as in the plan's JSON; None for other inputs."""
    return None if plan._arena is None else _json.loads(plan._arena)


Plan.arena = property(_arena)


@_dataclass(frozen=True)
class Fit:
    """The answer to the question whether a capacity suffices. It is true if it does."""

    answer: str
    """ "yes", "no" (proven) or "unknown" (more effort may find a plan that fits)."""
    plan: Plan
    """The plan that fits, or one that is too large; its lower bound is above the capacity if none fits."""

    def __bool__(self) -> bool:
        return self.answer == "yes"


def fit(
    input: Sequence | Problem, capacity: int, *, progress: _Callable[[int, int, int], object] | None = None, **options: _Unpack[_Options]
) -> Fit:
    """Decides whether a plan fits into `capacity` bytes, which is often easier than finding the smallest pool."""
    return Fit(*_native.fit(input, capacity, progress=progress, **options))


def explain(input: Sequence | Problem | Plan, **options: _Unpack[_Options]) -> str:
    """Explains why a plan, or the plan of an input, has its size: the peak, and the chunks alive there."""
    if not isinstance(input, Plan):
        input = plan(input, **options)
    elif options:
        raise TypeError(f"memplan.explain has no use for the option '{next(iter(options))}': the plan is made already")
    return input.explain()


@_dataclass(frozen=True)
class Comparison:
    """The pools of all strategies. Print it for a table."""

    figures: dict[str, _Any]
    """`lower_bound`, `unshared_size` and the rest, as the command `memplan compare --json` prints them for an input."""
    text: str

    def __str__(self) -> str:
        return self.text


def compare(
    input: Sequence | Problem,
    *,
    name: str = "input",
    progress: _Callable[[int, int, int], object] | None = None,
    **options: _Unpack[_OptionsOfEveryStrategy],
) -> Comparison:
    """Plans with every strategy that takes a reasonable time. Ctrl-C raises `KeyboardInterrupt`."""
    text, figures = _native.compare(input, name=name, progress=progress, **options)
    return Comparison(_json.loads(figures)[0], text)


@_dataclass(frozen=True)
class Reordered:
    """An order of the operators and its plan. Print it for a report."""

    order: list[int]
    """The places of the operators in the order given, as they are to run."""
    sequence: Sequence
    """The operators in that order."""
    plan: Plan
    given: Plan
    """The plan of the order given."""
    peak: int
    """The peak in the order found: the most live bytes at a step."""
    given_peak: int
    lower_bound: int
    """No order has a lower peak."""
    proven_optimal: bool
    moved: int
    """The fewest operators that must be moved."""
    text: str

    def __str__(self) -> str:
        return self.text


def reorder(
    sequence: Sequence, *, progress: _Callable[[int, int, int], object] | None = None, **options: _Unpack[_Options]
) -> Reordered:
    """Looks for the order of the operators that needs the least memory. The given order is kept unless another one
    has a smaller pool."""
    return Reordered(**_native.reorder(sequence, progress=progress, **options))


@_dataclass(frozen=True)
class Recomputed:
    """Operators that run twice so that the pool fits a capacity. Print it for a report."""

    possible: bool | None
    """True if a plan that fits was found, False if it is proven that none exists in the given order, None if none was
    found. Without a plan, all that follows but `least` and `peak_bound` is None or empty."""
    sequence: Sequence | None
    """The operators in their order, with a copy, `name~1`, where one runs again."""
    plan: Plan | None
    runs: list[int]
    """The places, in the given sequence, of the operators that run twice."""
    later: list[tuple[int, int, bool]]
    """The runs that are not at their own places: the place of the operator, the place before which it runs, and whether
    it runs at its own place as well."""
    extra_cost: int | None
    """The cost of all copies."""
    cost: int | None
    """The cost of all operators and all copies."""
    cost_bound: int | None
    """No recomputation in the given order that fits has a smaller extra cost."""
    peak: int | None
    """The peak: the most live bytes at a step."""
    peak_bound: int
    """No recomputation in the given order has a lower peak."""
    proven: bool
    """Whether none in the given order that fits has a smaller extra cost."""
    least: int
    """The smallest pool, or the lowest peak, that was found."""
    text: str

    def __str__(self) -> str:
        return self.text


def recompute(
    sequence: Sequence,
    *,
    capacity: int,
    reorder: bool = False,
    progress: _Callable[[int, int, int], object] | None = None,
    **options: _Unpack[_Options],
) -> Recomputed:
    """Lets some operators run twice so that the pool has at most `capacity` bytes, at the least extra cost that the
    search finds. `effort` is that of this search. With `reorder`, the operators and their copies are put into a better
    order as well."""
    return Recomputed(**_native.recompute(sequence, capacity=capacity, reorder=reorder, progress=progress, **options))


for _function in (fit, explain, compare, reorder, recompute):
    _in_full(_function)
