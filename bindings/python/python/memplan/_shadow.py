"""A shadow of a program's memory: for every byte, the tensor that was written there last.

An audit runs a program's operators on it. An operator reads a tensor rightly if each of its bytes still holds that
tensor. No lifetimes are needed, so an audit shares nothing with a planner.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fault:
    """An operator that reads a tensor whose bytes are not, or no longer, its own."""

    step: int
    """The operator's place in the program."""
    operator: str
    tensor: str
    """The tensor whose value is lost."""
    other: str | None
    """The tensor that lies in its bytes; None if nobody has written them."""
    text: str
    """A sentence that names both tensors, the operator and the bytes."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Audit:
    """What an audit of addresses has found. It is true if no tensor is overwritten while its value is needed."""

    faults: list[Fault]
    tensors: int
    """The number of tensors whose addresses were followed."""
    operators: int
    bytes: int
    """From the lowest byte to the highest one, in all memories."""
    unseen: list[str] = field(default_factory=list)
    """What cannot be judged from outside, one sentence each."""

    def __bool__(self) -> bool:
        return not self.faults

    def __str__(self) -> str:
        several = f"{self.tensors} tensors of {self.operators} operators in {self.bytes} B"
        count = len(self.faults)
        found = "no fault" if not count else "1 fault" if count == 1 else f"{count} faults"
        unseen = (f"not seen: {text}" for text in self.unseen)
        return "\n".join([f"{several}: {found}", *map(str, self.faults), *unseen])


@dataclass(frozen=True)
class Written:
    """The tensor in some bytes: a key, its name, and the operator that wrote it."""

    key: Any
    name: str
    step: int
    operator: str


Segment = tuple[int, int, "Written | None"]
"""The first byte, the byte after the last one, and the tensor there."""


class Shadow:
    """The tensors in the bytes of several memories."""

    def __init__(self) -> None:
        self._begins: dict[Any, list[int]] = {}
        self._segments: dict[Any, list[Segment]] = {}

    def copy(self) -> Shadow:
        other = Shadow()
        other._begins = {memory: list(begins) for memory, begins in self._begins.items()}
        other._segments = {memory: list(segments) for memory, segments in self._segments.items()}
        return other

    def read(self, memory: Any, begin: int, end: int) -> list[Segment]:
        """What lies in some bytes, in order, without gaps."""
        found: list[Segment] = []
        at = begin
        segments = self._segments.get(memory, [])
        for low, high, tensor in segments[max(bisect_right(self._begins.get(memory, []), begin) - 1, 0) :]:
            if high <= at:
                continue
            if low >= end:
                break
            if low > at:
                found.append((at, low, None))
            found.append((max(low, at), min(high, end), tensor))
            at = min(high, end)
        if at < end:
            found.append((at, end, None))
        return found

    def write(self, memory: Any, begin: int, end: int, tensor: Written | None) -> None:
        """Puts a tensor into some bytes."""
        if begin >= end:
            return
        segments = self._segments.get(memory, [])
        kept: list[Segment] = []
        for low, high, other in segments:
            if low < begin:
                kept.append((low, min(high, begin), other))
            if high > end:
                kept.append((max(low, end), high, other))
        kept.append((begin, end, tensor))
        kept = sorted((segment for segment in kept if segment[0] < segment[1]), key=lambda segment: segment[0])
        self._segments[memory], self._begins[memory] = kept, [segment[0] for segment in kept]

    def other_than(self, memory: Any, begin: int, end: int, keys: Collection[Any]) -> Segment | None:
        """The first bytes of a range that hold a tensor whose key is not listed."""
        for segment in self.read(memory, begin, end):
            if segment[2] is None or segment[2].key not in keys:
                return segment
        return None

    def merged(self, other: Shadow, unknown: Written) -> Shadow:
        """What is known if this or another memory is there: bytes that differ hold something unknown."""
        result = self.copy()
        for memory, segments in other._segments.items():
            for begin, end, tensor in segments:
                for low, high, mine in self.read(memory, begin, end):
                    if mine != tensor:
                        result.write(memory, low, high, unknown)
        return result


def lost(step: int, operator: str, tensor: str, size: int, begin: int, segment: Segment) -> Fault:
    """A fault: some bytes of a tensor, which begins at some byte, are not its own."""
    low, high, other = segment
    where = f"bytes {low - begin} to {high - begin - 1} of '{tensor}' ({size} B)"
    if other is None:
        text = f"step {step} ({operator}) reads {where}, which nobody has written"
        return Fault(step, operator, tensor, None, text)
    wrote = f"step {other.step} ({other.operator}) has written '{other.name}' there"
    text = f"step {step} ({operator}) reads {where}, but {wrote}"
    return Fault(step, operator, tensor, other.name, text)


def overwritten(step: int, operator: str, output: str, argument: str) -> Fault:
    """A fault: an operator writes where it reads."""
    text = f"step {step} ({operator}) writes '{output}' over '{argument}' while it reads it"
    return Fault(step, operator, argument, output, text)
