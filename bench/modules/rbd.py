# SPDX-License-Identifier: BSD-2-Clause
"""An image of Ceph: librbd itself (floor_rbd.c) against iserd, which uses librbd, too."""
import copy
import json
import os
import subprocess
import sys

import common
import contestants
from common import Sample

TITLE = "An image of Ceph, through iserd and by librbd itself"
SECONDS = 110
NOTE = """A cluster of one monitor and one OSD on this machine, which shares its CPUs with the programs
that are measured; nothing is pinned. librbd, which is a program that calls librbd at the same depth without a
cache, and iserd with iser bench take turns on the same image. Goals: 0.9 of the operations of librbd at 4 KiB,
0.95 at 1 MiB, and at most 60 us more at the median of one operation at a time."""

K, M = 1024, 1024 * 1024
DISK = 64 * M
WAYS = {"iSCSI": "transport=tcp", "iSER": "transport=iser"}
# (pattern, size, depth, goal: the share of librbd's operations; None: added latency)
CASES = [("randread", 4 * K, 32, 0.9), ("randwrite", 4 * K, 32, 0.9), ("read", M, 8, 0.95), ("write", M, 8, 0.95),
         ("randread", 4 * K, 1, None), ("randwrite", 4 * K, 1, None)]
ADDED_US = 60  # at most
# A client that begins to write takes the lock of the image from the other one.
LEAST_SECONDS, RAMP = 1.0, 0.3
TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def reason_to_skip(args, build):
    """Returns what is missing, or None."""
    if not args.floor_rbd or not os.path.exists(os.path.join(build, "src", "backstore-rbd.so")):
        return "this build has no floor_rbd or no backstore-rbd.so: install librbd-dev and librados-dev, and build again"
    missing = ceph().missing()
    return missing and "%s is not installed: install ceph-mon, ceph-osd and ceph-common" % missing


def ceph():
    """Returns the module that starts a cluster, which is that of the interop tests."""
    sys.path.insert(0, os.path.join(TREE, "tests", "interop"))
    try:
        return __import__("ceph")
    finally:
        sys.path.pop(0)


def librbd(args, cluster, image, x):
    """Returns the Sample of floor_rbd."""
    done = subprocess.run([
        args.floor_rbd, "--size", str(x["size"]), "--depth", str(x["depth"]), "--time", str(args.seconds),
        "--ramp", str(args.ramp)] + ["--write"] * ("write" in x["rw"]) + ["--random"] * ("rand" in x["rw"]) +
        ["rbd/" + image], env=cluster.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        timeout=args.seconds * 10 + 120)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    made = json.loads(done.stdout)
    return Sample(made["iops"], p50_us=made["p50_us"], p99_us=made["p99_us"], client_cpu_us=made["cpu_us"])


def added_latency(name, results, x):
    """Returns the rows of what iserd adds to the median of librbd, round by round."""
    base = [s.metrics["p50_us"] for s in results["librbd"][0]]
    rows = [common.row("rbd", name, "goal", "us", [ADDED_US] * len(base), **x)]
    for lane in WAYS:
        if lane not in results:
            continue
        mine = [s.metrics["p50_us"] for s in results[lane][0]]
        rows.append(common.row("rbd", name, lane, "us", [b - a for a, b in zip(base, mine)], **x))
        rows[-1]["goals"] = [(lane, "goal", 1.0)]
    return rows


def measure(args, cluster, server, image, one, seconds):
    """Returns the rows of one case of CASES."""
    rw, size, depth, goal = one
    x = {"rw": rw, "size": size, "depth": depth}
    pids = [p.pid for p in cluster.daemons.values()]
    lanes = {"librbd": (pids + server.pids, lambda: librbd(args, cluster, image, x))}
    for name, keys in WAYS.items():
        lanes[name] = (pids + server.pids, lambda keys=keys: contestants.iser(
            args, server, x, [], server.urls[0] + "?" + keys))
    results = common.take_turns(args, lanes, seconds)
    label = "%s %s QD%d" % ("1M" if size == M else "4K", rw, depth)
    rows = common.rows_of("rbd", label, "iops", results, **x)
    if goal:
        for r in rows[1:]:
            r["goals"] = [(r["lane"], "librbd", goal)]
    elif "librbd" in results:
        rows += added_latency(label + ", added to the median", results, x)
    return rows


def settings(build):
    """Returns the settings of this group: all programs may use all CPUs."""
    args = copy.copy(common.settings(build))
    args.server_cpu = args.client_cpu = None
    args.seconds, args.ramp = max(args.seconds, LEAST_SECONDS), RAMP
    return args


def serve(args, build, cluster, image):
    """Returns an iserd with a filled image. librbd gives the lock of a shared image to the client that writes."""
    os.environ["OPENISER_MODULES"] = os.path.abspath(os.path.join(build, "src"))
    try:
        return contestants.Iserd(args, ["rbd:rbd/%s,conf=%s" % (image, cluster.conf)], ["--shared"])
    finally:
        del os.environ["OPENISER_MODULES"]


def run(build):
    args = settings(build)
    reason = reason_to_skip(args, build)
    if reason:
        print("rbd is not measured: " + reason, flush=True)
        return
    cluster, server = ceph().Cluster(), None
    try:
        cluster.create("bench", "%dM" % (DISK // M))
        server = serve(args, build, cluster, "bench")
        for one in CASES:
            yield from measure(args, cluster, server, "bench", one, SECONDS / len(CASES))
    finally:
        if server:
            server.stop()
        cluster.stop()
