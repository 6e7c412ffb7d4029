# SPDX-License-Identifier: BSD-2-Clause
"""The part of the system test that is repeated over each kind of connection, and the
table that compares the kinds."""
import collections
import json
import os
import time

from image import timed
from steps import Failed, first_lines, run, sha256, start

# kind: the kind of the session in iser info
Connection = collections.namedtuple("Connection", "name scheme query kind")
CONNECTIONS = (
    Connection("iSCSI", "iscsi", "", "iscsi"),
    Connection("iSER, RDMA first", "iser", "?start=rdma", "iser, RDMA from the start"),
    Connection("iSER after login", "iser", "?start=stream",
               "iser, login over the stream"))
# name, --rw, --bs, --depth of iser bench
BENCHES = (("4k read, depth 32", "randread", "4k", "32"),
           ("4k write, depth 32", "randwrite", "4k", "32"),
           ("1M read, depth 8", "read", "1M", "8"),
           ("1M write, depth 8", "write", "1M", "8"))


class Comparison:
    """Uses LUN 2 (memory) over each kind of connection and collects the figures."""

    def __init__(self, image, iserd, iser):
        self.image, self.iserd, self.iser = image, iserd, iser
        self.figures = {}  # (row, name of the connection): text

    def url(self, lun, connection):
        return connection.scheme + self.iserd.urls[lun][len("iscsi"):] + \
            connection.query

    def copy_and_compare(self, connection):
        """Copies the image in and out and fills rows of the column."""
        url, out = self.url(2, connection), self.image.path("out")
        info = json.loads(run(self.iser.program, "info", "--json",
                              self.url(0, connection)))
        kind = info["session"]["kind"]
        if kind != connection.kind:
            raise Failed("wrong kind of connection: " + kind)

        def put(row, text):
            self.figures[row, connection.name] = text
        put("copy in", self.iser.copy(self.image.path("image"), url))
        self.iser.check_hash(url)
        put("hash of the copy", "the same")
        put("copy out", self.iser.copy(url, out))
        put("bytes", "%d" % os.path.getsize(out))
        put("sha256", sha256(out)[:16])
        self.image.check_copy("out")
        os.unlink(out)
        return kind

    def copy_through_nbd(self, connection):
        """Copies LUN 0 with nbdcopy through iser nbd-serve."""
        proc = start(self.iser.program, "nbd-serve", "--socket",
                     self.image.path("nbd"), self.url(0, connection))
        try:
            rate = timed("nbdcopy", first_lines(proc, 1)[0],
                         self.image.path("nbd-out"))
            self.image.check_copy("nbd-out")
        finally:
            proc.terminate()
            proc.wait(15)
        os.unlink(self.image.path("nbd-out"))
        return rate

    def bench(self, connection):
        for row in BENCHES:
            self.one_bench(connection, *row)
        return "%s IOPS of 4 KiB reads" % \
            self.figures[BENCHES[0][0] + ": IOPS", connection.name]

    def one_bench(self, connection, name, rw, size, depth):
        """Runs iser bench and meanwhile reads the costs of the target."""
        proc = start(self.iser.program, "bench", "--json", "--time", "0.6", "--rw", rw,
                     "--bs", size, "--depth", depth, "--yes-overwrite",
                     self.url(2, connection))
        target = self.costs_of_target(proc)
        result = json.loads(proc.communicate(timeout=30)[0] or "{}")
        if proc.returncode:
            raise Failed("iser bench ended with %d" % proc.returncode)
        part = result.get("read") or result["write"]
        own = result["per_operation"]

        def put(row, text):
            self.figures[name + row, connection.name] = text
        if size == "4k":
            put(": IOPS", "%.0f" % part["iops"])
        put(": MB/s", "%.0f" % (part["bytes_per_second"] / 1e6))
        if target:
            put("|calls", "%.3g + %.3g" % (own["system_calls"], target[0]))
            put("|copied", "%.0f + %.0f" % (own["copied_bytes"], target[1]))

    def costs_of_target(self, bench):
        """Returns the costs while bench runs, or None if the bench ends before iserd
        reports its session. The costs are averages since the login, so the later half
        of the bench gives the better figure."""
        time.sleep(0.5)
        costs = self.iserd.costs()
        while not costs and bench.poll() is None:
            costs = self.iserd.costs()
        return costs

    def show(self):
        """Prints the table of all kinds of connection."""
        rows = ["copy in", "hash of the copy", "copy out", "bytes",
                "sha256"]
        for name, _, size, _ in BENCHES:
            rows += [name + ": IOPS"] if size == "4k" else []
            rows += [name + ": MB/s", name + "|calls", name + "|copied"]
        titles = {"calls": "  system calls per I/O",
                  "copied": "  bytes copied per I/O"}
        print("\n%-36s" % "one job, one port" +
              "".join("%20s" % c.name for c in CONNECTIONS))
        print("-" * 96)
        for row in rows:
            title = titles.get(row.partition("|")[2], row)
            print("%-36s" % title +
                  "".join("%20s" % self.figures.get((row, c.name), "-")
                          for c in CONNECTIONS))
        print("system calls and copies in user space: initiator + target; "
              "headers count as copied over iSER")
