# SPDX-License-Identifier: BSD-2-Clause
"""The time of a whole client that logs in, and the memory of a daemon without sessions."""
import os
import subprocess
import sys
import time

import common
import contestants

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "tests", "interop"))
from harness import Secrets  # noqa: E402

TITLE = "Login, and memory of an idle daemon"
SECONDS = 10
NOTE = """The time from the start of a client to its end: it logs in, reads one block and logs out. With
CHAP the client and, with mutual CHAP, iserd prove themselves by SHA-256, the first choice of libiser.
The memory is the resident set of iserd before the first login."""

WAYS = {"iSCSI": "transport=tcp", "iSER": "transport=iser",
        "iSER, login on TCP": "transport=iser&start=stream"}


def login(args, url):
    """Returns the milliseconds of the fastest of ten clients."""
    command = common.pinned(args.client_cpu, [
        args.iser, "bench", "--rw", "read", "--bs", "512", "--depth", "1", "--amount", "512",
        "--ramp", "0", url])
    best = None
    for _ in range(10):
        start = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        took = (time.monotonic() - start) * 1e3
        best = took if best is None else min(best, took)
    return best


def run(build):
    args = common.settings(build)
    server = contestants.Iserd(args, fill=False)
    try:
        time.sleep(0.2)
        mib = common.resident_mib(server.process.pid)
        yield common.row("login", "idle iserd", "resident memory", "mib", [mib])
        results = common.take_turns(args, {
            name: (server.pids, lambda url=server.urls[0] + "?" + query: login(args, url))
            for name, query in WAYS.items()}, SECONDS)
        yield from common.rows_of("login", "login, READ, logout", "ms", results)
    finally:
        server.stop()
    yield from run_chap(args)


def run_chap(args):
    with Secrets() as secrets:
        server = contestants.Iserd(args, options=secrets.args, fill=False)
        try:
            urls = {"CHAP": secrets.url(server.urls[0]),
                    "mutual CHAP": secrets.url(server.urls[0], target="staple in the attic")}
            results = common.take_turns(args, {
                name: (server.pids, lambda url=url: login(args, url))
                for name, url in urls.items()}, SECONDS)
            yield from common.rows_of("login", "login with CHAP, READ, logout", "ms", results)
        finally:
            server.stop()
