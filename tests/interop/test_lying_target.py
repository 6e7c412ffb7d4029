#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Targets that report success and did not move the data (RFC 7143 §11.4.5.1),
that report capacities that can't be, or that are not ready yet: no tool may
take a byte that the target did not send for data."""
import os
import socket
import struct
import threading
import time

from harness import (ISER, Daemon, Folder, exactly, main, patience, run, some_time,
                     sha256)
from lying_target import (BLOCK, BUSY, CHECK, CONFLICT, FULL, GOOD, OVERFLOW,
                          READS, UNDERFLOW, WRITES, LyingTarget, pattern,
                          sense)
from test_nbd import EIO, Bridge

SIZE = 8 << 20
SHORT, PROTOCOL = "short transfer", "protocol error"


def of_reads(answer, skip=2):
    """A lie about each READ after the first few."""
    seen = []

    def lie(c):
        if c.op not in READS:
            return False
        seen.append(c.lba)
        if len(seen) <= skip:
            return False
        answer(c)
        return True
    return lie


def of_writes(answer):
    def lie(c):
        if c.op not in WRITES:
            return False
        answer(c)
        return True
    return lie


def part(c, n):
    return pattern(c.lba * BLOCK, n)


def half(c):
    """Half of it, and the residual says so."""
    c.give(part(c, c.edtl // 2))


def half_without_a_word(c):
    c.data_in(part(c, min(c.edtl // 2, 65536)), status=GOOD)


def nothing(c):
    c.response()


def nothing_and_u(c):
    c.response(flags=UNDERFLOW, resid=c.edtl)


def all_but_u(c):
    """All of it came; the residual denies the last block."""
    c.data_in(part(c, min(c.edtl, 65536)), final=c.edtl <= 65536)
    for at in range(65536, c.edtl, 65536):
        c.data_in(part(c, c.edtl)[at:at + 65536], at)
    c.response(flags=UNDERFLOW, resid=BLOCK)


def both_flags(c):
    c.data_in(part(c, 4096), final=True)
    c.response(flags=UNDERFLOW | OVERFLOW, resid=16)


def more_than_edtl(c):
    c.data_in(part(c, 4096), final=True)
    c.response(flags=UNDERFLOW, resid=c.edtl + 1)


def overflow_and_half(c):
    c.data_in(part(c, min(c.edtl // 2, 65536)), status=GOOD, flags=OVERFLOW,
              resid=512)


SHORT_READS = (half, half_without_a_word, nothing, nothing_and_u, all_but_u,
               overflow_and_half)
BAD_READS = (both_flags, more_than_edtl)


def take_half(c):
    c.take()
    c.response(flags=UNDERFLOW, resid=c.edtl // 2)


def take_nothing(c):
    """Asks for no byte and says that all is well."""
    c.response()


def take_all_with_both_flags(c):
    c.take()
    c.response(flags=UNDERFLOW | OVERFLOW, resid=1)


WRITE_LIES = ((take_half, SHORT), (take_nothing, SHORT),
              (take_all_with_both_flags, PROTOCOL))


NBD_READ, NBD_WRITE = 0, 1


def nbd_request(bridge, command, length):
    """One NBD request at offset 0, by hand: its error, and what it read."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(bridge.path)
        exactly(s, 18)
        s.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, 0))
        exactly(s, 10)
        s.sendall(struct.pack(">IHHQQI", 0x25609513, 0, command, 1, 0, length) +
                  b"w" * length * command)
        _, error, _ = struct.unpack(">IIQ", exactly(s, 16))
        data = exactly(s, length) if command == NBD_READ and not error else b""
        s.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 2, 0, 0, 0))
    return error, data


class Tools(Folder):
    def fails(self, args, text):
        done = run([ISER] + args, check=False)
        self.assertGreater(done.returncode, 0, done.text)
        self.assertIn(text, done.text)
        for word in ("runtime error", "AddressSanitizer", "LeakSanitizer"):
            self.assertNotIn(word, done.text)
        return done.text

    def copied(self, url):
        out = os.path.join(self.dir, "out")
        run([ISER, "copy", "-q", url, out])
        with open(out, "rb") as f:
            self.assertEqual(f.read(), pattern(0, SIZE))


