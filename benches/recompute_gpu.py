"""Measures recomputation on a GPU: peaks and times of training steps with memplan, PyTorch's budgets and checkpoints.

    python benches/recompute_gpu.py --out DIR
    python benches/recompute_gpu.py --table DIR/results.jsonl

The first command prints a line of JSON for each measurement, and writes them into DIR; the second prints the tables of
the book. It needs torch and memplan. `--tiny` runs everything with small networks, on a CPU as well, where no peak is
measured.

Several processes compile at the same time, one for each network and kind of measurement: `eager` for memplan on aot_eager
with deterministic algorithms, `memplan` and `stock` for memplan and PyTorch's budgets with Inductor. They run on the GPU
one after another, under a lock. A peak is the most bytes that a step requests from PyTorch's allocator, less what was
there before: parameters, buffers and inputs. A time is the median of ten steps, forward and backward, without an optimizer.
The largest difference is the one from the first measurement of a process, in any gradient, as a part of its largest
number; the first is compared with itself, run once more.
"""

import argparse
import contextlib
import fcntl
import gc
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import warnings

import torch
from recompute_networks import NETWORKS, Gpt, Step, network

STOCK = (0.8, 0.6, 0.4, 0.2, 0.05)
"""PyTorch's `activation_memory_budget`; its default is 1."""
NO_LIMIT = 1 << 50
WARM, TIMED = 2, 10
KINDS = ("eager", "memplan", "stock")


def partitioners():
    """memplan's partitioner, which keeps its time, and PyTorch's own with a budget."""
    from torch._functorch import config
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch._inductor.custom_graph_pass import CustomPartitionerFn

    from memplan.torch import Recompute

    class Timed(Recompute):
        seconds = 0.0

        def __call__(self, *arguments, **options):
            begun = time.monotonic()
            modules = super().__call__(*arguments, **options)
            self.seconds += time.monotonic() - begun
            return modules

    class Stock(CustomPartitionerFn):
        def __init__(self, budget):
            self.budget, self.seconds, self.report = budget, 0.0, None

        def uuid(self):
            return None

        def __call__(self, joint, inputs, **options):
            begun = time.monotonic()
            with config.patch(activation_memory_budget=self.budget):
                modules = min_cut_rematerialization_partition(joint, inputs, **options)
            self.seconds += time.monotonic() - begun
            return modules

    return Timed, Stock


class Gpu:
    """The GPU, which one process uses at a time; without one, nothing is measured."""

    def __init__(self, device, lock):
        self.device, self.file, self.held = device, open(lock, "a"), False

    def take(self, *_):
        if not self.held:
            fcntl.flock(self.file, fcntl.LOCK_EX)
            self.held = True

    def give(self):
        if self.device == "cuda":
            torch.cuda.synchronize()
            gc.collect()
            torch.cuda.empty_cache()
        if self.held:
            fcntl.flock(self.file, fcntl.LOCK_UN)
            self.held = False

    def event(self):
        if self.device != "cuda":
            return time.monotonic()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, begin, end):
        """Milliseconds."""
        if self.device != "cuda":
            return 1000 * (end - begin)
        end.synchronize()
        return begin.elapsed_time(end)

    def bytes(self, which, kind="requested_bytes"):
        return torch.cuda.memory_stats().get(f"{kind}.all.{which}", 0) if self.device == "cuda" else 0


