"""Peaks of training steps with recomputation: planned, and measured.

    python figures_recompute.py [NAME...]

Prints, for each network of `steps`, the planned and the measured peak in bytes without a budget and at 0.6 of it: on
aot_eager, where a dispatch mode counts the storages, and compiled by Inductor, where the profiler counts all that the
allocator gives.
"""

import sys
import warnings

import torch
from steps import MODELS
from test_recompute import step
from torch._inductor.utils import fresh_cache
from torch.profiler import ProfilerActivity, profile

from memplan.torch import Recompute

PART = 0.6


def compiled(name, budget):
    """The planned peak of a step that Inductor compiles, and the most bytes allocated at once in its second run."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    make, example = MODELS[name]
    model, x = make(), example()
    with fresh_cache():
        run = torch.compile(model, options={"custom_partitioner_fn": budget})
        for at in range(2):
            model.zero_grad(set_to_none=True)
            with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as measured:
                loss = run(x)
                sum(loss if isinstance(loss, tuple) else (loss,)).backward()
    events = [event for event in measured.profiler.kineto_results.events() if event.name() == "[memory]"]
    alive = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        alive += event.nbytes()
        peak = max(peak, alive)
    return budget.report.planned_peak, peak


def main(names):
    print("| network | budget | aot_eager: planned | measured | Inductor: estimate | measured |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    warnings.simplefilter("ignore", RuntimeWarning)
    for name in names or MODELS:
        full, _, _ = step(name, Recompute(1 << 40))
        for budget in (1 << 40, int(full.planned_peak * PART)):
            report, _, tracked = step(name, Recompute(budget))
            estimate, peak = compiled(name, Recompute(budget))
            limit = "none" if budget == 1 << 40 else budget
            print(f"| {name} | {limit} | {report.planned_peak} | {tracked} | {estimate} | {peak} |", flush=True)


main(sys.argv[1:])