class Lies(Tools):
    def reads(self, check):
        for answers, text in ((SHORT_READS, SHORT), (BAD_READS, PROTOCOL)):
            for answer in answers:
                with self.subTest(answer.__name__), \
                        LyingTarget(of_reads(answer)) as t:
                    check(t, text)

    def test_honest(self):
        out = os.path.join(self.dir, "out")
        with LyingTarget() as t:
            run([ISER, "copy", "-q", t.url(), out])
            with open(out, "rb") as f:
                self.assertEqual(f.read(), pattern(0, SIZE))
            self.assertIn(sha256(out), run([ISER, "hash", t.url()]).text)
            run([ISER, "copy", "-q", out, t.url()])
            self.assertEqual(b"".join(t.written[at] for at in
                                      sorted(t.written)), pattern(0, SIZE))

    def test_copy_reads(self):
        out = os.path.join(self.dir, "out")

        def check(t, text):
            self.fails(["copy", "-q", t.url(), out], text)
            with open(out, "rb") as f:
                data = f.read()
            good = pattern(0, SIZE)
            for at in range(0, len(data), BLOCK):
                self.assertIn(data[at:at + BLOCK],
                              (good[at:at + BLOCK], bytes(BLOCK)))
        self.reads(check)

    def test_copy_writes(self):
        src = os.path.join(self.dir, "src")
        with open(src, "wb") as f:
            f.write(pattern(0, SIZE))
        for answer, text in WRITE_LIES:
            with self.subTest(answer.__name__), \
                    LyingTarget(of_writes(answer)) as t:
                self.fails(["copy", "-q", src, t.url()], text)

    def test_hash(self):
        self.reads(lambda t, text: self.assertNotRegex(
            self.fails(["hash", t.url()], text), "[0-9a-f]{64}"))

    def test_bench(self):
        self.reads(lambda t, text: self.fails(
            ["bench", "--time", "1", "--depth", "4", t.url()], text))
        for answer, text in WRITE_LIES:
            with self.subTest(answer.__name__), \
                    LyingTarget(of_writes(answer)) as t:
                self.fails(["bench", "--time", "1", "--depth", "4", "--rw",
                            "randwrite", "--yes-overwrite", t.url()], text)

    def test_nbd_serve(self):
        for answer in SHORT_READS + BAD_READS:
            with self.subTest(answer.__name__), \
                    LyingTarget(of_reads(answer, 0)) as t, \
                    Bridge(t.url()) as b:
                self.assertEqual(nbd_request(b, NBD_READ, 65536)[0], EIO)
        for answer, _ in WRITE_LIES:
            with self.subTest(answer.__name__), \
                    LyingTarget(of_writes(answer)) as t, \
                    Bridge(t.url()) as b:
                self.assertEqual(nbd_request(b, NBD_WRITE, 4096)[0], EIO)

    def test_status_without_data_in_answers_to_questions(self):
        """INQUIRY, READ CAPACITY and REPORT LUNS that bring nothing."""
        for op in (0x12, 0x9e, 0xa0):
            for flags in (0, UNDERFLOW):
                def lie(c):
                    if c.op != op:
                        return False
                    c.response(flags=flags, resid=c.edtl)
                    return True
                with self.subTest(op=op, flags=flags), LyingTarget(lie) as t:
                    if op != 0xa0:
                        self.fails(["info", t.url()], SHORT)

    def test_capacity_that_can_not_be(self):
        out = os.path.join(self.dir, "out")
        for last, block, text in (
                (2 ** 64 - 1, 512, "18446744073709551615"),
                (2 ** 55 - 1, 512, "36028797018963967"),
                (2 ** 55, 512, "36028797018963968"),
                (7, 0, "blocks of 0 bytes"), (7, 520, "blocks of 520 bytes")):
            def lie(c):
                if c.op != 0x9e:
                    return False
                c.give(struct.pack(">QI20x", last, block))
                return True
            with self.subTest(last=last, block=block), LyingTarget(lie) as t:
                self.fails(["copy", "-q", t.url(), out], text)
                self.assertFalse(os.path.exists(out))
                self.fails(["info", t.url()], text)
                self.fails(["hash", t.url()], text)

    def test_capacity_of_ten_that_is_none(self):
        def lie(c):
            if c.op != 0x25:
                return c.op == 0x9e and not c.check(5, 0x2000)
            c.give(struct.pack(">II", 0xffffffff, 512))
            return True
        out = os.path.join(self.dir, "out")
        with LyingTarget(lie) as t:
            self.fails(["copy", "-q", t.url(), out], "FFFFFFFFh")
            self.assertFalse(os.path.exists(out))