class Worker:
    """One process: the measurements of one kind for one network."""

    def __init__(self, arguments, name, kind):
        self.name, self.kind, self.arguments = name, kind, arguments
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.gpu = Gpu(self.device, arguments.out / "lock")
        torch.manual_seed(0)
        net, batch = network(name, arguments.tiny)
        self.model = Step(net, self.device).to(self.device)
        self.batch = [one.to(self.device) for one in batch]
        self.buffers = [buffer.clone() for buffer in self.model.buffers()]
        self.wanted = None
        self.lines = []

    def backend(self, partitioner):
        if self.kind != "eager":
            return {"options": {"custom_partitioner_fn": partitioner}}
        from torch._dynamo.backends.common import aot_autograd
        from torch._dynamo.backends.debugging import boxed_nop

        return {
            "backend": aot_autograd(
                fw_compiler=boxed_nop, bw_compiler=boxed_nop, partition_fn=partitioner, keep_inference_input_mutations=True
            )
        }

    def plan(self):
        """The measurements: a name, a partitioner, whether blocks are checkpointed."""
        memplan, stock = partitioners()
        if self.kind == "stock":
            yield from ((f"stock {budget}", stock(budget), False) for budget in (1.0, *STOCK))
            return
        full = memplan(NO_LIMIT)
        yield "memplan full", full, False
        for part in self.arguments.parts:
            yield f"memplan {part}", memplan(max(1, int(part * full.report.planned_peak))), False
        yield "checkpoints", stock(1.0), True

    def step(self, compiled):
        """Runs a step; returns its loss, and the time of the forward pass and of all of it."""
        self.model.zero_grad(set_to_none=True)
        begin = self.gpu.event()
        loss = compiled(*self.batch)
        middle = self.gpu.event()
        loss.backward()
        end = self.gpu.event()
        return loss.detach(), lambda: (self.gpu.between(begin, middle), self.gpu.between(begin, end))

    def compile(self, name, partitioner, checkpoints):
        """Compiles a step, and measures its peak and its results in its second run."""
        self.model.network.checkpoints = checkpoints
        compiled = torch.compile(self.model, **self.backend(partitioner))
        begun = time.monotonic()
        # The callback takes the GPU when the step is compiled, and before it runs.
        self.step(compiled)
        line = {"network": self.name, "kind": self.kind, "name": name, "compile_s": round(time.monotonic() - begun, 1)}
        line["partition_s"] = round(partitioner.seconds, 2)
        if (report := partitioner.report) is not None:
            line |= {
                "budget": report.budget, "planned": report.planned_peak, "given": report.given_peak, "bound": report.peak_bound,
                "extra": report.extra_cost / max(report.forward_cost, 1), "twice": len(report.runs), "saved": len(report.saved),
            }  # fmt: skip
        self.begin()
        if self.device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        before = {kind: self.gpu.bytes("current", kind) for kind in ("requested_bytes", "allocated_bytes")}
        loss, _ = self.step(compiled)
        line["peak"] = self.gpu.bytes("peak") - before["requested_bytes"]
        line["allocated"] = self.gpu.bytes("peak", "allocated_bytes") - before["allocated_bytes"]
        line["reserved"] = self.gpu.bytes("peak", "reserved_bytes")
        is_first = self.wanted is None
        line |= {"before": before["allocated_bytes"], "loss": loss.item()} | self.differences(loss)
        if is_first:
            # The GPU's own noise: the same code once more.
            self.begin()
            line |= self.differences(self.step(compiled)[0])
        line |= self.times(compiled)
        self.gpu.give()
        self.print(line)

    def begin(self):
        """Restores what a step changes, and the random numbers."""
        with torch.no_grad():
            for buffer, old in zip(self.model.buffers(), self.buffers):
                buffer.copy_(old)
        self.model.zero_grad(set_to_none=True)
        gc.collect()
        torch.manual_seed(1)

    def differences(self, loss):
        """The largest difference from the first measurement's results, as a part of the largest number of each."""
        found = [loss, *(p.grad for p in self.model.parameters() if p.grad is not None), *self.model.buffers()]
        found = [one.detach().cpu() for one in found]
        if self.wanted is None:
            self.wanted = found
            return {}
        pairs = list(zip(self.wanted, found, strict=True))
        apart = [((a - b).abs().max() / a.abs().max().clamp(min=1e-30)).item() for a, b in pairs if a.is_floating_point()]
        return {"equal": all(torch.equal(a, b) for a, b in pairs), "difference": max(apart)}

    def times(self, compiled):
        for _ in range(WARM):
            self.step(compiled)
        found = [self.step(compiled)[1]() for _ in range(TIMED)]
        forward, both = (statistics.median(times) for times in zip(*found))
        return {"forward_ms": round(forward, 3), "step_ms": round(both, 3)}

    def print(self, line):
        text = json.dumps(line) + "\n"
        with open(self.arguments.out / "results.jsonl", "a") as file:
            file.write(text)
        sys.stdout.write(text)
        sys.stdout.flush()

    def run(self):
        torch._dynamo.callback.on_compile_end(self.gpu.take)
        torch._dynamo.config.recompile_limit = 64
        warnings.simplefilter("ignore")
        if self.kind == "eager":
            torch.use_deterministic_algorithms(True, warn_only=True)
            torch.utils.deterministic.fill_uninitialized_memory = False
        for name, partitioner, checkpoints in self.plan():
            if time.time() > self.arguments.until:
                return
            try:
                self.compile(name, partitioner, checkpoints)
            except Exception as error:
                self.print({"network": self.name, "kind": self.kind, "name": name, "error": repr(error)[:500]})
                self.gpu.give()
                if name == "memplan full":
                    return


