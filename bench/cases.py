# SPDX-License-Identifier: BSD-2-Clause
"""The cases of the benchmark as data: contestants (LANES), and the groups of cases with
what varies in each. engine.py measures them; report.py draws them by the same tables.

A group has a share of the run in seconds. `full` widens its axes.
"""

K, M = 1024, 1024 * 1024

# ---- contestants: name: (client, server, keys of the URL, more words, number of the LUN) ----


def lane(client, server=None, keys="", words=(), lun=0):
    return {"client": client, "server": server, "keys": keys, "words": list(words),
            "lun": lun}


DIGESTS = "header_digest=crc32c&data_digest=crc32c"
LANES = {
    # transports
    "iSCSI": lane("iser", "iserd", "transport=tcp"),
    "iSCSI, header digest": lane("iser", "iserd", "transport=tcp&header_digest=crc32c"),
    "iSCSI, both digests": lane("iser", "iserd", "transport=tcp&" + DIGESTS),
    "iSER": lane("iser", "iserd", "transport=iser"),
    "iSER, no CRC": lane("iser", "iserd", "transport=iser&mpa_crc=no"),
    "iSER, login on TCP": lane("iser", "iserd", "transport=iser&start=stream"),
    "iSER, login on TCP, no CRC": lane("iser", "iserd",
                                       "transport=iser&start=stream&mpa_crc=no"),
    # peers
    "floor": lane("floor"),
    "iserd + iser": lane("iser", "iserd"),
    "iserd + iscsi-perf": lane("iscsi-perf", "iserd"),
    "tgtd + iser": lane("iser", "tgtd"),
    "tgtd + iscsi-perf": lane("iscsi-perf", "tgtd"),
    "nbdkit + fio": lane("fio", "nbdkit"),
    "iserd + nbd-serve + fio": lane("fio", "nbd-serve"),
    "iperf3": lane("iperf3", "iperf3"),
    # files and encryption
    "memory": lane("iser", "files", lun=0),
    "memory, encrypted": lane("iser", "files", lun=1),
    "file, O_DIRECT": lane("iser", "files", lun=2),
    "file, O_DIRECT, encrypted": lane("iser", "files", lun=3),
    "file, buffered": lane("iser", "files", lun=4),
}
for n, name in enumerate(("16 MiB", "64 MiB", "256 MiB", "1 GiB")):
    LANES["unit of " + name] = lane("iser", "sizes", lun=n)

TRANSPORTS = ["iSCSI", "iSCSI, header digest", "iSCSI, both digests", "iSER",
              "iSER, no CRC", "iSER, login on TCP", "iSER, login on TCP, no CRC"]
THREE = ["iSCSI", "iSCSI, both digests", "iSER"]


