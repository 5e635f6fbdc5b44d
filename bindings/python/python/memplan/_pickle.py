"""How pickle makes problems, sequences and plans again: from memplan's JSON."""

from __future__ import annotations

import warnings
from typing import Any

from . import _native
from ._native import Plan, Problem, Sequence


def problem(text: str) -> Problem:
    return Problem.from_json(text)


def sequence(text: str) -> Sequence:
    # What was assumed about it was said when it was made.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return Sequence.from_json(text)


def plan(text: str, given: Sequence | Problem, options: dict[str, Any], interrupted: bool) -> Plan:
    return _native._restored(text, given, options, interrupted)
