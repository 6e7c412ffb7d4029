#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The evaluation of openiser: measures the groups of cases.py and of the modules in
modules/, and writes results.json, report.html and tables.md.

The contestants of a case take turns within each round, so that other load affects all of
them; a ratio is the median of the ratios of single rounds. A repetition during which other
processes used more than 12 % of the CPUs is repeated, at most twice; if the load remains,
the repetition counts as disturbed. As root, the benchmark runs in its own network
namespace, with the same congestion control for all contestants. Two programs of the lowest
class keep the CPUs awake. An interrupted run keeps the results so far. bench/README.md describes the parts.
"""
import glob
import importlib.util
import os
import signal
import sys
import time

import common
import cases
import engine
import report

HERE = os.path.dirname(os.path.abspath(__file__))


def load_modules():
    """Returns the modules of the folder modules/, in the order of their names."""
    found = []
    for path in sorted(glob.glob(os.path.join(HERE, "modules", "*.py"))):
        name = os.path.splitext(os.path.basename(path))[0]
        spec = importlib.util.spec_from_file_location("bench_" + name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append((name, module))
    return found


def parts(args):
    """Returns (name, title, seconds, note, function that yields rows) of each group. The
    seconds of a module are negative: they do not change."""
    found = []
    for g in cases.GROUPS:
        if engine.cases_of(args, g):
            found.append((g["name"], g["title"], g["seconds"], "",
                          lambda seconds, g=g: engine.run(args, g, seconds)))
    for name, m in load_modules():
        wanted = engine.chosen(args, name) if args.case else \
            args.full or not getattr(m, "FULL_ONLY", False)
        if wanted:
            found.append((name, m.TITLE, -m.SECONDS, getattr(m, "NOTE", ""),
                          lambda _seconds, m=m: m.run(args.build)))
    return found


class Results:
    """The results of a run, written to its files after each case."""

    def __init__(self, args):
        self.folder = args.out
        os.makedirs(self.folder, exist_ok=True)
        self.all = {"format": 1, "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
                    "machine": common.machine(args), "full": args.full,
                    "seconds_per_repetition": args.seconds, "command": " ".join(["bench/run.py"] + [a for a in sys.argv[1:] if a != "--inside"]),
                    "complete": False, "groups": [], "rows": [], "failures": []}

    def add(self, row):
        self.all["rows"].append(row)

    def save(self):
        common.write_json(os.path.join(self.folder, "results.json"), self.all)

    def finish(self):
        self.save()
        report.write(self.all, self.folder)
        print("%s: results.json, report.html, tables.md" % self.folder)


def measure_part(results, name, title, seconds, note, run, show):
    """Measures one group. A failure ends the group and is recorded."""
    print("\n== %s: %s" % (name, title), flush=True)
    began = time.monotonic()
    last = None
    results.all["groups"].append({"name": name, "title": title, "note": note})
    try:
        for row in run(seconds):
            if last is not None and row["case"] != last:
                results.save()
            last = row["case"]
            results.add(row)
            if show:
                engine.show([row])
    except Exception as e:  # one group must not end the evaluation
        print("%s: %s" % (name, e), file=sys.stderr, flush=True)
        results.all["failures"].append({"group": name, "reason": str(e)[-1000:]})
    results.all["groups"][-1]["seconds"] = round(time.monotonic() - began, 1)
    results.save()


def missed_goals(rows):
    """Prints the goals of the cases; returns how many were missed."""
    missed = 0
    for r, reference, ratio, goal, met in common.goals_of(rows):
        missed += not met
        print("%-24s %-22s / %-22s = %5.2f (goal %.2f)%s" % (
            r["case"], r["lane"], reference, ratio, goal, "" if met else "  MISSED"))
    return missed


def scale_of(args, todo):
    """Returns by what the shares of the groups of cases.py are multiplied, so that they and
    the modules take args.minutes. None: no limit."""
    if not args.minutes:
        return None
    fixed = sum(-p[2] for p in todo if p[2] <= 0)
    shares = sum(p[2] for p in todo if p[2] > 0)
    scale = max(0.1, (args.minutes * 60 - fixed) / shares) if shares else 1.0
    # a few groups do not need the time of all
    return min(scale, 1.0) if args.case else scale


def run_all(args):
    todo = parts(args)
    if args.list:
        for name, title, seconds, _, _ in todo:
            print("%-14s %4d s  %s" % (name, abs(seconds), title))
        return 0
    awake = common.Awake(args)
    results = Results(args)
    scale = scale_of(args, todo)
    try:
        for name, title, seconds, note, run in todo:
            measure_part(results, name, title, max(0, seconds) * scale if scale else None, note, run, seconds <= 0)
        results.all["complete"] = True
    except KeyboardInterrupt:
        print("\ninterrupted: the results so far are kept", flush=True)
    finally:
        awake.stop()
    print()
    missed = missed_goals(results.all["rows"])
    results.finish()
    return 1 if missed or results.all["failures"] or not results.all["complete"] else 0


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    args = common.parser(__doc__.split("\n", 1)[0]).parse_args()
    if not args.inside and not args.list:
        common.own_namespace(__file__)
    elif args.inside:
        common.set_up_namespace()
    common.use(common.complete(args))
    signal.signal(signal.SIGTERM, interrupt)
    return run_all(args)


if __name__ == "__main__":
    sys.exit(main())
