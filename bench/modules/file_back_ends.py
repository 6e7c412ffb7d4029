# SPDX-License-Identifier: BSD-2-Clause
"""Files against memory and against fio, with both I/O back ends."""
import copy
import json
import os
import shutil
import subprocess
import tempfile

import common
import contestants

TITLE = "Files, with io_uring and with epoll"
SECONDS = 60
NOTE = """4 KiB random reads and writes of a file of 64 MiB whose pages are in the page
cache (buffered), and with O_DIRECT; goals: buffered reads 0.75 and writes 0.5 of memory,
O_DIRECT 0.95 of fio (io_uring, the same file and depth, without a network). A disk that completes all its requests at once waits for
the next ones while the responses travel, which fio has not to wait for; at depth 128 there
are others meanwhile."""


def fio(args, path, rw, depth):
    """Returns the IOPS of fio on the server's CPU."""
    out = subprocess.run(common.pinned(args.server_cpu, [
        "fio", "--name=bench", "--filename=" + path, "--ioengine=io_uring", "--direct=1",
        "--rw=" + rw, "--bs=4k", "--iodepth=%d" % depth, "--time_based",
        "--runtime=%gms" % (args.seconds * 1000), "--size=%d" % args.disk,
        "--output-format=json", "--norandommap"]), text=True, check=True,
        stdout=subprocess.PIPE, timeout=args.seconds * 10 + 60).stdout
    return json.loads(out[out.index("{"):])["jobs"][0][rw.replace("rand", "")]["iops"]


def once(args, back_end, options, lun, rw, depth):
    """Starts a daemon, since one process at a time may serve a file; measures; ends it."""
    args = copy.copy(args)
    args.io = back_end
    server = contestants.Iserd(args, [lun], options, fill=lun.startswith("ram"))
    x = {"rw": rw, "size": 4096, "depth": depth}
    try:
        return contestants.iser(args, server, x, [], server.urls[0])
    finally:
        server.stop()


def write_all(args, path):
    """All blocks of the file exist, and its pages are in the page cache."""
    with open(path, "r+b") as f:
        for _ in range(args.disk >> 20):
            f.write(bytes([0xa5]) * (1 << 20))
        os.fsync(f.fileno())


GOALS = {"buffered": ("memory", {"randread": 0.75, "randwrite": 0.5}),
         "O_DIRECT": ("fio, O_DIRECT", {"randread": 0.95, "randwrite": 0.95})}


def goals_of(lane, rw):
    """Returns the goals of a row, in the form of run.py."""
    other, goals = GOALS.get(lane.split(",", maxsplit=1)[0], (None, None))
    return [[lane, other, goals[rw]]] if goals and lane != other else []


def run(build):
    args = common.settings(build)
    # two files: pages that buffered writes have left would be written back by O_DIRECT
    with tempfile.NamedTemporaryFile(dir=os.path.abspath(build)) as file, \
            tempfile.NamedTemporaryFile(dir=os.path.abspath(build)) as cached:
        os.truncate(file.name, args.disk)
        os.truncate(cached.name, args.disk)
        direct = {
            "O_DIRECT, io_uring": ("uring", [], file.name),
            "O_DIRECT, epoll": ("epoll", [], file.name),
        }
        servers = {
            "memory": ("auto", [], "ram:%d" % args.disk),
            "buffered, io_uring": ("uring", ["--buffered"], cached.name),
            "buffered, epoll": ("epoll", ["--buffered"], cached.name),
            **direct,
        }
        for rw, depth, these in (("randread", 32, servers), ("randwrite", 32, servers),
                                 ("randread", 128, direct), ("randwrite", 128, direct)):
            write_all(args, file.name)
            write_all(args, cached.name)
            lanes = {name: ([], lambda s=s, rw=rw, depth=depth: once(args, *s, rw, depth))
                     for name, s in these.items()}
            if shutil.which("fio"):
                lanes["fio, O_DIRECT"] = (
                    [], lambda rw=rw, depth=depth: fio(args, file.name, rw, depth))
            results = common.take_turns(args, lanes, SECONDS / 4)
            rows = common.rows_of("file_back_ends", "4K %s QD%d" % (rw, depth), "iops", results,
                                  rw=rw, depth=depth)
            for r in rows:
                r["goals"] = goals_of(r["lane"], rw)
            yield from rows
