"""Compares `memplan recompute` with an exact solver on small training steps.

    python benches/recompute_exact.py target/release/memplan STEP.json...

needs `pip install ortools`. For each step and each of several capacities, from the least peak to the peak as given, it
prints the least extra cost of all expanded sequences, the one that memplan found, and memplan's bound.

The model is the one of `src/recompute`, written anew from its documentation: an operator runs at its own step, in a slot
right before a later step, or in both; in a slot, operators run in the given order; a reader takes the latest result; a
tensor lives from its maker to its last reader, a result of the sequence to the end; an output may lie over an input
that dies in the same run; a view runs again only with its storage. CP-SAT decides for each tensor and each slot whether
it is retained until then, as in Moccasin (Bartan et al., 2023). A slot may be any step, not only one with a reader.
Where several outputs may lie over one input, CP-SAT chooses the best; memplan takes the first that asks.

What CP-SAT finds is written as an expanded sequence, whose peak `memplan plan` has to confirm. Sequences with bodies,
streams, `after`, gathered inputs or required overwrites are rejected.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

from ortools.sat.python import cp_model

PARTS = (0, 1, 2, 4, 7, 11)
"""The capacities, in twentieths of the way from the least peak to the given one."""


class Step:
    """A sequence as lists: operators by number, and storages with the operators that use them."""

    def __init__(self, path, alignment):
        self.json = json.loads(pathlib.Path(path).read_text())
        costs = pathlib.Path(str(path).removesuffix(".json") + ".costs.json")
        for operator in self.json["operators"] if costs.exists() else ():
            of = json.loads(costs.read_text())[operator["name"]]
            operator["cost"], operator["once"] = of["cost"], of["once"]
        operators = self.json["operators"]
        self.count = len(operators)
        self.cost = [operator.get("cost", 1) for operator in operators]
        self.workspace = [-(-operator.get("workspace", 0) // alignment) * alignment for operator in operators]
        maker = {output["name"]: at for at, operator in enumerate(operators) for output in operator["outputs"]}
        # By tensor: the tensor whose memory it lies in.
        self.root = {}
        self.size = {}
        # By operator: the operator with whose results it runs again if it only makes views of them.
        self.leader = list(range(self.count))
        # By operator: the pairs of an output and an input that it may lie over.
        self.overlays = [[] for _ in operators]
        for at, operator in enumerate(operators):
            unknown = {"bodies", "after", "stream"} & {key for key, value in operator.items() if value}
            views = 0
            for output in operator["outputs"]:
                self.root[output["name"]] = output["name"]
                self.size[output["name"]] = -(-output["size"] // alignment) * alignment
                over = output.get("overwrites", [])
                over = over if isinstance(over, list) else [over]
                if unknown or "gathers" in output or any(one.get("required") or one.get("below") for one in over):
                    sys.exit(f"{path}: {operator['name']}: the exact model has no bodies, order or required updates")
                if "reads" in output:
                    self.root[output["name"]] = self.root.get(output["reads"]["input"])
                    views += 1
                self.overlays[at] += [(output["name"], one["input"]) for one in over if one["input"] in maker]
            if views and views < len(operator["outputs"]):
                sys.exit(f"{path}: {operator['name']}: the exact model has no operators that make views and more")
            roots = {self.root[output["name"]] for output in operator["outputs"]} - {None}
            if views and roots:
                self.leader[at] = maker[next(iter(roots))]
        results = {self.root.get(name) for name in self.json["outputs"]}
        self.kept = {name for name in results if name}
        self.storages = [name for name, root in self.root.items() if name == root and self.size[name] > 0]
        self.maker = maker
        # By operator: the tensors that it reads, as far as an operator made them.
        self.reads = [[name for name in operator["inputs"] if self.root.get(name)] for operator in operators]
        self.users = {name: [] for name in self.storages}
        for at, names in enumerate(self.reads):
            for root in {self.root[name] for name in names} & set(self.storages):
                self.users[root].append(at)
        readers = {self.maker[name] for names in self.reads for name in names if self.root[name] not in self.kept}
        once = [operator.get("once", False) for operator in operators]
        makes = [[one["name"] for one in operator["outputs"]] for operator in operators]
        own = lambda at: any(name in self.users for name in makes[at])  # noqa: E731
        self.makes_kept = [any(self.root[name] in self.kept for name in names) for names in makes]
        leads = [not once[at] and at in readers and self.leader[at] == at and own(at) for at in range(self.count)]
        # By operator: whether it may run again, and whether it may run later instead.
        self.again = [leads[self.leader[at]] and at in readers for at in range(self.count)]
        if any(once[at] and self.leader[at] != at for at in range(self.count)):
            sys.exit(f"{path}: the exact model has no views that run once")

    def expanded(self, runs):
        """The sequence of runs, pairs of an operator and whether it is a copy; readers take the latest result."""
        names, operators = {}, []
        for at, is_copy in runs:
            operator = json.loads(json.dumps(self.json["operators"][at]))
            renamed = lambda name: names.get(name, name)  # noqa: E731
            operator["inputs"] = [renamed(name) for name in operator["inputs"]]
            for output in operator["outputs"]:
                for key in {"reads", "overwrites"} & output.keys():
                    for one in output[key] if isinstance(output[key], list) else [output[key]]:
                        one["input"] = renamed(one["input"])
            for output in operator["outputs"] if is_copy else ():
                if self.root[output["name"]] not in self.kept:
                    names[output["name"]] = output["name"] + "~1"
                output["name"] += "~1"
            operator["name"] += "~1" * is_copy
            operators.append(operator)
        return {**self.json, "operators": operators}


class Exact:
    """A model for CP-SAT: the least cost within a capacity, or the least peak."""

    def __init__(self, step, capacity=None):
        self.step, self.model, self.is_peak = step, cp_model.CpModel(), capacity is None
        count = step.count
        # All sizes are multiples of this.
        self.unit = math.gcd(*(step.size[name] for name in step.storages), *step.workspace)
        total = sum(step.size[name] for name in step.storages) + max(step.workspace)
        self.peak = self.model.new_int_var(0, total // self.unit, "peak")
        room = self.peak if capacity is None else capacity // self.unit
        new = self.model.new_bool_var
        # By operator and slot: it runs there again, and it has by then.
        self.runs = {(at, slot): new(f"run {at} {slot}") for at in range(count) if step.again[at] for slot in range(at + 1, count)}
        self.ran = {key: new(f"ran {key}") for key in self.runs}
        self.first = [new(f"first {at}") if step.again[at] and not step.makes_kept[at] else 1 for at in range(count)]
        # By storage and slot: it is there when the slot begins, and is read in it or later.
        self.live = {
            (name, slot): new(f"live {name} {slot}")
            for name in step.storages
            if name not in step.kept
            for slot in range(step.maker[name] + 1, count)
        }
        # By storage, slot and operator of the slot: it is read there by that operator or later.
        self.needed = {}
        # By operator: it runs twice.
        self.twice = {}
        self.choose_slots()
        self.make_what_is_read()
        for slot in range(count):
            self.count_needs(slot)
        self.leave_out_the_useless()
        for slot in range(count):
            for at in range(slot + 1):
                if self.active(at, slot) is not None:
                    self.limit_bytes(at, slot, room)
        self.cost = sum(step.cost[at] * twice for at, twice in self.twice.items())
        self.model.minimize(self.peak if self.is_peak else self.cost)

    def active(self, at, slot):
        """The variable that an operator runs in a slot; None if it cannot."""
        return self.first[at] if at == slot else self.runs.get((at, slot))

    def choose_slots(self):
        step, model = self.step, self.model
        for at in range(step.count):
            if not step.again[at]:
                continue
            slots = range(at + 1, step.count)
            self.twice[at] = model.new_bool_var(f"twice {at}")
            model.add(sum(self.runs[at, slot] for slot in slots) + self.first[at] == 1 + self.twice[at])
            for slot in slots:
                model.add(self.ran[at, slot] == self.runs[at, slot] + self.ran.get((at, slot - 1), 0))
                leader = step.leader[at]
                if leader != at:
                    model.add_implication(self.runs[at, slot], self.ran[leader, slot])

    def make_what_is_read(self):
        step, model = self.step, self.model
        for (name, slot), live in self.live.items():
            maker = step.maker[name]
            if slot == maker + 1:
                model.add(live <= self.first[maker])
            else:
                model.add(live <= self.live[name, slot - 1] + self.runs.get((maker, slot - 1), 0))
        for reader in range(step.count):
            for slot in range(reader, step.count):
                active = self.active(reader, slot)
                for value in step.reads[reader] if active is not None else ():
                    name, maker = step.root[value], step.maker[value]
                    if (name, slot) in self.live:
                        model.add(active <= self.live[name, slot] + self.runs.get((step.maker[name], slot), 0))
                    if step.again[maker] and step.leader[maker] != maker:
                        copied, seen = self.ran[step.leader[maker], slot], self.ran[maker, slot]
                        model.add(active + copied <= 1 + seen)
                        model.add(active <= copied + self.first[maker])

    def leave_out_the_useless(self):
        """Excludes what some best solution does without: retaining what nobody reads or what is made again, and running
        in a slot without readers if the operands and all results are there in the next one as well."""
        step, model = self.step, self.model
        for (name, slot), live in self.live.items():
            users = [self.active(user, slot) for user in step.users[name] if user <= slot]
            users = [active for active in users if active is not None]
            model.add(live <= self.live.get((name, slot + 1), 0) + sum(users))
            if (step.maker[name], slot) in self.runs:
                model.add(live + self.runs[step.maker[name], slot] <= 1)
        for (at, slot), run in self.runs.items():
            made = {step.root[output["name"]] for output in step.json["operators"][at]["outputs"]}
            if step.workspace[at] or made & step.kept or slot + 1 == step.count:
                continue
            readers = [self.active(user, slot) for user in range(at + 1, slot + 1) if self.reads_from(user, at)]
            beside = {step.root[value] for value in step.reads[at]} - step.kept | made
            waits = [1 - self.need(name, slot + 1, at) for name in beside & step.users.keys()]
            model.add(run <= sum(active for active in readers if active is not None) + sum(waits))

    def reads_from(self, user, at):
        return any(self.step.maker[value] == at for value in self.step.reads[user])

    def count_needs(self, slot):
        step = self.step
        for name in step.storages:
            later = self.live.get((name, slot + 1), 0)
            if (name, slot) not in self.live:
                continue
            for user in reversed(step.users[name]):
                active = self.active(user, slot) if user <= slot else None
                if active is None:
                    continue
                needed = self.model.new_bool_var(f"needed {name} {slot} {user}")
                self.model.add(needed >= active)
                self.model.add(needed >= later)
                self.needed[name, slot, user] = later = needed

    def need(self, name, slot, at):
        """The variable that a storage is read in a slot from an operator on, or later."""
        for user in self.step.users[name]:
            if user >= at and (name, slot, user) in self.needed:
                return self.needed[name, slot, user]
        return self.live.get((name, slot + 1), 0)

    def limit_bytes(self, at, slot, room):
        step, model = self.step, self.model
        terms, most = [], step.workspace[at] // self.unit
        for name in step.storages:
            bytes, maker = step.size[name] // self.unit, step.maker[name]
            live = 0
            if name in step.kept and (maker < slot or at == maker == slot):
                live = 1
            if name not in step.kept or at != slot:
                if maker == at:
                    live += 1
                elif maker < at and name not in step.kept:
                    live = self.need(name, slot, at)
                elif (name, slot) in self.live:
                    live = self.live[name, slot]
            if not isinstance(live, int) or live:
                terms.append(bytes * live)
                most += bytes * (live if isinstance(live, int) else 1)
        used = step.workspace[at] // self.unit + sum(terms) + sum(self.overlaid(at, slot))
        active = self.active(at, slot)
        if isinstance(active, int):
            model.add(used <= room)
        elif self.is_peak:
            model.add(used <= room).only_enforce_if(active)
        elif most > room:
            model.add(used <= room + (most - room) * (1 - active))

    def overlaid(self, at, slot):
        """The bytes of outputs that lie over an input which dies, negative."""
        terms, by_output, by_input = [], {}, {}
        for output, value in self.step.overlays[at]:
            name = self.step.root[value]
            if output not in self.step.users or name in self.step.kept:
                continue
            over = self.model.new_bool_var(f"over {output} {value} {slot}")
            self.model.add(over + self.need(name, slot, at + 1) <= 1)
            by_output.setdefault(output, []).append(over)
            by_input.setdefault(name, []).append(over)
            terms.append(-(self.step.size[output] // self.unit) * over)
        for group in [*by_output.values(), *by_input.values()]:
            self.model.add_at_most_one(group)
        return terms

    def solve(self, seconds, workers, hint=None):
        """The status, the value, its bound, and the runs."""
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = workers
        for key, run in self.runs.items() if hint else ():
            self.model.add_hint(run, key in hint)
        for at, first in enumerate(self.first) if hint else ():
            if not isinstance(first, int):
                self.model.add_hint(first, (at, at) in hint)
        status = solver.solve(self.model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return solver.status_name(status), None, None, None
        runs = []
        for slot in range(self.step.count):
            for at in range(slot + 1):
                active = self.active(at, slot)
                if active is not None and solver.value(active):
                    runs.append((at, slot))
        unit = self.unit if self.is_peak else 1
        value, bound = round(solver.objective_value) * unit, round(solver.best_objective_bound) * unit
        return solver.status_name(status), value, bound, runs


def runs_of(step, expanded):
    """By run of an expanded sequence: the operator, and the step before which it runs, its own or a later one."""
    number = {operator["name"]: at for at, operator in enumerate(step.json["operators"])}
    runs, waiting, slot = [], [], -1
    for operator in expanded["operators"]:
        at = number[operator["name"].removesuffix("~1")]
        if operator["name"].endswith("~1") or at < slot:
            waiting.append(at)
            continue
        slot = at
        runs += [(other, slot) for other in waiting] + [(slot, slot)]
        waiting = []
    return runs


class Memplan:
    def __init__(self, command, alignment):
        self.command, self.alignment = command, alignment

    def call(self, name, sequence, *options):
        command = [self.command, name, "-", "--format", "json", "--json", "--alignment", str(self.alignment), *options]
        done = subprocess.run(command, input=json.dumps(sequence), capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(done.stderr)
        return json.loads(done.stdout)

    def peak(self, sequence):
        return self.call("plan", sequence, "--strategy", "pushdown")["lower_bound"]

    def recompute(self, step, capacity, *options):
        """The answer, and the runs of the expanded sequence if one is found."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "expanded.json")
            answer = self.call("recompute", step.json, "--capacity", str(capacity), "-o", str(path), *options)
            return answer, runs_of(step, json.loads(path.read_text())) if path.exists() else None


