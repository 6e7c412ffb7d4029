#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tshark decodes all PDUs: none may be malformed or cause an expert error."""
import os
import subprocess
import tempfile
import unittest

from harness import ISER, Daemon, main, need, patience, run, until, until_steady


class Capture:
    def __init__(self, port, path):
        self.path, self.port = path, port
        self.proc = subprocess.Popen(
            ["dumpcap", "-q", "-i", "lo", "-f", "tcp port %d" % port, "-B",
             "64", "-w", path], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        printed = b""
        while b"File:" not in printed:  # until dumpcap captures
            line = self.proc.stderr.readline()
            if not line:
                raise unittest.SkipTest("dumpcap may not capture here: " +
                                        printed.decode()[:200])
            printed += line

    HEAD = 1024  # a capture without packets is shorter

    def stop(self):
        until(lambda: os.path.getsize(self.path) > self.HEAD,
              "packets in a capture")
        until_steady(lambda: os.path.getsize(self.path), 0.5)
        self.proc.terminate()
        self.proc.wait(patience(10))
        self.proc.stderr.close()

    def fields(self, display_filter, *fields):
        args = ["tshark", "-r", self.path, "-d",
                "tcp.port==%d,iscsi" % self.port, "-o",
                "tcp.desegment_tcp_streams:TRUE", "-Y", display_filter, "-T",
                "fields"]
        for f in fields:
            args += ["-e", f]
        env = dict(os.environ, LC_ALL="C")
        out = subprocess.run(args, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, timeout=120, env=env)
        return [line for line in out.stdout.decode().splitlines() if line]


def cut_short(line):
    """tshark decodes VPD page 83h up to the page length, even if the ALLOCATION
    LENGTH truncated the page (SPC-4 §4.3.5.6)."""
    pdu = bytes.fromhex(line.split("\t")[0])
    dsl, page = int.from_bytes(pdu[5:8], "big"), pdu[48:]
    return (pdu[0] & 0x3f == 0x25 and page[1] == 0x83 and
            int.from_bytes(page[2:4], "big") + 4 > dsl)


@need("tshark", "dumpcap", "iscsi-ls", "qemu-img")
class Dissected(unittest.TestCase):
    def decode(self, daemon_args, commands, opcodes):
        with tempfile.TemporaryDirectory() as d, Daemon(*daemon_args) as t:
            cap = Capture(t.address[1], os.path.join(d, "trace.pcapng"))
            for c in commands:
                run([a.format(url=t.url, portal=t.portal) for a in c])
            cap.stop()
            seen = set()
            for line in cap.fields("iscsi", "iscsi.opcode"):
                seen.update(int(x, 0) & 0x3f for x in line.split(","))
            self.assertLessEqual(set(opcodes), seen)
            bad = cap.fields("_ws.malformed || (iscsi && "
                             "_ws.expert.severity >= \"Error\")",
                             "tcp.payload", "_ws.expert.message")
            self.assertEqual([b for b in bad if not cut_short(b)], [])

    def test_tools(self):
        self.decode(["ram:16M"], [
            ["iscsi-ls", "-s", "iscsi://{portal}"],
            ["iscsi-inq", "{url}"],
            ["iscsi-readcapacity16", "{url}"],
            ["qemu-img", "bench", "-f", "raw", "-c", "64", "-s", "4096", "-t",
             "none", "{url}"],
            ["qemu-img", "bench", "-f", "raw", "-w", "-c", "16", "-s",
             "1048576", "-t", "none", "{url}"],
        ], [0x01, 0x03, 0x04, 0x05, 0x06, 0x21, 0x23, 0x24, 0x25, 0x26, 0x31])

    def test_digests(self):
        self.decode(["--digests", "prefer", "ram:16M"], [
            ["iscsi-inq", "{url}?header_digest=crc32c"],
        ], [0x01, 0x03, 0x25])

    @unittest.skipUnless(os.path.exists(ISER), "iser is not built")
    def test_iser(self):
        self.decode(["ram:16M"], [
            [ISER, "ls", "{portal}"],
            [ISER, "info", "{url}"],
            [ISER, "bench", "--time", "1", "--depth", "4", "{url}"],
        ], [0x01, 0x03, 0x04, 0x21, 0x23, 0x24, 0x25])


if __name__ == "__main__":
    main()
