# SPDX-License-Identifier: BSD-2-Clause
"""One depth spread over more and more connections, against plain sockets that do the same."""
import copy
import json
import subprocess

import common
import contestants

TITLE = "Many sockets: against plain sockets"
SECONDS = 60
NOTE = """4 KiB random reads, 128 at once in all, over 1 to 64 connections. "plain sockets" are a
server and a client that do nothing but receive and send (floor_many); with io_uring, one
system call sends all that a turn has for all sockets. Where a connection has few operations
at once, each costs a whole segment, its acknowledgement and a wake-up."""

DEPTH = 128
SPIN = 100  # microseconds, at both ends


def sockets(args, connections, *words):
    command = [args.floor_many, "--connections", str(connections), "--depth",
               str(DEPTH // connections), "--time", str(args.seconds), "--spin", *words]
    for word, cpu in (("--server-cpu", args.server_cpu), ("--client-cpu", args.client_cpu)):
        if cpu is not None:
            command += [word, str(cpu)]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True,
                          timeout=args.seconds * 5 + 20)
    made = json.loads(done.stdout)
    return common.Sample(made["iops"], target_cpu_us=made["server_cpu_us"],
                         client_cpu_us=made["client_cpu_us"])


def ours(args, server, connections):
    x = {"rw": "randread", "size": 4096, "depth": DEPTH // connections,
         "connections": connections}
    return contestants.iser(args, server, x, ["--spin", str(SPIN)], server.urls[0])


def run(build):
    args = common.settings(build)
    spinning = copy.copy(args)
    spinning.spin = SPIN
    server = contestants.Iserd(spinning)
    try:
        for n in (1, 4, 16, 64):
            results = common.take_turns(args, {
                "iserd + iser": (server.pids, lambda n=n: ours(args, server, n)),
                "plain sockets": ([], lambda n=n: sockets(args, n)),
                "plain sockets, io_uring": ([], lambda n=n: sockets(args, n, "--uring")),
            }, SECONDS / 4)
            yield from common.rows_of("many_sockets", "4K randread, %d connections" % n,
                                      "iops", results, connections=n)
    finally:
        server.stop()
