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
NOTE = """4 KiB random reads and writes, depth 32, of a file of 64 MiB whose pages are in the page
cache (buffered), and with O_DIRECT; goals: buffered reads 0.75 and writes 0.5 of memory,
O_DIRECT 0.95 of fio (io_uring, the same file and depth, without a network)."""

DEPTH = 32


def fio(args, path, rw):
    """Returns the IOPS of fio on the server's CPU."""
    out = subprocess.run(common.pinned(args.server_cpu, [
        "fio", "--name=bench", "--filename=" + path, "--ioengine=io_uring", "--direct=1",
        "--rw=" + rw, "--bs=4k", "--iodepth=%d" % DEPTH, "--time_based",
        "--runtime=%gms" % (args.seconds * 1000), "--size=%d" % args.disk,
        "--output-format=json", "--norandommap"]), text=True, check=True,
        stdout=subprocess.PIPE, timeout=args.seconds * 10 + 60).stdout
    return json.loads(out[out.index("{"):])["jobs"][0][rw.replace("rand", "")]["iops"]


def once(args, back_end, options, lun, rw):
    """Starts a daemon, since one process at a time may serve a file; measures; ends it."""
    args = copy.copy(args)
    args.io = back_end
    server = contestants.Iserd(args, [lun], options, fill=lun.startswith("ram"))
    x = {"rw": rw, "size": 4096, "depth": DEPTH}
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


def run(build):
    args = common.settings(build)
    with tempfile.NamedTemporaryFile(dir=os.path.abspath(build)) as file:
        os.truncate(file.name, args.disk)
        servers = {
            "memory": ("auto", [], "ram:%d" % args.disk),
            "buffered, io_uring": ("uring", ["--buffered"], file.name),
            "buffered, epoll": ("epoll", ["--buffered"], file.name),
            "O_DIRECT, io_uring": ("uring", [], file.name),
            "O_DIRECT, epoll": ("epoll", [], file.name),
        }
        for rw in ("randread", "randwrite"):
            write_all(args, file.name)
            lanes = {name: ([], lambda s=s, rw=rw: once(args, *s, rw))
                     for name, s in servers.items()}
            if shutil.which("fio"):
                lanes["fio, O_DIRECT"] = ([], lambda rw=rw: fio(args, file.name, rw))
            results = common.take_turns(args, lanes, SECONDS / 2)
            yield from common.rows_of("file_back_ends", "4K " + rw, "iops", results, rw=rw,
                                      depth=DEPTH)