def name_of_size(n):
    for unit, letter in ((M, "M"), (K, "K")):
        if n >= unit and n % unit == 0:
            return "%d%s" % (n // unit, letter)
    return str(n)


def case(lanes, rw="randread", size=4 * K, depth=32, unit="iops", name=None, words=(),
         goals=(), **x):
    """A case: contestants, what varies, and goals as (contestant, reference, ratio)."""
    x = dict(x, rw=rw, size=size, depth=depth)
    label = name or "%s %s QD%d" % (name_of_size(size), rw, depth)
    return {"name": label, "lanes": list(lanes), "unit": unit, "x": x,
            "words": list(words), "goals": list(goals)}


def pattern(write, size):
    """Small operations are random, large ones are sequential."""
    rw = "write" if write else "read"
    return rw if size >= 64 * K else "rand" + rw


# ---- (1) transport x size x depth ----

# (size, depth, whether writes): the required ratios of iSER to iSCSI with both digests and
# to plain iSCSI
ISER_GOALS = {(4 * K, 32, False): (0.85, 0.75), (4 * K, 128, False): (0.85, 0.75),
              (M, 8, False): (0.95, 0.8), (4 * K, 32, True): (0.80, 0.70),
              (M, 8, True): (0.90, 0.75)}


def iser_goals(size, depth, write):
    goals = ISER_GOALS.get((size, depth, write), ())
    return [("iSER", reference, goal) for reference, goal in
            zip(("iSCSI, both digests", "iSCSI"), goals)]


def transport(full):
    sizes = [512 << n for n in range(14)] if full else \
        [512, 4 * K, 16 * K, 64 * K, 256 * K, M, 4 * M]
    depths = [1 << n for n in range(9)] if full else [1, 8, 32, 128, 256]
    cases = []
    for write in (False, True):
        for size in sizes:
            for depth in depths:
                if not full and not (depth == 8 or size == 4 * K or
                                     (size == M and depth <= 32)):
                    continue
                if size * depth > 512 * M:
                    continue
                cases.append(case(TRANSPORTS, pattern(write, size), size, depth,
                                  goals=iser_goals(size, depth, write)))
    return cases


# ---- (2) immediate and unsolicited data, bursts, segments, R2Ts ----

def bursts(full):
    cases = []
    kinds = [("immediate and unsolicited", "immediate_data=yes&initial_r2t=no"),
             ("immediate only", "immediate_data=yes&initial_r2t=yes"),
             ("unsolicited only", "immediate_data=no&initial_r2t=no"),
             ("all solicited", "immediate_data=no&initial_r2t=yes")]
    for size in ([512, 4 * K, 16 * K, 64 * K, 256 * K, M, 4 * M] if full
                 else [4 * K, 64 * K, 256 * K, M]):
        for depth in ((1, 8, 32) if full else (1, 8)):
            cases.append(case(
                [(name, lane("iser", "iserd", keys)) for name, keys in kinds],
                pattern(True, size), size, depth, axis="data"))
    axes = [
        ("first burst", "first_burst_length", pattern(True, M), 256 * K,
         [4 * K, 16 * K, 64 * K, 256 * K], "initial_r2t=no&immediate_data=yes&"),
        ("burst", "max_burst_length", pattern(True, M), M,
         [64 * K, 256 * K, M], "initial_r2t=yes&immediate_data=no&"),
        ("segment", "max_recv_data_segment_length", pattern(False, M), M,
         [4 * K, 16 * K, 64 * K, 256 * K], ""),
        ("R2Ts", "max_outstanding_r2t", pattern(True, M), M,
         [1, 2, 4, 8], "initial_r2t=yes&max_burst_length=65536&first_burst_length=65536&"),
    ]
    for label, key, rw, size, values, more in axes:
        for depth in ((1, 8) if full else (8,)):
            cases.append(case(
                [("%s=%s" % (key, name_of_size(v)), lane("iser", "iserd", "%s%s=%d" % (
                    more, key, v))) for v in values],
                rw, size, depth, name="%s: %s %s QD%d" % (label, name_of_size(size), rw, depth),
                axis=label))
    return cases


# ---- (3) connections ----

def connections(full):
    cases = []
    counts = [1, 2, 4, 8, 16, 32, 64] if full else [1, 4, 16, 64]
    for rw in ("randread", "randwrite"):
        for n in counts:
            x = {"connections": n, "axis": "connections"}
            lanes = [(name, LANES[name]) for name in THREE]
            if n <= 16:
                lanes.append(("iSCSI, one session (MC/S)", lane(
                    "iser", "iserd", "transport=tcp&connections=%d" % n,
                    ["--connections", "1", "--depth", "128"])))
            cases.append(case(lanes, rw, 4 * K, 128 // n,
                              name="4K %s, depth 128 over %d" % (rw, n), **x))
    return cases


# ---- (4) latency, and latency against offered load ----

def latency(full):
    lanes = TRANSPORTS if full else THREE
    cases = [case([(n, LANES[n]) for n in lanes], rw, size, 1,
                  name="%s %s QD1" % (name_of_size(size), rw), axis="tail", seconds=1)
             for rw, size in (("randread", 4 * K), ("randwrite", 4 * K))]
    cases += [case([(n, dict(LANES[n], words=["--spin", "100"])) for n in lanes], rw, 4 * K, 1,
                   name="4K %s QD1, client spins" % rw, axis="tail", seconds=1)
              for rw in ("randread", "randwrite")]
    rates = [10, 25, 50, 100, 200, 300, 400, 500, 600, 800] if full else \
        [10, 50, 100, 200, 300, 400, 600]
    for rw in (("randread", "randwrite") if full else ("randread",)):
        for rate in rates:
            cases.append(case(
                [(n, dict(LANES[n], words=["--rate", str(rate * 1000), "--arrivals", "random"]))
                 for n in THREE], rw, 4 * K, 256,
                name="4K %s, %d k/s offered" % (rw, rate), axis="load", rate=rate * 1000))
    return cases


# ---- (5) mixes, sizes of units, files, encryption ----

def mixed(full):
    lanes = [(n, LANES[n]) for n in THREE]
    cases = [case(lanes, "randrw", 4 * K, depth, name="4K 70/30 QD%d" % depth, axis="mix",
                  words=["--write-percent", "30"]) for depth in ((1, 8, 32, 128) if full
                                                                 else (8, 32))]
    cases += [case(lanes, rw, 4 * K, 32, name="4k:70,64k:30 %s QD32" % rw, axis="mix",
                   words=["--bs", "4k:70,64k:30"]) for rw in ("randread", "randwrite")]
    sizes = ["unit of " + n for n in ("16 MiB", "64 MiB", "256 MiB", "1 GiB")]
    cases += [case(sizes, rw, size, depth, axis="unit", name="size of the unit: %s %s QD%d" % (
        name_of_size(size), rw, depth)) for rw, size, depth in (
        ("randread", 4 * K, 32), ("randwrite", 4 * K, 32), ("read", M, 8), ("write", M, 8))]
    media = ["memory", "memory, encrypted", "file, O_DIRECT", "file, O_DIRECT, encrypted",
             "file, buffered"]
    cases += [case(media, rw, size, depth, axis="medium", name="medium: %s %s QD%d" % (
        name_of_size(size), rw, depth)) for rw, size, depth in (
        ("randread", 4 * K, 32), ("randwrite", 4 * K, 32), ("read", M, 8), ("write", M, 8))]
    return cases


# ---- (6) peers ----

def peers(full):
    clients = ["floor", "iserd + iser", "iserd + iscsi-perf", "tgtd + iser",
               "tgtd + iscsi-perf", "nbdkit + fio", "iserd + nbd-serve + fio"]
    ours = [("iserd + iser", "floor", 0.35)]
    same = [("iserd + iscsi-perf", "tgtd + iscsi-perf", 2.5)]
    cases = [
        case(clients, "randread", 4 * K, 1),
        case(clients, "randread", 4 * K, 32, goals=ours + same),
        case(clients, "randread", 4 * K, 128, goals=ours + same),
        case(clients, "randwrite", 4 * K, 32),
        case(clients, "randwrite", 4 * K, 128),
        case(clients, "read", 128 * K, 8),
        case(clients + ["iperf3"], "read", M, 8,
             goals=[("iserd + iscsi-perf", "tgtd + iscsi-perf", 3.0)]),
        case(clients + ["iperf3"], "write", M, 8),
    ]
    if full:
        cases += [case(clients, "randwrite", 4 * K, 1), case(clients, "randread", 4 * K, 8),
                  case(clients, "write", 128 * K, 8)]
    for c in cases:
        c["lanes"] = [n for n in c["lanes"]
                      if not ("iscsi-perf" in n and "write" in c["x"]["rw"])]
    return cases


# ---- RDMA over TCP sockets, compared with plain sockets ----

def rdma(_full):
    def raw(*words):
        return lane("raw_stream", words=words)

    def over(*words):
        return lane("rbench", "rbench", words=words)

    stream = ("raw TCP stream", raw("--mode", "stream", "--size", "1048576"))

    def large(test):
        return [("RDMA, CRC", over("--test", test, "--size", "1M", "--depth", "8")),
                ("RDMA, no CRC", over("--test", test, "--size", "1M", "--depth", "8",
                                      "--no-crc"))]

    def small(*more):
        return over("--test", "write_bw", "--size", "4k", "--depth", "64", *more)

    def one(name, unit, lanes, size, depth, goals=()):
        return case(lanes, "write", size, depth, unit, name, goals=goals, axis="rdma")

    return [
        # 64 KiB: the longest possible FPDU, whose header a program reads first
        one("RDMA Write 1M", "bytes", [
            stream, ("raw TCP, 64K reads", raw("--mode", "stream", "--size", "262144",
                                              "--read", "61716"))] + large("write_bw"),
            M, 8, [("RDMA, CRC", "raw TCP stream", 0.75),
                   ("RDMA, no CRC", "raw TCP stream", 0.9)]),
        one("RDMA Read 1M", "bytes", [stream] + large("read_bw"), M, 8),
        one("RDMA Write 4K", "messages", [
            ("raw TCP, 64 a send", raw("--mode", "batch", "--size", "4096", "--depth", "64")),
            ("RDMA, CRC", small()), ("RDMA, no CRC", small("--no-crc"))],
            4 * K, 64, [("RDMA, CRC", "raw TCP, 64 a send", 0.6)]),
        one("Send of 64 bytes, round trip", "us", [
            ("raw TCP", raw("--mode", "pong", "--size", "64")),
            ("RDMA, CRC", over("--test", "send_lat", "--size", "64"))],
            64, 1, [("RDMA, CRC", "raw TCP", 1.25)]),
    ]


# The groups in the order of the run, with their shares of it.
GROUPS = [
    {"name": "peers", "title": "Peers side by side", "seconds": 150, "cases": peers},
    {"name": "transport", "title": "Transport, size and depth", "seconds": 290,
     "cases": transport},
    {"name": "bursts", "title": "Immediate and unsolicited data, bursts, segments, R2Ts",
     "seconds": 80, "cases": bursts},
    {"name": "connections", "title": "Connections and MC/S", "seconds": 60,
     "cases": connections},
    {"name": "latency", "title": "Latency, and latency against offered load",
     "seconds": 80, "cases": latency},
    {"name": "mixed", "title": "Mixes, sizes of units, files, encryption", "seconds": 80,
     "cases": mixed},
    {"name": "rdma", "title": "Software RDMA and plain sockets", "seconds": 40, "cases": rdma},
]
