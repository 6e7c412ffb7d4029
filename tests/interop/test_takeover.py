#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A new iserd takes over from the running one (--takeover): initiators go on."""
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import types

from harness import (ISER, ISERD, Daemon, Folder, io, main, make_image, need, patience,
                     quiet_port, refused, run, sha256, sparse, until)
from test_config import IQN, Config, Configured
from test_nbd import Bridge
from test_reserve import APTPL, EA, WE, GOOD, CONFLICT, REGISTER, RESERVE, Initiator


class Takeover(Folder):
    def setUp(self):
        super().setUp()
        self.control = self.path("control")
        self.listen = "127.0.0.1:%d" % quiet_port()

    def daemon(self, *args, **kw):
        return Daemon("--control", self.control, "--listen", self.listen, *args,
                      **kw)

    def next(self, old, *args):
        """Starts the next iserd, and waits for the orderly end of the old one."""
        new = self.daemon("--takeover", *args)
        self.assertEqual(old.proc.wait(patience(10)), 0, old.messages())
        old.stop()
        return new

    def take_over_under_fio(self, keys):
        disk = sparse(self.path("disk"), 64 << 20)
        d = self.daemon("--workers", "2", disk)
        with Bridge(d.url + "?reconnect=100&" + keys) as b:
            fio = subprocess.Popen(
                ["fio", "--name=verify", "--verify_state_save=0", "--ioengine=nbd",
                 "--uri=" + b.uri, "--rw=randwrite", "--bs=16k", "--iodepth=16",
                 "--size=64M", "--rate_iops=900", "--verify=crc32c",
                 "--verify_fatal=1"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for workers in ("1", "3", "2"):
                blocks = os.stat(disk).st_blocks
                until(lambda: os.stat(disk).st_blocks > blocks + (6 << 20) // 512,
                      "6 MiB written by fio")
                self.assertIsNone(fio.poll())
                d = self.next(d, "--workers", workers, disk)
            text = fio.communicate(timeout=patience(60))[0].decode()
            self.assertEqual(fio.returncode, 0, text)
        d.stop()

    @need("fio")
    def test_under_load_tcp(self):
        self.take_over_under_fio("transport=tcp")

    @need("fio")
    def test_under_load_iser(self):
        self.take_over_under_fio("transport=iser")

    @need("qemu-img")
    def test_libiscsi_goes_on(self):
        """libiscsi in QEMU connects again by itself."""
        image = self.path("image")
        with open(image, "wb") as f:
            f.write(os.urandom(24 << 20))
        disk = sparse(self.path("disk"), 24 << 20)
        d = self.daemon(disk)
        url = d.url
        with subprocess.Popen(["qemu-img", "convert", "-n", "-r", "8M", "-f", "raw",
                               "-O", "raw", image, url]) as copy:
            until(lambda: os.stat(disk).st_blocks > (4 << 20) // 512, "4 MiB")
            self.assertIsNone(copy.poll())
            d = self.next(d, disk)
            self.assertEqual(copy.wait(patience(60)), 0)
        self.assertIn(sha256(image), run([ISER, "hash", url]).text)
        d.stop()

    def test_reservations_without_aptpl(self):
        """SPC-4 §5.13.5: only a power loss ends them, and there is none."""
        disk = sparse(self.path("disk"), 1 << 20)
        d = self.daemon(disk)
        a, b = Initiator(d, "a"), Initiator(d, "b")
        self.assertEqual(a.out(REGISTER, new=1), GOOD)
        self.assertEqual(b.out(REGISTER, new=2), GOOD)
        self.assertEqual(a.out(RESERVE, EA, key=1), GOOD)
        a.close()
        b.close()
        d = self.next(d, disk)
        a, b = Initiator(d, "a"), Initiator(d, "b")
        self.assertEqual(a.keys(), [1, 2])
        self.assertEqual(b.reservation(), (EA, 1))
        self.assertEqual(b.write(), CONFLICT)
        self.assertEqual(a.write(), GOOD)
        a.close()
        b.close()
        d.stop()

    def test_memory(self):
        """ram: LUNs keep data and identity, also encrypted ones."""
        image, key = self.path("image"), self.path("key")
        make_image(image)
        luns = ("ram:24M", "ram:24M,key=" + key, "ram:24M")
        d = self.daemon(*luns)
        names = [json.loads(run([ISER, "info", "--json", u]).text)["serial"]
                 for u in d.urls]
        self.assertEqual(len(set(names)), 3)
        for u in d.urls[:2]:
            run([ISER, "copy", "--quiet", image, u])
        for _ in range(2):
            d = self.next(d, *luns)
            for url, name in zip(d.urls, names):
                info = json.loads(run([ISER, "info", "--json", url]).text)
                self.assertEqual(info["serial"], name)
            for u in d.urls[:2]:
                self.assertIn(sha256(image), run([ISER, "hash", u]).text)
            self.assertNotIn(sha256(image), run([ISER, "hash", d.urls[2]]).text)
        d = self.next(d, "ram:24M", "ram:16M,key=" + key)
        self.assertIn("had another size; its data are lost", d.messages())
        self.assertIn(sha256(image), run([ISER, "hash", d.urls[0]]).text)
        d.stop()

    def test_memory_with_protection_is_refused(self):
        d = self.daemon("--protection", "1", "ram:1M")
        text = refused("--takeover", "--control", self.control, "ram:1M", status=1)
        self.assertIn("protection information", text)
        self.assertIsNone(d.proc.poll())
        d.stop()

    def test_other_address(self):
        """What the new configuration does not have is closed."""
        d = self.daemon("--listen", "127.0.0.1:0", "ram:1M")
        other = int(d.urls[1].split("/")[2].split(":")[1])
        d = self.next(d, "ram:1M")
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", other))
        socket.create_connection(d.address).close()
        d.stop()

    def test_free_port_stays(self):
        """Port 0 is the port that the iserd before had."""
        d = Daemon("--control", self.control, "ram:1M")
        url = d.url
        new = Daemon("--control", self.control, "--takeover", "ram:1M")
        self.assertEqual(new.url, url)
        self.assertEqual(d.proc.wait(patience(10)), 0)
        d.stop()
        new.stop()

    ASK = b'{"jsonrpc":"2.0","id":1,"method":"takeover"}\n'

    def check_goes_on(self, client):
        """The iserd that no other one relieves serves again: memory, reservations and
        connections in its queue; and hands over to the next one that asks."""
        image = self.path("image")
        make_image(image)
        d = self.daemon("ram:24M", "ram:1M")
        run([ISER, "copy", "--quiet", image, d.url])
        a = Initiator(d, "a")
        self.assertEqual(a.out(REGISTER, new=1), GOOD)
        self.assertEqual(a.out(RESERVE, WE, key=1), GOOD)
        a.close()
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(patience(20))
            s.connect(self.control)
            s.sendall(self.ASK)
            client(s)
        d.wait_for("the next iserd did not take over")
        self.assertIn(sha256(image), run([ISER, "hash", d.url]).text)
        a, b = Initiator(d, "a"), Initiator(d, "b")
        self.assertEqual(b.write(), CONFLICT)
        self.assertEqual(a.write(), GOOD)
        a.close()
        b.close()
        before = run([ISER, "hash", d.url]).text
        d = self.next(d, "ram:24M", "ram:1M")
        self.assertEqual(run([ISER, "hash", d.url]).text, before)
        d.stop()

    def test_the_next_one_does_not_read(self):
        self.check_goes_on(lambda s: s.shutdown(socket.SHUT_RD))

    def test_the_next_one_leaves(self):
        """It has read all, and does not confirm it."""
        def client(s):
            while not s.recv(65536).endswith(b"\n"):
                pass
        self.check_goes_on(client)

    def test_wrong_confirmation(self):
        """A confirmation in advance, without the token that is handed over."""
        self.check_goes_on(lambda s: (s.sendall(b"00" * 16 + b"\n"), s.recv(1)))

    def hand(self, s, *lines):
        """Takes what is handed over, and sends these lines after the token."""
        text = b""
        while not text.endswith(b"\n"):
            text += s.recv(65536)
        token = json.loads(text)["result"]["token"].encode()
        for line in (token,) + lines:
            s.sendall(line + b"\n")

    def test_the_next_one_ends_after_its_confirmation(self):
        self.check_goes_on(lambda s: self.hand(s))

    def test_the_next_one_ends_when_it_is_ready(self):
        def client(s):
            self.hand(s, b"ready")
            self.assertEqual(s.recv(3), b"go\n")
        self.check_goes_on(client)

    def test_the_next_one_serves_without_leave(self):
        """"serving" has to follow "go" and "ready"."""
        self.check_goes_on(lambda s: self.hand(s, b"serving"))

    def check_fails(self, status, text, *args):
        """A next iserd that fails when it opens what it was handed over: the old one
        serves again, with its memory and reservations."""
        image = self.path("image")
        make_image(image)
        disk = sparse(self.path("disk"), 1 << 20)
        d = self.daemon("--state", self.path("state"), "ram:24M", disk)
        run([ISER, "copy", "--quiet", image, d.url])
        a = Initiator(d, "a")
        self.assertEqual(a.out(REGISTER, new=1), GOOD)
        self.assertEqual(a.out(RESERVE, WE, key=1), GOOD)
        a.close()
        for _ in range(2):
            self.assertIn(text, refused("--takeover", "--control", self.control, "--listen", self.listen,
                                        "--state", self.path("state"), "ram:24M", disk, *args, status=status))
            d.wait_for("the next iserd did not take over: it has ended; serving again")
            self.assertIn(sha256(image), run([ISER, "hash", d.url]).text)
        a, b = Initiator(d, "a"), Initiator(d, "b")
        self.assertEqual(b.write(), CONFLICT)
        self.assertEqual(a.write(), GOOD)
        a.close()
        b.close()
        before = run([ISER, "hash", d.url]).text
        d = self.next(d, "--state", self.path("state"), "ram:24M", disk)
        self.assertEqual(run([ISER, "hash", d.url]).text, before)
        d.stop()

    def test_the_next_one_cannot_open_a_unit(self):
        """It has opened the units before that one, with their locks."""
        missing = self.path("missing")
        sparse(missing, 1 << 20)
        held = Daemon(missing)
        self.check_fails(3, "is locked by another process", missing)
        held.stop()

    def test_the_next_one_cannot_listen(self):
        other = Daemon("ram:1M")
        self.check_fails(4, "cannot listen", "--listen", "127.0.0.1:%d" % other.address[1])
        other.stop()

    def test_the_next_one_is_killed_while_it_opens(self):
        """SIGKILL while it waits for the address of another program."""
        other = Daemon("ram:1M")
        disk = sparse(self.path("disk"), 1 << 20)
        d = self.daemon(disk, "ram:8M")
        with subprocess.Popen([ISERD, "serve", "--io", io(), "--takeover", "--control", self.control, "--listen", self.listen,
                               "--listen", "127.0.0.1:%d" % other.address[1], disk, "ram:8M"], stderr=subprocess.DEVNULL) as p:
            until(lambda: any(os.path.realpath("/proc/%d/fd/%s" % (p.pid, fd)) == disk
                              for fd in os.listdir("/proc/%d/fd" % p.pid)), "the next iserd has opened the disk")
            p.kill()
        d.wait_for("the next iserd did not take over")
        run([ISER, "hash", d.url])
        d = self.next(d, disk, "ram:8M")
        d.stop()
        other.stop()

    def test_signal(self):
        """SIGUSR2 starts the same program with the same arguments, again and again."""
        image = self.path("image")
        make_image(image)
        d = self.daemon("ram:24M")
        run([ISER, "copy", "--quiet", image, d.url])
        pids = [d.proc.pid]
        for _ in range(2):
            os.kill(pids[-1], signal.SIGUSR2)
            until(lambda: self.pid_of_control() not in (0, pids[-1]), "another iserd has the control socket")
            pids.append(self.pid_of_control())
            self.addCleanup(self.end, pids[-1])
            # systemd waits for the end of its own children only
            with open("/proc/%d/stat" % pids[-1]) as f:
                self.assertEqual(int(f.read().rsplit(")", 1)[1].split()[1]), os.getpid())
            self.assertIn(sha256(image), run([ISER, "hash", d.url]).text)
        self.assertEqual(d.proc.wait(patience(10)), 0)
        with open("/proc/%d/cmdline" % pids[-1], "rb") as f:
            self.assertEqual(f.read().count(b"--takeover"), 1)
        d.stop()

    def pid_of_control(self):
        """Returns the process that listens at the control socket; 0: there is none."""
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(self.control)
            except OSError:
                return 0
            return struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    @staticmethod
    def end(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

    def test_signal_without_control(self):
        with Daemon("ram:1M") as d:
            d.proc.send_signal(signal.SIGUSR2)
            d.wait_for("SIGUSR2: there is no control socket")

    def test_refusals(self):
        text = refused("--takeover", "ram:1M", status=2)
        self.assertIn("needs --control", text)
        text = refused("--takeover", "--control", self.control, "ram:1M", status=1)
        self.assertIn("start without --takeover", text)
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.control)
            s.listen()
            proc = subprocess.Popen(
                [ISERD, "serve", "--takeover", "--control",
                 self.control, "ram:1M"], stderr=subprocess.PIPE)
            c = s.accept()[0]
            c.recv(100)
            c.close()
            text = proc.communicate(timeout=patience(20))[1].decode()
            self.assertEqual(proc.returncode, 1)
            self.assertIn("without handing over", text)


class Ports(Config):
    """Registrations name target ports by identifiers, which stay what they are if
    targets are added in front (SPC-4 §4.6.5, §5.13.5)."""

    def config(self, targets, state=True):
        """A new configuration: one unit in each of the targets."""
        return self.write("  , state: %s\n" % self.path("state") if state else "", more=targets)

    def write(self, daemon, more=()):
        path = self.path("iserd.yaml")
        with open(path, "w") as f:
            f.write("version: 1\ndaemon: {control: %s, io: %s%s}\n" % (self.ctl, io(), daemon.strip("\n")))
            f.write("backstores: {disk: {store: %s}}\n" % self.disk)
            f.write("portal-groups: {p: {listen: %s}}\ntargets:\n" % self.listen)
            for name in more:
                f.write("  %s%s: {auth-group: any, portal-groups: [p], luns: {0: disk}}\n" % (IQN, name))
        return path

    def setUp(self):
        super().setUp()
        self.disk = sparse(self.path("disk"), 1 << 20)
        self.listen = "127.0.0.1:%d" % quiet_port()

    def initiator(self, d, target, name):
        at = types.SimpleNamespace(address=d.address, target=IQN + target)
        i = Initiator(at, name)
        self.addCleanup(i.close)
        return i

    def reserve(self, d, flags):
        b = self.initiator(d, "b", "x")
        self.assertEqual(b.out(REGISTER, new=7, flags=flags), GOOD)
        self.assertEqual(b.out(RESERVE, EA, key=7), GOOD)

    def check(self, d):
        self.assertEqual(self.initiator(d, "b", "x").write(), GOOD)
        # the same initiator port at another target port is another nexus
        self.assertEqual(self.initiator(d, "a", "x").write(), CONFLICT)

    def test_restart(self):
        d = Configured(self.config("b"), 1)
        self.reserve(d, APTPL)
        d.stop()
        d = Configured(self.config("ab"), 2)
        self.check(d)
        d.stop()
        with open(os.path.join(self.path("state"), "ports"), encoding="latin-1") as f:
            text = f.read()
        self.assertIn("1 %sb,t,0x0001\n" % IQN, text)
        self.assertIn("2 %sa,t,0x0001\n" % IQN, text)

    def test_takeover(self):
        old = Configured(self.config("b", state=False), 1)
        self.reserve(old, 0)
        d = Configured(self.config("ab", state=False), 2, "--takeover")
        self.assertEqual(old.proc.wait(patience(10)), 0)
        self.check(d)
        d.stop()
        old.stop()

    def test_damaged(self):
        Configured(self.config("b"), 1).stop()
        ports = os.path.join(self.path("state"), "ports")
        with open(ports, "rb") as f:
            good = f.read()
        self.assertEqual(good[:8], b"ISERPRT1")
        older = b"iserd ports 1\n" + good[28:]
        for bad in (b"", b"x", good[:-1], good.replace(b"1 iqn", b"2 iqn"), good.replace(b":b,", b":c,"), good + b"x",
                    older[:-1], older.replace(b"1 iqn", b"0 iqn"), older.replace(b"1 iqn", b"65536 iqn"), older + b"x",
                    older.replace(b"end", b"1 other\nend"), older.replace(b"ports 1", b"ports 2"), older.replace(b"end", b"\0end")):
            with open(ports, "wb") as f:
                f.write(bad)
            done = run([ISERD, "--config", self.config("b")], check=False)
            self.assertEqual(done.returncode, 3, repr(bad) + done.text)
            self.assertIn("ports: damaged", done.text)
        for start in (older, None):
            os.remove(ports)
            if start:
                with open(ports, "wb") as f:
                    os.fchmod(f.fileno(), 0o600)
                    f.write(start)
            Configured(self.config("b"), 1).stop()
            with open(ports, "rb") as f:
                self.assertEqual(f.read(), good)


if __name__ == "__main__":
    main()
