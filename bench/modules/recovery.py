# SPDX-License-Identifier: BSD-2-Clause
"""What the error recovery levels cost while nothing has to be recovered."""
import common
import contestants

TITLE = "Error recovery levels without faults"
SECONDS = 40
NOTE = """The same daemon, unit and client at ErrorRecoveryLevel 0, 1 and 2, over iSCSI."""

LOADS = [{"rw": "randread", "size": 4096, "depth": 32},
         {"rw": "randwrite", "size": 4096, "depth": 32},
         {"rw": "read", "size": 131072, "depth": 8}]


def run(build):
    args = common.settings(build)
    server = contestants.Iserd(args, options=["--error-recovery-level", "2"])
    try:
        for x in LOADS:
            results = common.take_turns(args, {
                "level %d" % level: (server.pids, lambda url="%s?error_recovery_level=%d" % (
                    server.urls[0], level): contestants.iser(args, server, x, [], url))
                for level in range(3)}, SECONDS / len(LOADS))
            rows = common.rows_of("recovery", "%(rw)s %(size)d x%(depth)d" % x, "iops",
                                  results, **x)
            for r in rows:
                r["goals"] = [[r["lane"], "level 0", 0.97]] if r["lane"] != "level 0" else []
            yield from rows
    finally:
        server.stop()