def refusing(ops, status, times, sense=b"", qualifier=0):
    """Each command of ops, by its place and opcode, is refused so often."""
    seen = {}

    def lie(c):
        key = (c.op, c.cdb)
        seen[key] = seen.get(key, 0) + 1
        if c.op not in ops or seen[key] > times:
            return False
        c.response(status, sense=sense, qualifier=qualifier)
        return True
    lie.seen = seen
    return lie


def most_reads(lie):
    return max(n for (op, _), n in lie.seen.items() if op in READS)


RW = READS + WRITES
ATTENTION, NOT_READY = sense(6, 0x2900), sense(2, 0x0401)
PASSING = (("BUSY", (BUSY, 4)), ("TASK SET FULL", (FULL, 4)),
           ("unit attentions", (CHECK, 3, ATTENTION)),
           ("capacity has changed", (CHECK, 1, sense(6, 0x2a09))),
           ("becoming ready", (CHECK, 2, NOT_READY)),
           ("operation in progress", (CHECK, 2, sense(2, 0x0407))))


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 * (crc & 1)
    return struct.pack("<I", crc ^ 0xffffffff)


class Digests(Tools):
    """Data of a wrong digest (RFC 7143 §7.8) are no data, also where status
    comes with them."""

    class Crc(LyingTarget):
        keys = LyingTarget.keys.replace(b"DataDigest=None",
                                        b"DataDigest=CRC32C")
        blocks, flip = 8, 0

        def scsi(self, c, head, data):
            # each answer is one Data-In with status, or one without data
            class Sock:
                """The test's thread may close it during an answer."""
                def __init__(self, whole, flip):
                    self.whole, self.flip = whole, flip

                def __getattr__(self, name):
                    return getattr(self.whole, name)

                def sendall(self, pdu):
                    out = pdu[48:]
                    if out and head[32] == 0x28:
                        out = bytes([out[0] ^ self.flip]) + out[1:]
                    self.whole.sendall(
                        pdu[:48] + out + (crc32c(pdu[48:]) if out else b""))
            whole = c.sock
            c.sock = Sock(whole, self.flip)
            try:
                super().scsi(c, head, data)
            finally:
                c.sock = whole

        def read(self, c, head):
            c.data_in(head, pattern(0, 4096))

    def test_wrong_data_digest_with_status(self):
        for flip, status in ((0, 0), (1, 11)):
            with self.subTest(flip), self.Crc(
                    flip=flip, lie=lambda c: c.op == 0x28 and (
                        c.data_in(pattern(0, c.edtl), status=GOOD), True)[1]
                    ) as t:
                out = self.path("out")
                done = run([ISER, "copy", "-q",
                            t.url(some_time() + "&data_digest=crc32c"), out],
                           check=False)
                self.assertEqual(done.returncode, status, done.text)


class Limits(Tools):
    """MAXIMUM TRANSFER LENGTH (SBC-3 §6.6.3) of one end, in its own blocks,
    need not be whole blocks of the other end."""

    class Limited(LyingTarget):
        limit = 0

        def inquiry(self, c, head):
            if head[33:35] == b"\1\xb0":
                c.data_in(head, b"\0\xb0\0\x3c\0\0\0\0" +
                          struct.pack(">I", self.limit) + bytes(52))
            else:
                super().inquiry(c, head)

    def test_copy_to_larger_blocks(self):
        for limit in (1, 7, 9, 255):
            with self.subTest(limit), self.Limited(limit=limit) as t, \
                    Daemon("--block-size", "4096", "ram:8M") as d:
                run([ISER, "copy", "-q", t.url(), d.url])
                run([ISER, "copy", "-q", d.url, self.path("out")])
                with open(self.path("out"), "rb") as f:
                    self.assertEqual(f.read(), pattern(0, SIZE))

    def test_copy_of_larger_blocks(self):
        image = self.path("image")
        with open(image, "wb") as f:
            f.write(pattern(0, SIZE))
        for limit in (9, 255):
            with self.subTest(limit), self.Limited(limit=limit) as t, \
                    Daemon("--block-size", "4096", image) as d:
                run([ISER, "copy", "-q", d.url, t.url("depth=1")])
                took = b"".join(t.written[at] for at in sorted(t.written))
                self.assertEqual(took, pattern(0, SIZE))


