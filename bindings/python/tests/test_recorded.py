"""Graphs of ExecuTorch and torch, recorded as problems and sequences: every plan is at its lower bound."""

import os
from pathlib import Path

import pytest

import memplan

DATA = Path(__file__).parents[4] / "shared" / "data" / "executorch"
FILES = sorted(DATA.glob("*.json"))
# Reordering these is the interesting question, and the search for a proof takes longer than a test may.
FILES = [file for file in FILES if not file.name.startswith("train_")]


def test_the_recordings_are_there():
    if not FILES:
        assert os.environ.get("MEMPLAN_SHARED") != "required", f"no files in {DATA}"
        pytest.skip(f"no files in {DATA}")
    assert len(FILES) > 50


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_recorded_graph_is_planned_at_its_bound(file):
    graph = memplan.read(file)
    plan = memplan.plan(graph, alignment=16)
    assert plan.proven_optimal and plan.verify() == []
