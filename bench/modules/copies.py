# SPDX-License-Identifier: BSD-2-Clause
"""Whole commands that read a unit once: copies by several programs."""
import shutil
import subprocess
import time

import common
import contestants

TITLE = "Whole copies by several programs"
SECONDS = 25
NOTE = """Each program reads the whole unit into nothing, with its own number of requests in flight; the
figure includes its start and its login. nbdcopy reads from nbdkit, and from iserd through iser
nbd-serve; the others read from iserd."""


def command_rate(args, command):
    """Returns the bytes per second of one command that reads the unit."""
    start = time.monotonic()
    subprocess.run(common.pinned(args.client_cpu, command), check=True, timeout=300,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return args.disk / (time.monotonic() - start)


def run(build):
    args = common.settings(build)
    servers = contestants.Servers(args)
    lanes = {}

    def add(name, server_name, program, command):
        if not shutil.which(program):
            print("%s is not installed: %s is not measured" % (program, name))
            return
        try:
            server = servers.get(server_name)
        except RuntimeError:
            return
        words = [w.replace("URL", server.urls[0]) for w in command]
        lanes[name] = (server.pids, lambda: command_rate(args, words))

    try:
        add("iser copy", "iserd", args.iser, [args.iser, "copy", "-q", "URL", "-"])
        add("iser copy, iSER", "iserd", args.iser,
            [args.iser, "copy", "-q", "URL?transport=iser", "-"])
        add("qemu-img bench from iserd", "iserd", "qemu-img",
            ["qemu-img", "bench", "-f", "raw", "-c", str(args.disk // 65536), "-d", "64", "-s",
             "65536", "URL"])
        add("nbdcopy from nbdkit", "nbdkit", "nbdcopy", ["nbdcopy", "URL", "null:"])
        add("nbdcopy from iserd, nbd-serve", "nbd-serve", "nbdcopy", ["nbdcopy", "URL", "null:"])
        results = common.take_turns(args, lanes, SECONDS)
        yield from common.rows_of("copies", "whole unit", "bytes", results)
    finally:
        servers.stop()
