# SPDX-License-Identifier: BSD-2-Clause
"""The time of a whole client that logs in, and the memory of a daemon without sessions."""
import subprocess
import time

import common
import contestants

TITLE = "Login, and memory of an idle daemon"
SECONDS = 10
NOTE = """The time from the start of a client to its end: it logs in, reads one block and logs out.
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
