"""Smaller arenas for tinygrad: memplan in place of its memory planner.

    import memplan.tinygrad

    memplan.tinygrad.install()

The buffers between the kernels of a schedule, and of a function under `TinyJit`, then lie in arenas that memplan has
planned. Buffers that copies between devices use stay in arenas of their own, and keep their bytes for longer, as in
tinygrad. Schedules that were made before keep their arenas.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import tinygrad.engine.jit as _jit
import tinygrad.helpers as _helpers
import tinygrad.schedule as _schedule
import tinygrad.schedule.memory as _memory
from tinygrad.dtype import dtypes
from tinygrad.uop.ops import Ops, UOp

from . import Problem, plan, verify

__all__ = ["Arena", "arenas", "install", "installed", "uninstall"]

_log = logging.getLogger(__name__)

_ALIGNMENT = 256
"""The block size of tinygrad's own planner."""


@dataclass(frozen=True)
class Arena:
    """An arena of one schedule on one device. Sizes are in bytes."""

    device: str
    bytes: int
    lower_bound: int
    buffers: int
    """The number of buffers that lie in it."""


arenas: list[Arena] = []
"""The arenas of all schedules that have been planned since `install`, in order."""


def _plan(linear: UOp, held_bufs: set[UOp] | None = None) -> UOp:
    """The calls of a schedule with their buffers in arenas, except those that are held."""
    if _helpers.NO_MEMORY_PLANNER:
        return linear
    first: dict[UOp, int] = {}
    last: dict[UOp, int] = {}
    copied: set[UOp] = set()
    for step, call in enumerate(linear.src):
        program, *arguments = call.src
        buffers = [buffer for argument in arguments for buffer in _memory._collect_bufs(argument)]
        for buffer in buffers:
            if _memory._can_plan(buffer, held_bufs or set()):
                first.setdefault(buffer, step)
                last[buffer] = step
                if program.op is Ops.COPY:
                    copied.add(buffer)
    groups: dict[tuple[Any, bool], list[UOp]] = {}
    for buffer in first:
        groups.setdefault((buffer.device, buffer in copied), []).append(buffer)
    places: dict[UOp, UOp] = {}
    for (device, is_copied), buffers in groups.items():
        begins = [first[buffer] for buffer in buffers]
        # A copy may run beside the calls behind it, so its buffers are kept as long again.
        ends = [last[buffer] + 1 + is_copied * (last[buffer] - first[buffer] + 1) for buffer in buffers]
        problem = Problem.from_arrays(begins, ends, [buffer.nbytes() for buffer in buffers], alignment=_ALIGNMENT)
        answer = plan(problem)
        if wrong := verify(problem, answer):
            raise RuntimeError(f"memplan made a wrong plan; please report it: {wrong[0]}")
        arena = UOp.new_buffer(device, answer.pool_size, dtypes.int8)
        for buffer, offset in zip(buffers, answer.offsets):
            places[buffer] = arena[offset : offset + buffer.nbytes()].bitcast(buffer.dtype)
        arenas.append(Arena(str(device), answer.pool_size, answer.lower_bound, len(buffers)))
        _log.info("arena of %d B on %s for %d buffers", answer.pool_size, device, len(buffers))
    return linear.substitute(places, name="memplan", walk=True) if places else linear


_NEEDED: dict[str, tuple[Any, list[str]]] = {
    "tinygrad.schedule.memory.memory_plan_rewrite": (_memory, ["linear", "held_bufs"]),
    "tinygrad.schedule.memory._collect_bufs": (_memory, ["u"]),
    "tinygrad.schedule.memory._can_plan": (_memory, ["b", "held_bufs"]),
    "tinygrad.schedule.memory_plan_rewrite": (_schedule, ["linear", "held_bufs"]),
    "tinygrad.engine.jit.memory_plan_rewrite": (_jit, ["linear", "held_bufs"]),
    "tinygrad.uop.ops.UOp.new_buffer": (UOp, ["device", "size", "dtype"]),
    "tinygrad.uop.ops.UOp.substitute": (UOp, ["self", "dvars"]),
}
"""What memplan uses of tinygrad, with the first parameters of each."""


def _check() -> None:
    """Raises an error if this version's internals differ from those that memplan knows."""
    for path, (owner, wanted) in _NEEDED.items():
        found = getattr(owner, path.rsplit(".", 1)[1], None)
        parameters = list(inspect.signature(found).parameters) if found is not None else []
        if parameters[: len(wanted)] != wanted:
            difference = f"{path}({', '.join(parameters)})" if parameters else f"no {path}"
            raise RuntimeError(
                f"memplan.tinygrad knows the internals of tinygrad 0.14, but tinygrad {version('tinygrad')} has "
                f"{difference}; nothing was changed"
            )


_before: tuple[Any, Any] | None = None


def install() -> None:
    """Lets tinygrad plan the buffers of its schedules with memplan, from this call on. A version of tinygrad whose
    internals differ is a `RuntimeError`, and then nothing is changed."""
    global _before
    uninstall()
    _check()
    _before = _schedule.memory_plan_rewrite, _jit.memory_plan_rewrite
    _schedule.memory_plan_rewrite = _jit.memory_plan_rewrite = _plan
    arenas.clear()


def uninstall() -> None:
    """Restores tinygrad's own planner."""
    global _before
    if _before is not None:
        _schedule.memory_plan_rewrite, _jit.memory_plan_rewrite = _before
        _before = None


@contextlib.contextmanager
def installed() -> Iterator[list[Arena]]:
    """Installs memplan in tinygrad for the schedules that are made inside, and returns their arenas."""
    install()
    try:
        yield arenas
    finally:
        uninstall()