class Listings(Tools):
    """iser ls and iser ping report what the target said, and what it did not
    say as a failure."""

    def ls(self, t, status, text):
        done = run([ISER, "ls", t.portal], check=False)
        self.assertEqual(done.returncode, status, done.text)
        self.assertIn(text, done.text)
        return done.text

    def test_lost_in_the_middle(self):
        def lost(op):
            def lie(c):
                if c.op == op:
                    raise EOFError
            return lie
        for op in (0xa0, 0x12, 0x9e):
            with self.subTest(op), LyingTarget(lost(op)) as t:
                self.ls(t, 4, "command %02xh: connection lost" % op)

    def test_no_answer_to_inquiry(self):
        def lie(c):
            return c.op == 0x12 and (c.check(5, 0x2400), True)[1]
        with LyingTarget(lie) as t:
            self.assertNotIn("disk", self.ls(t, 1, "unknown device"))

    def test_first_of_two_targets_fails(self):
        class Two(LyingTarget):
            def targets(self):
                return b"TargetName=iqn.2026-01.org.example:no\0" \
                    b"TargetAddress=127.0.0.1,1\0" + super().targets()

            def login(self, c, head, data):
                if c.keys.get("TargetName", "").endswith(":no"):
                    c.login_response(head, status=0x0203)
                else:
                    super().login(c, head, data)
        with Two() as t:
            self.ls(t, 21, "blocks of 512")

    def test_many_units(self):
        class Many(LyingTarget):
            def luns(self, c, head):
                c.data_in(head, struct.pack(">II", 300 * 8, 0) + b"".join(
                    struct.pack(">HHI", n, 0, 0) for n in range(300)))
        with Many() as t:
            self.ls(t, 0, "LUN 299 ")

    def test_list_that_does_not_end(self):
        """RFC 7143 §11.11: no F bit and no tag to ask on; F and C bits."""
        class Half(LyingTarget):
            flags = 0

            def text(self, c, head, data):
                c.send(0x24, self.flags, head[16:20], self.targets())
        for flags in (0, 0x40, 0xc0):
            with self.subTest(flags), Half(flags=flags) as t:
                self.ls(t, 11, "malformed")

    def test_ping_that_comes_back_otherwise(self):
        class Pong(LyingTarget):
            reply = b""

            def nop(self, c, head, data):
                if len(data) == 100:
                    data = self.reply
                super().nop(c, head, data)
        for reply, status in ((b"", 11), (bytes(99), 11), (bytes(101), 11),
                              (bytes(99) + b"x", 11), (bytes(100), 0)):
            with self.subTest(reply), Pong(reply=reply) as t:
                done = run([ISER, "ping", "--size", "100", "--count", "1",
                            t.url()], check=False)
                self.assertEqual(done.returncode, status, done.text)