def snapshots(arguments):
    """Records the events of the allocator in a training step of a transformer, and of a step with two streams, expandable
    segments and a lack of memory."""
    if not torch.cuda.is_available():
        return
    torch.manual_seed(0)
    net, batch = Gpt(2, 32, 2, 64, 16), torch.randint(0, 64, (2, 4, 16))
    if not arguments.tiny:
        net, batch = Gpt(4, 768, 12, 8192, 512), torch.randint(0, 8192, (2, 8, 512))
    model, (x, y) = Step(net, "cuda").cuda(), batch.cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for name in ("step", "streams"):
        if name == "streams":
            torch.cuda.memory._set_allocator_settings("expandable_segments:True")
            torch.cuda.set_per_process_memory_fraction(0.1)
        model(x, y).backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
        model(x, y).backward()
        optimizer.step()
        if name == "streams":
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                big = torch.ones(1 << 24, device="cuda")
                product = big * 2
            torch.cuda.current_stream().wait_stream(side)
            product.record_stream(torch.cuda.current_stream())
            total = (product + 1).sum().item()
            del product, big
            with contextlib.suppress(torch.cuda.OutOfMemoryError):
                torch.empty(1 << 34, device="cuda")
            print(json.dumps({"snapshot": name, "total": total}))
        optimizer.zero_grad()
        torch.cuda.synchronize()
        torch.cuda.memory._dump_snapshot(str(arguments.out / f"{name}.pickle"))
        torch.cuda.memory._record_memory_history(enabled=None)
        stats = torch.cuda.memory_stats()
        kinds = {kind: stats[f"{kind}_bytes.all.peak"] for kind in ("requested", "allocated", "active", "reserved")}
        print(json.dumps({"snapshot": name, "before": before, "retries": stats["num_alloc_retries"]} | kinds), flush=True)


def table(path):
    """Prints peaks and times, one row for each measurement."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    print("| network | compiler | | planned, MB | peak, MB | forward, ms | step, ms | largest difference |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for line in sorted(lines, key=lambda line: (line["network"], line["kind"])):
        if "error" in line:
            continue
        planned = f"{line['planned'] / 1e6:.0f}" if "planned" in line else ""
        compiler = "aot_eager" if line["kind"] == "eager" else "Inductor"
        cells = [line["network"], compiler, line["name"], planned, f"{line['peak'] / 1e6:.0f}"]
        cells += [f"{line[key]:.1f}" if key in line else "" for key in ("forward_ms", "step_ms")]
        print("| " + " | ".join([*cells, f"{line['difference']:.2g}"]) + " |")


def main(arguments):
    arguments.out.mkdir(parents=True, exist_ok=True)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    print(json.dumps({"torch": torch.__version__, "device": device}), flush=True)
    until = time.time() + arguments.seconds
    environment = os.environ | {
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        # A graph that was compiled before is not partitioned again.
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        "TORCHINDUCTOR_COMPILE_THREADS": os.environ.get("TORCHINDUCTOR_COMPILE_THREADS", "2"),
    }  # fmt: skip
    command = [sys.executable, __file__, "--out", str(arguments.out), "--until", str(until)]
    command += ["--tiny"] if arguments.tiny else []
    command += ["--parts", *map(str, arguments.parts)]
    running = []
    for job in arguments.jobs:
        with open(arguments.out / f"{job}.log", "w") as log:
            running.append((job, subprocess.Popen([*command, "--worker", job], env=environment, stderr=log)))
    for job, process in running:
        if process.wait() != 0:
            tail = (arguments.out / f"{job}.log").read_text()[-1500:]
            print(json.dumps({"job": job, "status": process.returncode, "log": tail}), flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("recompute-gpu"))
    parser.add_argument("--tiny", action="store_true", help="small networks")
    jobs = [*(f"{name}.{kind}" for name in NETWORKS for kind in KINDS), "snapshots"]
    parser.add_argument("--jobs", nargs="+", default=jobs, choices=jobs, metavar="JOB", help=", ".join(jobs))
    parts = "memplan's budgets, of the planned peak without recomputation"
    parser.add_argument("--parts", nargs="+", type=float, default=[0.75, 0.5, 0.35], help=parts)
    parser.add_argument("--seconds", type=float, default=3600, help="begin no measurement after that time")
    parser.add_argument("--table", type=pathlib.Path, help="print a table of these results")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, default=float("inf"), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    given = arguments()
    if given.table:
        table(given.table)
    elif given.worker == "snapshots":
        snapshots(given)
    elif given.worker:
        Worker(given, *given.worker.split(".")).run()
    else:
        main(given)
