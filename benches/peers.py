"""Runs memplan and its peers on the same problems; `peers` installs them and calls this."""

import argparse
import csv
import datetime
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
from importlib import metadata

# Each peer runs in a process of its own: `python peers.py --solve NAME TIME FILE` prints its pool.
PEERS = ["SuperMalloc", "portfolio", "MiniMalloc"]


# What columns that the peers are not given may say.
NOTHING = {"alignment": {"", "1"}, "gaps": {""}, "offset": {"", "-1"}}


def read(path):
    """The buffers of a problem, as identifier, size, first step and step after the last. Exits if it asks for more."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for number, row in enumerate(rows, 1):
        for column, nothing in NOTHING.items():
            if (found := (row.get(column) or "").strip()) not in nothing:
                sys.exit(f"{path}: buffer {number}: the peers are not given its {column}, {found!r}; leave the file out")
    try:
        return [tuple(int(row[key]) for key in ("id", "size", "lower", "upper")) for row in rows]
    except (KeyError, ValueError) as error:
        sys.exit(f"{path}: the peers need whole numbers in the columns id, lower, upper and size: {error!r}; leave the file out")


def solve(name, seconds, path):
    """Plans a problem with a peer; returns its pool in bytes and whether it is proven the smallest."""
    from omnimalloc import allocators
    from omnimalloc.primitives import Allocation

    buffers = tuple(Allocation(id=id, size=size, start=start, end=end) for id, size, start, end in read(path))
    if name == "SuperMalloc":
        # Its strength depends on the threads: with fewer than six it proves none of the hard problems.
        found = allocators.SupermallocAllocator(timeout=seconds, num_threads=6).solve(buffers)
        return found.peak, found.proved_optimal
    peer = allocators.OmniAllocator() if name == "portfolio" else allocators.MinimallocAllocator(timeout=seconds)
    return max(buffer.offset + buffer.size for buffer in peer.allocate(buffers)), False


def run(command, seconds):
    """Runs a command; returns what it printed as JSON and its CPU seconds, or None if it failed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        # Where a peer cannot be interrupted, it gets some more time.
        done = subprocess.run(command, capture_output=True, text=True, timeout=20 * seconds + 60, check=False)
        answer = json.loads(done.stdout) if done.returncode == 0 else None
    except subprocess.TimeoutExpired:
        answer = None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return None if answer is None else (answer, cpu)


def cell(found, bound):
    """A cell of the table: the pool by the lower bound, or that it is proven; CPU seconds."""
    if found is None:
        return "-"
    (pool, proven), cpu = found
    return f"{'proven' if proven or pool == bound else f'{pool / bound:.4f}'}, {cpu:.2f}"


def memplan(command, seconds, problem, *options):
    """Plans a problem with memplan; returns its pool and proof, CPU seconds, and lower bound."""
    found = run([command, "plan", problem, "--json", *options], seconds)
    return found and ((found[0]["pool_size"], found[0]["proven_optimal"]), found[1], found[0]["lower_bound"])


def limited(seconds):
    """The options for a time limit of memplan."""
    return "--time-limit", f"{round(seconds * 1000)}ms"


def peer(name, seconds, problem):
    return run([sys.executable, __file__, "--solve", name, str(seconds), problem], seconds)


def reversed_in_time(path, folder):
    """Writes a problem with time reversed; returns its path."""
    buffers = read(path)
    last = max(end for _, _, _, end in buffers)
    path = pathlib.Path(folder) / f"{pathlib.Path(path).stem}, reversed.csv"
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "lower", "upper", "size"])
        rows.writerows((id, last - end, last - start, size) for id, size, start, end in buffers)
    return str(path)


def curve(command, problems, times):
    """Prints a table of the pools after each time, memplan beside SuperMalloc."""
    print("| problem | planner |" + "".join(f" {seconds:g} s |" for seconds in times))
    print("| --- | --- |" + " ---: |" * len(times))
    for problem in problems:
        ours = [memplan(command, seconds, problem, *limited(seconds)) for seconds in times]
        bound = max((found[2] for found in ours if found), default=1)
        theirs = [peer("SuperMalloc", seconds, problem) for seconds in times]
        for name, row in [("memplan", [found and found[:2] for found in ours]), ("SuperMalloc", theirs)]:
            print(f"| {pathlib.Path(problem).stem} | {name} | {' | '.join(cell(found, bound) for found in row)} |", flush=True)


def compare(command, problems, seconds):
    """Prints a table of the pools of memplan and all peers after one time."""
    columns = ["problem", "memplan, default effort", f"memplan, {seconds:g} s"]
    columns += [name if name == "portfolio" else f"{name}, {seconds:g} s" for name in PEERS]
    print(f"| {' | '.join(columns)} |")
    print("| --- |" + " ---: |" * (len(columns) - 1))
    for problem in problems:
        ours = [memplan(command, seconds, problem, *options) for options in [(), limited(seconds)]]
        bound = max((found[2] for found in ours if found), default=1)
        cells = [cell(found and found[:2], bound) for found in ours]
        cells += [cell(peer(name, seconds, problem), bound) for name in PEERS]
        print(f"| {pathlib.Path(problem).stem} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="peers")
    parser.add_argument("memplan", help=argparse.SUPPRESS)
    parser.add_argument("problems", nargs="+", metavar="PROBLEM.csv")
    parser.add_argument("--time", type=float, default=3.0, help="seconds for each search [default: 3]")
    parser.add_argument("--curve", metavar="SECONDS,...", help="only the pools of memplan and SuperMalloc after each of these times")
    parser.add_argument("--reversed", action="store_true", help="plan each problem with time reversed as well")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for problem in args.problems:
        read(problem)
    version = subprocess.run([args.memplan, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{datetime.date.today()}: {version}, omnimalloc {metadata.version('omnimalloc')}; one core.")
    print("Each cell: pool by lower bound, or that it is proven the smallest; CPU seconds with the start of the process.\n")
    with tempfile.TemporaryDirectory() as folder:
        mirrors = [reversed_in_time(problem, folder) for problem in args.problems if args.reversed]
        problems = args.problems + mirrors
        if args.curve:
            curve(args.memplan, problems, [float(seconds) for seconds in args.curve.split(",")])
        else:
            compare(args.memplan, problems, args.time)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--solve"]:
        print(json.dumps(solve(sys.argv[2], float(sys.argv[3]), sys.argv[4])))
    else:
        main()