def confirm(memplan, step, runs, cost, limit):
    """Checks a solution: its cost, and its peak after lowering by memplan."""
    own = {at for at, slot in runs if at == slot}
    copies = [at for at, slot in runs if at != slot and at in own]
    expanded = step.expanded([(at, at != slot and at in own) for at, slot in runs])
    assert cost in (None, sum(step.cost[at] for at in copies)), "the costs of the copies add up"
    assert memplan.peak(expanded) <= limit, "the peak is within the capacity"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("memplan")
    parser.add_argument("steps", nargs="+")
    parser.add_argument("--alignment", type=int, default=64)
    parser.add_argument("--capacity", type=int, action="append", help="instead of the parts of the range")
    parser.add_argument("--seconds", type=float, default=300, help="for each solution")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--effort", help="of memplan, in nodes")
    arguments = parser.parse_args()
    memplan = Memplan(arguments.memplan, arguments.alignment)
    effort = ["--effort", arguments.effort] if arguments.effort else []
    limits = arguments.seconds, arguments.workers
    print("step, capacity, least peak or least cost, bound if not proven, memplan, its bound, seconds")
    for path in arguments.steps:
        step = Step(path, arguments.alignment)
        given = memplan.peak(step.json)
        start = time.monotonic()
        status, least, bound, runs = Exact(step).solve(*limits)
        confirm(memplan, step, runs, None, least)
        seconds = time.monotonic() - start
        answer, _ = memplan.recompute(step, least - arguments.alignment, *effort)
        print(path, given, least, bound, answer["possible"], answer["peak_bound"], f"{seconds:.0f} s", flush=True)
        for capacity in arguments.capacity or [least + (given - least) * part // 20 for part in PARTS]:
            answer, hint = memplan.recompute(step, capacity, *effort)
            start = time.monotonic()
            status, cost, bound, runs = Exact(step, capacity).solve(*limits, hint)
            seconds = time.monotonic() - start
            if runs:
                confirm(memplan, step, runs, cost, capacity)
            print(
                f"  {capacity} {capacity / given:.3f} {status} {cost} {bound} {answer.get('extra_cost')} "
                f"{answer.get('cost_bound')} {answer['peak_bound']} {seconds:.0f} s", flush=True
            )


if __name__ == "__main__":
    main()
