# SPDX-License-Identifier: BSD-2-Clause
"""Long paths: a relay (relay.c) delays the bytes between initiator and target."""
import common
import contestants
from common import Sample

TITLE = "Distance: round trips, loss, windows, R2Ts and bursts"
SECONDS = 110
NOTE = """The bytes go through bench/relay.c, which models a path of TCP: a delay of half a round trip
each way, a window of 4 MiB for the bytes on the way, and loss as one more round trip for the lost
segment and all later bytes, which halves the window (Reno). It does not model slow start,
retransmission timeouts or a network card. The relay, the initiator and the target share two CPUs,
so the figures below 0.5 ms contain the relay's own time; the case "path" measures it."""

K, M = 1024, 1024 * 1024
UNSOLICITED = "transport=tcp"
IMMEDIATE = "transport=tcp&initial_r2t=yes"
SOLICITED = "transport=tcp&initial_r2t=yes&immediate_data=no"
WAYS = {"immediate and unsolicited data": UNSOLICITED, "immediate data only": IMMEDIATE,
        "all data solicited": SOLICITED, "iSER": "transport=iser"}
ROUND_TRIPS = {False: [0.1, 0.5, 2, 10, 50], True: [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]}
PLAIN = {"iSCSI": UNSOLICITED, "iSER": "transport=iser"}


class Path:
    """A server that is reached through a relay."""

    def __init__(self, args, server, *options):
        self.args, self.server = args, server
        self.relay = contestants.relay_to(args, server, *options)
        self.pids = server.pids + self.relay.pids

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.relay.stop()

    def lane(self, x, keys, rtt):
        """Returns a contestant for take_turns; a repetition has at least 12 round trips."""
        args, seconds = self.args, max(self.args.seconds, 0.012 * rtt)

        def measure():
            quick = type("Quick", (), dict(vars(args), seconds=seconds))
            sample = contestants.iser(quick, self, x, [], self.relay.urls[0] + "?" + keys)
            metrics = {k: v for k, v in sample.metrics.items()
                       if k.endswith("_us") and "cpu" not in k or k == "target_r2ts"}
            return Sample(sample.figure, **metrics)
        return self.pids, measure

    @property
    def metrics(self):
        return self.server.metrics


def measure(path, case, ways, rw, size, depth, rtt, **x):
    """Returns the rows of one case."""
    args = path.args
    load = {"rw": rw, "size": size, "depth": depth}
    lanes = {name: path.lane(load, keys, rtt) for name, keys in ways.items()}
    # two rounds of about 0.6 s each, or fewer on a busy machine
    results = common.take_turns(args, lanes, 1.3 * len(lanes) * max(1, 0.025 * rtt))
    return common.rows_of("distance", case, "iops", results, rtt=rtt, **load, **x)


def by_round_trip(args, server):
    """Writes with and without unsolicited data, and reads, over round trips."""
    for rtt in ROUND_TRIPS[args.full]:
        with Path(args, server, "--rtt", str(rtt)) as path:
            yield from measure(path, "path, %g ms" % rtt, {"iSCSI": UNSOLICITED}, "randread",
                               512, 1, rtt, axis="path")
            for depth in (1, 16):
                yield from measure(path, "64K write QD%d, %g ms" % (depth, rtt), WAYS, "write",
                                   64 * K, depth, rtt, axis="data")
            for depth in ((1, 32, 128) if args.full else (32,)):
                yield from measure(path, "4K randread QD%d, %g ms" % (depth, rtt), PLAIN,
                                   "randread", 4 * K, depth, rtt, axis="read")


def by_loss(args, server):
    rtt = 10
    for loss in (0, 0.01, 0.1, 1):
        with Path(args, server, "--rtt", str(rtt), "--loss", str(loss)) as path:
            for rw in ("read", "write"):
                yield from measure(path, "256K %s QD8, 10 ms, loss %g %%" % (rw, loss), PLAIN,
                                   rw, 256 * K, 8, rtt, axis="loss", loss=loss)


def by_window(args, server):
    rtt = 10
    for window in (64 * K, 256 * K, M, 4 * M):
        with Path(args, server, "--rtt", str(rtt), "--window", str(window)) as path:
            yield from measure(path, "256K read QD16, 10 ms, window %dK" % (window // K), PLAIN,
                               "read", 256 * K, 16, rtt, axis="window", window=window)


def by_bursts(args, server):
    """Large writes: how many R2Ts of how many bytes are outstanding."""
    rtt = 10
    with Path(args, server, "--rtt", str(rtt)) as path:
        for burst in (64 * K, 256 * K, M):
            ways = {"%d R2Ts" % n: "%s&max_burst_length=%d&max_outstanding_r2t=%d" % (
                SOLICITED, burst, n) for n in (1, 4, 8)}
            yield from measure(path, "2M write QD1, 10 ms, burst %dK" % (burst // K), ways,
                               "write", 2 * M, 1, rtt, axis="burst", burst=burst)


def run(build):
    args = common.settings(build)
    server = contestants.Iserd(args)
    try:
        for part in (by_round_trip, by_loss, by_window, by_bursts):
            yield from part(args, server)
    finally:
        server.stop()