class Refusals(Tools):
    """BUSY, TASK SET FULL, unit attentions and NOT READY (SAM-5 §§5.3, 5.14):
    the library issues the command again, for all tools, with a bound."""

    def test_every_tool_goes_on(self):
        src = os.path.join(self.dir, "src")
        with open(src, "wb") as f:
            f.write(pattern(0, SIZE))
        for name, how in PASSING:
            with self.subTest(name), LyingTarget(refusing(RW, *how)) as t:
                self.copied(t.url())
                self.assertIn(sha256(src), run([ISER, "hash", t.url()]).text)
                run([ISER, "copy", "-q", src, t.url()])
                self.assertEqual(b"".join(t.written[at] for at in
                                          sorted(t.written)), pattern(0, SIZE))
            with self.subTest(name + ", bench"), \
                    LyingTarget(refusing(RW, *how)) as t:
                run([ISER, "bench", "--time", "0.3", "--depth", "8", t.url()])

    def test_questions(self):
        for op in (0x12, 0x9e, 0x1a):
            for name, how in PASSING:
                with self.subTest(op=op, why=name), \
                        LyingTarget(refusing((op,), *how)) as t:
                    run([ISER, "info", t.url()])

    def test_a_small_task_set(self):
        """The target executes two READs at once, for 10 ms each, and ends further READs
        with TASK SET FULL. libiser repeats a refused READ when another READ ends, long
        before the time after which libiser repeats it in any case."""
        lock, under_way, refused = threading.Lock(), [], []

        def give(c):
            with lock:
                under_way.remove(c)
                c.give(pattern(c.lba * BLOCK, c.edtl))

        def lie(c):
            if c.op not in READS:
                return False
            with lock:
                if len(under_way) == 2:
                    refused.append(c)
                    c.response(FULL, qualifier=20)
                else:
                    under_way.append(c)
                    threading.Timer(0.01, give, (c,)).start()
            return True
        with LyingTarget(lie) as t:
            began = time.monotonic()
            self.copied(t.url("retry=20"))
            self.assertLess(time.monotonic() - began, 1.9 * patience(1))
        self.assertGreater(len(refused), 5)

    def test_the_bound(self):
        for name, how in PASSING:
            if "attention" in name or "capacity" in name:
                continue
            never = refusing(READS, how[0], 10 ** 6, *how[2:])
            with self.subTest(name), LyingTarget(never) as t:
                began = time.monotonic()
                self.fails(["hash", t.url("retry=1")], "command 28h ended")
                self.assertGreater(time.monotonic() - began, 0.9)
                self.assertLess(max(never.seen.values()), 50)
                never.seen.clear()
                self.fails(["hash", t.url("retry=0")], "command 28h ended")
                self.assertEqual(most_reads(never), 1)

    def test_attentions_without_end(self):
        never = refusing(READS, CHECK, 10 ** 6, ATTENTION)
        with LyingTarget(never) as t:
            self.fails(["hash", t.url()], "unit attention")
        self.assertEqual(most_reads(never), 9)

    def test_what_is_not_issued_again(self):
        """RESERVATION CONFLICT; a medium that may have changed; formatting;
        an error of an earlier command; a unit that wants no more commands."""
        deferred = b"\x71" + ATTENTION[1:]
        for how in ((CONFLICT,), (CHECK, sense(6, 0x2800)),
                    (CHECK, sense(2, 0x0404)), (CHECK, deferred),
                    (BUSY, b"", 0x3ffe), (FULL, b"", 0x3ffe)):
            lie = refusing(RW, how[0], 1, *how[1:])
            with self.subTest(how), LyingTarget(lie) as t:
                self.fails(["hash", t.url()], "command 28h ended")
                self.assertEqual(
                    max(n for (op, _), n in lie.seen.items() if op in RW), 1)

    def test_status_qualifier(self):
        """SAM-5 §5.3.2: units of 100 ms before the next command."""
        times = []

        def lie(c):
            if c.op not in READS:
                return False
            times.append(time.monotonic())
            if len(times) > 1:
                return False
            c.response(BUSY, qualifier=6)
            return True
        with LyingTarget(lie, blocks=64) as t:
            run([ISER, "hash", t.url()])
        self.assertGreater(times[1] - times[0], 0.59)

    def test_nbd_serve(self):
        for name, how in PASSING:
            with self.subTest(name), LyingTarget(refusing(RW, *how)) as t, \
                    Bridge(t.url()) as b:
                self.assertEqual(nbd_request(b, NBD_READ, 65536),
                                 (0, pattern(0, 65536)))


class Sequences(Tools):
    """Numbers and answers that a target may not send: the session ends, and no
    tool reports success (RFC 7143 §§4.2.2.2, 11.4, 11.8)."""

    def ends(self, lie):
        with LyingTarget(lie) as t:
            done = run([ISER, "hash", t.url()], check=False)
        self.assertGreater(done.returncode, 0, done.text)

    def test_statsn(self):
        for step in (1, -1, 1000, 2 ** 31):
            def lie(c):
                c.conn.statsn = (c.conn.statsn + step) % 2 ** 32
                c.give(part(c, c.edtl))
            with self.subTest(step):
                self.ends(of_reads(lie))

    def test_two_responses(self):
        def twice(c):
            c.give(part(c, c.edtl))
            c.response()
        self.ends(of_reads(twice))

    def test_r2ts(self):
        src = os.path.join(self.dir, "src")
        with open(src, "wb") as f:
            f.write(bytes(65536))

        def ask(*ranges):
            def lie(c):
                for sn, (offset, length) in enumerate(ranges):
                    c.r2t(offset, length, sn)
                    c.target.data_out(c.conn, c.itt)
                c.response()
            return of_writes(lie)
        for ranges in (((0, 4096), (0, 4096)), ((4096, 4096),),
                       ((0, 4096), (8192, 4096)), ((0, 65537),),
                       ((0, 0),), ((0, 300000),)):
            with self.subTest(ranges), LyingTarget(ask(*ranges)) as t:
                done = run([ISER, "copy", "-q", src, t.url()],
                           check=False)
                self.assertGreater(done.returncode, 0, done.text)


if __name__ == "__main__":
    main()
