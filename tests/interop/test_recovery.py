#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ErrorRecoveryLevel 1 over TCP (RFC 7143 §7.1.4, §11.16): iserd against an initiator of
bytes that asks for PDUs again, and `iser` with iserd over a path that damages data, or
loses PDUs."""
import os
import socket
import struct
import tempfile
import threading
import unittest

from harness import ISER, Daemon, Folder, Wire, exactly, main, need, run
from rdma_wire import crc32c
from test_tshark import Capture

COMMAND, TEXT, DATA_OUT, SNACK = 0x01, 0x04, 0x05, 0x10
NOP_IN, RESPONSE, LOGIN, DATA_IN, R2T, REJECT = (0x20, 0x21, 0x23, 0x25, 0x31,
                                                 0x3f)
RESERVED = 0xffffffff
DATA_R2T, STATUS, DATA_ACK, R_DATA = range(4)


def word(head, at):
    return int.from_bytes(head[at:at + 4], "big")


class Asker(Wire):
    """An initiator whose requests acknowledge the StatSNs before .acked, and no more."""

    def __init__(self, daemon, level=1, digest=False, isid=1):
        super().__init__(daemon)
        self.ISID = Wire.ISID[:5] + bytes([isid])
        self.digest, self.acked = False, 1
        keys = ("ErrorRecoveryLevel=%d" % level, "MaxRecvDataSegmentLength=8192",
                "MaxBurstLength=16384", "DataDigest=" +
                ("CRC32C" if digest else "None"))
        op, head, data = self.login(*keys)
        assert (op, head[36:38]) == (LOGIN, b"\0\0"), head
        self.answer, self.digest = data.split(b"\0"), digest
        self.acked = word(head, 24) + 1

    def put(self, head, data=b"", damage=0):
        data += b"\0" * (-len(data) % 4)
        if self.digest and data:
            data += struct.pack("<I", crc32c(data) ^ damage)
        self.send(head + data)

    def recv(self):
        op, head, data = super().recv()
        if self.digest and data:
            self._exactly(4)
        return op, head, data

    def scsi(self, cdb, edtl=0, data=b"", flags=None, damage=0, itt=None,
             cmdsn=None):
        """Sends a SCSI Command with the ExpStatSN of .acked; returns its tag."""
        if cmdsn is None:
            cmdsn, self.cmdsn = self.cmdsn, self.cmdsn + 1
        if itt is None:
            itt, self.itt = self.itt, self.itt + 1
        if flags is None:
            flags = 0xc1 if edtl else 0x81
        rest = struct.pack(">III", edtl, cmdsn, self.acked) + cdb.ljust(16, b"\0")
        self.put(self.bhs(COMMAND, flags, len(data), itt=itt, rest=rest), data,
                 damage)
        return itt

    def snack(self, kind, begrun=0, runlen=0, itt=RESERVED, tag=RESERVED,
              lun=bytes(8)):
        rest = struct.pack(">III", tag, 0, self.acked) + bytes(8)
        rest += struct.pack(">II", begrun, runlen)
        self.put(self.bhs(SNACK, 0x80 | kind, itt=itt, rest=rest, lun=lun))

    def data_out(self, itt, ttt, sn, offset, data, final=True, damage=0):
        rest = struct.pack(">IIIIIII", ttt, 0, self.acked, 0, sn, offset, 0)
        self.put(self.bhs(DATA_OUT, 0x80 * final, len(data), itt=itt,
                          rest=rest), data, damage)

    def settle(self):
        """Consumes the unit attention of a new nexus."""
        for _ in range(3):
            self.scsi(bytes(6))
            head = self.recv()[1]
            self.acked = word(head, 24) + 1
            if head[3] == 0:
                return self
        raise AssertionError("unit is not ready")

    def read(self, blocks, lba=0):
        """Reads and returns (tag, the PDUs up to the one with the status)."""
        itt = self.scsi(b"\x28\0" + struct.pack(">IBH", lba, 0, blocks),
                        blocks * 512)
        pdus = []
        while not pdus or not (pdus[-1][0] == RESPONSE or pdus[-1][1][1] & 1):
            pdus.append(self.recv())
        return itt, pdus


def fixed(head):
    """The header without ExpCmdSN and MaxCmdSN."""
    return head[:28] + head[36:]


class Snacks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("--error-recovery-level", "1", "ram:8M")
        cls.blocks = os.urandom(65536)
        w = Wire(cls.daemon)
        w.login()
        assert w.ready().write10(0, cls.blocks)[0] == 0
        w.close()

    @classmethod
    def tearDownClass(cls):
        with cls.daemon:
            pass

    def asker(self, **kw):
        w = Asker(self.daemon, **kw).settle()
        self.addCleanup(w.close)
        return w

    def rejected(self, w, reason, datasn=None):
        op, head, data = w.recv()
        self.assertEqual((op, head[2]), (REJECT, reason), head)
        self.assertEqual(data[0], SNACK)
        if datasn is not None:
            self.assertEqual(word(head, 36), datasn)
        w.acked = word(head, 24) + 1  # as all before it

    def test_the_level_is_negotiated(self):
        self.assertIn(b"ErrorRecoveryLevel=1", self.asker().answer)
        self.assertIn(b"ErrorRecoveryLevel=1", self.asker(level=2).answer)
        self.assertIn(b"ErrorRecoveryLevel=0", self.asker(level=0).answer)

    def test_level_0_has_no_snack(self):
        w = self.asker(level=0)
        w.snack(STATUS)
        self.rejected(w, 0x03)

    def test_status(self):
        w = self.asker()
        kept = []
        for cdb in (bytes(6), b"\x28" + b"\xff" * 9, bytes(6)):
            w.scsi(cdb)
            kept.append(w.recv())
        first = w.acked
        self.assertEqual([word(k[1], 24) for k in kept],
                         [first, first + 1, first + 2])
        self.assertGreater(len(kept[1][2]), 18)  # sense data
        for begrun, runlen, want in ((first, 1, kept[:1]), (0, 0, kept),
                                     (first + 1, 0, kept[1:]),
                                     (first, 3, kept)):
            w.snack(STATUS, begrun, runlen)
            for k in want:
                op, head, data = w.recv()
                self.assertEqual((op, fixed(head), data),
                                 (k[0], fixed(k[1]), k[2]))
        w.snack(STATUS, first + 2, 2)  # was not sent
        self.rejected(w, 0x04)
        w.snack(STATUS, first, 1)  # is acknowledged now
        self.rejected(w, 0x04)

    def test_read_data_are_the_same_after_a_write(self):
        w, other = self.asker(), self.asker(isid=2)
        itt, pdus = w.read(128)
        self.assertEqual(len(pdus), 8)
        self.assertEqual(b"".join(p[2] for p in pdus), self.blocks)
        other.digest = False
        self.assertEqual(other.write10(0, b"\x55" * 8192)[0], 0)
        try:
            for begrun, runlen, want in ((3, 1, pdus[3:4]), (6, 0, pdus[6:]),
                                         (0, 0, pdus), (1, 5, pdus[1:6])):
                w.snack(DATA_R2T, begrun, runlen, itt)
                for p in want:
                    op, head, data = w.recv()
                    self.assertEqual((op, fixed(head)), (p[0], fixed(p[1])))
                    self.assertEqual(data, p[2])
        finally:
            other.acked += 1
            other.write10(0, self.blocks[:8192])
        w.snack(DATA_R2T, 8, 1, itt)
        self.rejected(w, 0x04, datasn=8)  # §11.17.2
        w.snack(DATA_R2T, 0, 0, itt)  # the status is acknowledged
        self.rejected(w, 0x09)

    def test_data_ack(self):
        w = self.asker()
        itt, pdus = w.read(128)
        asks = [i for i, p in enumerate(pdus) if p[1][1] & 0x40]
        self.assertEqual(asks, [1, 3, 5])  # every MaxBurstLength bytes
        ttt, lun = word(pdus[3][1], 20), pdus[3][1][8:16]
        w.snack(DATA_ACK, 4, 0, tag=ttt, lun=lun)
        w.snack(DATA_R2T, 0, 0, itt)
        self.assertEqual([word(w.recv()[1], 36) for _ in range(4)],
                         [4, 5, 6, 7])
        w.snack(DATA_ACK, 9, 0, tag=ttt, lun=lun)
        op, head, _ = w.recv()
        self.assertEqual((op, head[2]), (REJECT, 0x08))
        w.snack(DATA_R2T, 3, 1, itt)
        self.rejected(w, 0x04, datasn=8)

    def test_r_data_after_another_length(self):
        w = self.asker()
        itt, pdus = w.read(128)
        text = b"MaxRecvDataSegmentLength=4096\0"
        rest = struct.pack(">III", RESERVED, w.cmdsn, w.acked)
        w.put(w.bhs(TEXT | 0x40, 0x80, len(text), itt=900, rest=rest), text)
        self.assertEqual(w.recv()[0], 0x24)
        w.snack(R_DATA, itt=itt, tag=77)
        got = [w.recv() for _ in range(16)]
        self.assertEqual([len(p[2]) for p in got], [4096] * 16)
        self.assertEqual([word(p[1], 36) for p in got], list(range(16)))
        self.assertEqual(b"".join(p[2] for p in got), self.blocks)
        op, head, _ = w.recv()
        self.assertEqual((op, word(head, 20)), (RESPONSE, 77))
        self.assertEqual(word(head, 24), word(pdus[-1][1], 24))  # StatSN
        w.snack(R_DATA, itt=itt, tag=77)
        self.rejected(w, 0x09)

    def test_wrong_fields(self):
        w = self.asker()
        for kind in range(4, 16):
            w.snack(kind)
            self.rejected(w, 0x09)
        for more in ({"itt": 5}, {"tag": 5}):
            w.snack(STATUS, **more)
            self.rejected(w, 0x09)
        w.snack(DATA_R2T, itt=5555)
        self.rejected(w, 0x09)
        for tag in (0, RESERVED):
            w.snack(R_DATA, itt=5555, tag=tag)
            self.rejected(w, 0x09)
        w.snack(DATA_ACK, 1, 0, tag=5555)
        op, head, _ = w.recv()
        self.assertEqual((op, head[2]), (REJECT, 0x08))

    def write(self, w, data):
        """Sends a WRITE without data; returns (tag, the R2T)."""
        cdb = b"\x2a\0" + struct.pack(">IBH", 1000, 0, len(data) // 512)
        itt = w.scsi(cdb, len(data), flags=0xa1)
        op, head, _ = w.recv()
        self.assertEqual(op, R2T)
        return itt, head

    def written(self, w, data):
        op, head, _ = w.recv()
        self.assertEqual((op, head[3]), (RESPONSE, 0))
        w.acked = word(head, 24) + 1
        _, pdus = w.read(len(data) // 512, 1000)
        self.assertEqual(b"".join(p[2] for p in pdus), data)

    def test_r2t(self):
        w, data = self.asker(), os.urandom(8192)
        itt, r2t = self.write(w, data)
        w.snack(DATA_R2T, 0, 1, itt)
        self.assertEqual(w.recv()[1], r2t)
        w.snack(DATA_R2T, 1, 1, itt)
        self.rejected(w, 0x04, datasn=1)
        w.data_out(itt, word(r2t, 20), 0, 0, data)
        self.written(w, data)

    def test_damaged_data_out_is_asked_for_again(self):
        w, data = self.asker(digest=True), os.urandom(16384)
        itt, r2t = self.write(w, data)
        for sn in range(4):
            w.data_out(itt, word(r2t, 20), sn, sn * 4096,
                       data[sn * 4096:][:4096], sn == 3, damage=sn == 1)
        # R2Ts go before other PDUs
        (op, head, _), (rejected, reject, bad) = w.recv(), w.recv()
        self.assertEqual((rejected, reject[2], bad[0]),
                         (REJECT, 0x02, DATA_OUT))
        self.assertEqual((op, word(head, 36), word(head, 40), word(head, 44)),
                         (R2T, 1, 4096, 4096))
        w.data_out(itt, word(head, 20), 0, 4096, data[4096:8192])
        self.written(w, data)

    def test_a_command_with_damaged_immediate_data_is_retried(self):
        w, data = self.asker(digest=True), os.urandom(4096)
        cdb = b"\x2a\0" + struct.pack(">IBH", 1000, 0, 8)
        cmdsn = w.cmdsn
        itt = w.scsi(cdb, 4096, data, 0xa1, damage=1)
        op, head, bad = w.recv()
        self.assertEqual((op, head[2], bad[0]), (REJECT, 0x02, COMMAND))
        self.assertEqual(word(head, 28), cmdsn)  # §7.3: not received
        w.scsi(cdb, 4096, data, 0xa1, itt=itt, cmdsn=cmdsn)
        self.written(w, data)
        w.scsi(cdb, 4096, data, 0xa1, itt=itt, cmdsn=cmdsn)  # §4.2.2.1
        w.scsi(bytes(6))
        self.assertEqual(word(w.recv()[1], 16), w.itt - 1)

    def test_the_same_snack_again_and_again(self):
        """A SNACK of 48 bytes does not make iserd send without end."""
        w = self.asker()
        itt, pdus = w.read(128)
        got = 0
        try:
            while got < 10000:
                w.snack(DATA_R2T, 0, 0, itt)
                for _ in pdus:
                    w.recv()
                    got += 1
        except (EOFError, OSError):
            pass
        self.assertGreater(got, 16)
        self.assertLess(got, 200)
        self.asker().close()  # others notice nothing

    def test_unacknowledged_status(self):
        """iserd asks for ExpStatSN (§7.1.4.2), and drops who does not answer."""
        with Daemon("--error-recovery-level", "1", "--data-timeout", "2",
                    "ram:1M") as d:
            w = Asker(d).settle()
            w.acked -= 1
            w.scsi(bytes(6))
            w.recv()
            op, head, _ = w.recv()
            self.assertEqual(op, NOP_IN)
            self.assertNotEqual(word(head, 20), RESERVED)
            w.expect_close()
            w.close()
            d.wait_for("was not acknowledged")

    @need("tshark", "dumpcap")
    def test_tshark_knows_the_snacks(self):
        with tempfile.TemporaryDirectory() as folder:
            cap = Capture(self.daemon.address[1],
                          os.path.join(folder, "trace.pcapng"))
            w = self.asker()
            itt, pdus = w.read(128)
            w.snack(DATA_ACK, 4, 0, tag=word(pdus[3][1], 20),
                    lun=pdus[3][1][8:16])
            w.snack(DATA_R2T, 5, 1, itt)
            w.recv()
            w.snack(STATUS)
            w.recv()
            cap.stop()
            self.assertEqual(cap.fields("_ws.malformed || (iscsi && "
                                        "_ws.expert.severity >= \"Error\")",
                                        "_ws.expert.message"), [])
            self.assertEqual(len(cap.fields("iscsi.opcode == 0x10",
                                            "iscsi.opcode")), 3)


class OtherWorker(unittest.TestCase):
    """The blocks of a READ are written by another worker before the SNACK."""

    def test_the_snack_is_rejected_rfc7143_7_8(self):
        old, new, ends = os.urandom(8192), os.urandom(512), set()
        with Daemon("--error-recovery-level", "1", "--workers", "2", "ram:8M") as d:
            writer = Wire(d)
            writer.ISID = Wire.ISID[:5] + bytes([8])
            writer.login()
            writer.ready()
            for n in range(2):  # one reader is on the worker of the writer
                self.assertEqual(writer.write10(0, old)[0], 0)
                reader = Asker(d, isid=n + 1).settle()
                itt, pdus = reader.read(16)
                self.assertEqual(writer.write10(3, new)[0], 0)
                reader.snack(DATA_R2T, 0, 1, itt)
                op, head, data = reader.recv()
                if op == REJECT:
                    self.assertEqual((head[2], data[0]), (0x03, SNACK))
                else:
                    self.assertEqual((op, data), (DATA_IN, pdus[0][2]))
                ends.add(op)
                reader.close()
            writer.close()
        self.assertEqual(ends, {REJECT, DATA_IN})


class Damage:
    """A path to a target that damages data segments after the login. .damaged counts
    them, for each direction; .served counts connections. Of each opcode in .lose the
    next PDU is lost."""

    def __init__(self, daemon, every, lose=()):
        self.daemon, self.every, self.lose = daemon, every, set(lose)
        self.damaged, self.served, self.over = [0, 0], 0, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.portal = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.url = daemon.url.replace(daemon.portal, self.portal)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.over:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            self.served += 1
            far = socket.create_connection(self.daemon.address)
            ends, state = (near, far), {"full": False, "count": 0}
            for way in (0, 1):
                threading.Thread(target=self.pump, daemon=True,
                                 args=(ends[way], ends[1 - way], way,
                                       state)).start()

    def pump(self, source, sink, way, state):
        try:
            while True:
                self.pdu(source, sink, way, state)
        except (EOFError, OSError):
            for s in (source, sink):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def pdu(self, source, sink, way, state):
        head = exactly(source, 48)
        full = state["full"]  # the digests begin after the last Login Response
        head += exactly(source, 4 * head[4] + 4 * full)
        n = int.from_bytes(head[5:8], "big")
        data = bytearray(exactly(source, n + -n % 4 + (4 if full and n else 0)))
        if full and n:
            state["count"] += 1
            if state["count"] % self.every == 0:
                data[state["count"] * 7919 % len(data)] ^= 0x10
                self.damaged[way] += 1
        if (head[0] & 0x3f == LOGIN and head[1] & 0x83 == 0x83 and
                head[36] == 0):
            state["full"] = True
        if full and head[0] & 0x3f in self.lose:
            self.lose.remove(head[0] & 0x3f)
        else:
            sink.sendall(head + data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over = True
        self.listener.close()


class DamagedPath(Folder):
    KEYS = "header_digest=crc32c&data_digest=crc32c&timeout=30&"

    def test_copies_are_right_and_without_a_new_login(self):
        size = 4 << 20
        source, back = self.path("source.img"), self.path("back.img")
        with open(source, "wb") as f:
            f.write(os.urandom(size))
        with Daemon("--error-recovery-level", "1", "ram:4M") as d, \
                Damage(d, 5) as path:
            url = path.url + "?" + self.KEYS + "error_recovery_level=1"
            run([ISER, "copy", "-q", source, url])
            self.assertEqual(path.served, 1)
            to_target = path.damaged[0]
            run([ISER, "copy", "-q", url, back])
            self.assertEqual(path.served, 2)
            self.assertGreater(to_target, 0)
            self.assertGreater(path.damaged[1], 0)
        with open(source, "rb") as a, open(back, "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_lost_pdus_need_no_timeout(self):
        """One PDU of each kind is lost as a whole; no command has a timeout."""
        source, back = self.path("source.img"), self.path("back.img")
        with open(source, "wb") as f:
            f.write(os.urandom(4 << 20))
        with Daemon("--error-recovery-level", "2", "ram:4M") as d, \
                Damage(d, 1 << 30) as path:
            url = (path.url + "?data_digest=crc32c&error_recovery_level=2&"
                   "noop_out_interval=1&noop_out_timeout=4")
            path.lose = {R2T, RESPONSE, NOP_IN}
            run([ISER, "copy", "-q", source, url])
            self.assertEqual(path.lose, set())
            path.lose = {DATA_IN}
            run([ISER, "copy", "-q", url, back])
            self.assertEqual(path.lose, set())
            self.assertEqual(path.served, 2)
        with open(source, "rb") as a, open(back, "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_level_0_ends_with_the_first_damage(self):
        with Daemon("--error-recovery-level", "1", "ram:4M") as d, \
                Damage(d, 5) as path:
            done = run([ISER, "copy", "-q", path.url + "?" + self.KEYS,
                        self.path("back.img")], check=False)
            self.assertGreater(done.returncode, 0)
            self.assertIn("digest", done.text)


if __name__ == "__main__":
    main()
