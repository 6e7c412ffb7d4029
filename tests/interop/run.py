#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the interop tests with both I/O back ends.

usage: run.py --build DIR [--json FILE] [--io uring|epoll]
              [--once|--second|--other] [--share K/N] [--not NAME] [NAME]...

Prints one line per case: ok|FAIL|skip NAME reason; then the slowest cases with their
seconds and their CPU time; the last line has the counts.
NAME selects files or cases by a part of their name, --not leaves them out; --share 1/2 takes
each second file. Exit status 1: a case failed.
"""
import argparse
import json
import os
import signal
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = ("test_daemon", "test_config", "test_identity", "test_verbs", "test_live", "test_log", "test_metrics", "test_alerts", "test_service", "test_admission", "test_wire", "test_logins", "test_store", "test_reserve",
         "test_state", "test_crypt", "test_taskset", "test_powercut", "test_mcs", "test_alua", "test_libiscsi", "test_qemu", "test_boot", "test_cd",
         "test_iser", "test_copy", "test_tools", "test_bench", "test_iser_rdma", "test_rdma_wire", "test_hello", "test_bad_target", "test_fake_target",
         "test_lying_target", "test_connections", "test_discovery", "test_order", "test_recovery", "test_lost_connections", "test_lost_rdma_connections", "test_continuation", "test_continued_writes",
         "test_nbd", "test_nbdkit", "test_protection", "test_rdma", "test_reconnect", "test_takeover",
         "test_tshark", "test_iser_tshark", "test_install", "test_examples", "test_packages", "test_container",
         "test_man", "test_check", "test_import", "test_import_access", "test_isns", "test_tgtadm", "test_guide", "test_python", "test_lib", "test_other_unit", "test_paths", "test_nbd_store", "test_rbd", "test_gateways", "test_cluster", "test_cluster_nets")
# The cases that do not depend on the I/O back end run once.
ONCE = ("test_boot", "test_discovery", "test_tshark", "test_iser_tshark", "test_install", "test_examples", "test_packages", "test_container",
        "test_daemon.Refusals", "test_log.", "test_service.", "test_libiscsi.Suite.test_ram_4k",
        "test_libiscsi.Suite.test_iser", "test_libiscsi.Suite.test_cd", "test_libiscsi.Suite.test_encrypted", "test_iser.OtherTarget",
        "test_iser_rdma.OtherTarget", "test_cluster_nets.",
        "test_crypt.Keys", "test_recovery.Snacks.test_tshark", "test_nbd", "test_rdma.", "test_bad_target", "test_fake_target", "test_hello.", "test_lying_target", "test_connections", "test_copy", "test_tools", "test_bench", "test_reconnect", "test_continuation", "test_continued_writes", "test_man", "test_check.", "test_import", "test_isns", "test_tgtadm", "test_guide", "test_alerts", "test_python", "test_lib.", "test_other_unit.", "test_paths.", "test_live.", "test_rbd.", "test_cluster.", "test_nbd_store.", "test_gateways.")

# The cases that test no I/O run with one back end (and with sanitizers).
ONE_BACK_END = ("test_config.Files", "test_config.Access", "test_metrics.", "test_admission", "test_logins",
                "test_taskset.Dropped", "test_takeover.Ports", "test_lost_rdma_connections.", "test_libiscsi.Suite.")
# Of the cases of ONCE, these run with the other back end, where they take less time.
OTHER_ONCE = ("test_libiscsi.Suite.test_iser", "test_libiscsi.Suite.test_ram_4k")
# With sanitizers these do not run: they measure memory, or load the library into a program without sanitizers.
NOT_SANITIZED = ("test_admission.Admission.test_memory_of_a_flood_is_given_back", "test_daemon.Start.test_idle_memory",
                 "test_taskset.Dropped.test_libiser_finds_out", "test_order.Library.test_bidirectional_commands")
SLOWEST = 12  # cases in the report

def find_program(build, name, where):
    for path in (os.path.join(build, name), os.path.join(build, where, name)):
        if os.path.exists(path):
            return os.path.abspath(path)
    return os.path.abspath(os.path.join(build, name))


HANGS = 900  # seconds after which a case fails that waits for something that never comes


def cpu_time():
    """Of this process and of all that it has waited for."""
    return sum(os.times()[:4])


def hangs(*_):
    raise AssertionError("no end after %d seconds" % HANGS)


class Result(unittest.TestResult):
    def __init__(self, io):
        super().__init__()
        self.io, self.rows, self.began, self.cpu = io, [], 0, 0

    def startTest(self, test):
        super().startTest(test)
        self.began, self.cpu = time.monotonic(), cpu_time()
        signal.alarm(HANGS)

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)

    def _row(self, word, test, reason=""):
        name = "%s:%s" % (self.io, test.id())
        took = time.monotonic() - self.began
        self.rows.append({"result": word, "name": name, "reason": reason,
                          "seconds": round(took, 2), "cpu": round(cpu_time() - self.cpu, 2)})
        first = (reason.strip().splitlines() or [""])[-1][:200]
        print("%-4s %s %s" % (word, name, first), flush=True)
        if word == "FAIL":
            for line in reason.strip().splitlines()[-40:]:
                print("#   " + line, flush=True)

    def addSuccess(self, test):
        self._row("ok", test)

    def addSkip(self, test, reason):
        self._row("skip", test, reason)

    def addFailure(self, test, err):
        self._row("FAIL", test, self._exc_info_to_string(err, test))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err:
            self.addFailure(subtest, err)


def cases(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases(item)
        else:
            yield item


def is_in(part, case):
    """Returns whether a part of the cases has the case: once, second, other (second without
    the cases of ONE_BACK_END, and OTHER_ONCE) or all."""
    name = case.id()
    if name.startswith(ONCE):
        moved = name.startswith(OTHER_ONCE)
        return part in ("other" if moved else "once", "all")
    return part in ("second", "all") or (part == "other" and not name.startswith(ONE_BACK_END))


def takes_minutes(case):
    """Returns whether only make cluster runs a case: those of a class with LONG = True, but for the names in its SHORT."""
    return os.environ.get("CLUSTER") != "long" and getattr(case, "LONG", False) and case.id().split(".")[-1] not in getattr(case, "SHORT", ())


def sanitized(build):
    with open(os.path.join(build, "meson-info", "intro-buildoptions.json")) as f:
        return any(row["name"] == "b_sanitize" and row["value"] != "none" for row in json.load(f))


def select(names, part, without, share):
    picked = unittest.TestSuite()
    first, step = map(int, share.split("/"))
    for file in FILES[first - 1::step]:
        for case in cases(unittest.defaultTestLoader.loadTestsFromName(file)):
            if type(case).__module__ != file:
                continue  # the file imports the class of another file
            if takes_minutes(case) or any(name in case.id() for name in without):
                continue
            if (not names or any(n in case.id() for n in names)) and is_in(part, case):
                picked.addTest(case)
    return picked


def report(rows):
    """Prints the slowest cases."""
    rows = sorted(rows, key=lambda r: -r["seconds"])
    for row in rows[:SLOWEST]:
        if row["seconds"] >= 1:
            print("slow %6.1f s, CPU %5.1f s %s" % (row["seconds"], row["cpu"], row["name"]))
    print("slow %6.1f s, CPU %5.1f s in all, %d cases" % (sum(r["seconds"] for r in rows), sum(r["cpu"] for r in rows), len(rows)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--json")
    parser.add_argument("--io", choices=("uring", "epoll"))
    part = parser.add_mutually_exclusive_group()
    for name, text in (("once", "only the cases that run once"),
                       ("second", "without the cases that run once"),
                       ("other", "only the cases that the other back end needs")):
        part.add_argument("--" + name, dest="part", action="store_const", const=name, help=text)
    parser.add_argument("--share", default="1/1", metavar="K/N", help="only the files K, K + N, K + 2 N...")
    parser.add_argument("--not", dest="without", metavar="NAME", action="append", default=[], help="leave out these cases")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    os.environ["ISERD"] = find_program(args.build, "iserd", "src/daemon")
    os.environ["ISERCTL"] = find_program(args.build, "iserctl", "src/tools")
    os.environ["ISER_ISNS"] = find_program(args.build, "iser-isns", "src/tools/isns")
    os.environ["ISER_CHECK"] = find_program(args.build, "iser-check", "src/tools")
    os.environ["ISER_TGTADM"] = find_program(args.build, "iser-tgtadm", "src/tools")
    os.environ["ISER"] = find_program(args.build, "iser", "src/tools")
    sys.path.insert(0, HERE)
    for path in (os.environ["ISERD"], os.environ["ISER"], os.path.join(args.build, "src/lib/libiser.so.1")):
        if not os.path.exists(path):
            sys.exit("%s is not there; build it first: ninja -C %s" % (path, args.build))
    if sanitized(args.build):
        args.without += NOT_SANITIZED
    rows = []
    with tempfile.TemporaryDirectory(dir=args.build) as work:
        os.chdir(work)
        for i, io in enumerate([args.io] if args.io else ["uring", "epoll"]):
            os.environ["ISERD_IO"] = io
            result = Result(io)
            select(args.names, args.part or ("all", "second")[i], args.without, args.share).run(result)
            rows += result.rows
        os.chdir("/")
    report(rows)
    count = {w: sum(r["result"] == w for r in rows)
             for w in ("ok", "FAIL", "skip")}
    if args.json:
        with open(args.json, "w") as f:
            json.dump(rows, f, indent=1)
    print("%d passed, %d failed, %d skipped" % (
        count["ok"], count["FAIL"], count["skip"]))
    return 1 if count["FAIL"] or not count["ok"] else 0


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, hangs)
    status = main()
    sys.stdout.flush()
    os._exit(status)  # not delayed by a thread of a case that hung
