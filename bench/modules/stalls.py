# SPDX-License-Identifier: BSD-2-Clause
"""Looks for stalls of 1 MiB reads: many short runs, and the longest latency of each."""
import json

import common
import contestants

TITLE = "Stalls of 1 MiB reads"
SECONDS = 110
FULL_ONLY = True
NOTE = """100 runs of 0.4 s for each case. Each figure is the longest latency of a run, in
multiples of depth / rate, which is the latency that the depth itself causes. A connection
that waits for a timer shows as a run far above the others."""

RUNS = 100
WAYS = {"iSCSI, digests": "transport=tcp&header_digest=crc32c&data_digest=crc32c",
        "iSER": "transport=iser"}


def one_run(args, url, depth):
    report = json.loads(common.run_client(args, [
        args.iser, "bench", "--json", "--rw", "read", "--bs", "1M", "--depth", str(depth),
        "--time", "0.4", "--ramp", "0", url]))["read"]
    usual = depth / report["iops"] * 1e6
    return common.Sample(report["latency_us"]["max"] / usual, max_us=report["latency_us"]["max"],
                         p99_us=report["latency_us"]["p99"], usual_us=usual)


def run(build):
    args = common.settings(build)
    server = contestants.Iserd(args)
    try:
        for depth, name in ((32, "iSER"), (128, "iSER"), (32, "iSCSI, digests")):
            url = server.urls[0] + "?" + WAYS[name]
            samples = [one_run(args, url, depth)
                       for _ in range(RUNS if name == "iSER" else RUNS // 4)]
            worst = max(samples, key=lambda s: s.metrics["max_us"])
            print("  %s, depth %d: %d runs, the longest latency %.0f ms, usual %.0f ms" % (
                name, depth, len(samples), worst.metrics["max_us"] / 1e3,
                worst.metrics["usual_us"] / 1e3), flush=True)
            yield common.row("stalls", "1M read QD%d" % depth, name, "ratio", samples,
                             size=1 << 20, depth=depth, rw="read")
    finally:
        server.stop()
