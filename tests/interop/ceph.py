# SPDX-License-Identifier: BSD-2-Clause
"""A Ceph cluster of one monitor and one or more OSDs in a folder, on one address.

No service manager, no device, no root: an OSD has a sparse file. `Cluster` starts in some
ten seconds; everything that it started ends with `stop`.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

from harness import patience, quiet_port, run, stop_process, until

WATCH = 5  # seconds until the lock of a client that is gone expires; the default of Ceph is 30
LEAKS = "suppressions=%s:print_suppressions=0" % os.path.join(os.path.dirname(os.path.abspath(__file__)), "ceph.supp")
PROGRAMS = ("ceph-mon", "ceph-osd", "ceph", "rbd", "monmaptool", "ceph-authtool")

CONF = """[global]
fsid = %(fsid)s
mon host = v2:%(host)s:%(port)d
public addr = %(host)s
cluster addr = %(host)s
ms bind ipv6 = false
auth cluster required = %(auth)s
auth service required = %(auth)s
auth client required = %(auth)s
run dir = %(dir)s
log file = %(dir)s/$name.log
admin socket = %(dir)s/$name.$pid.asok
pid file = %(dir)s/$name.pid
keyring = %(dir)s/keyring
osd pool default size = %(size)d
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon osd down out interval = 0
mon osd min down reporters = 1
[mon]
mon data = %(dir)s/mon
mon initial members = a
mon data avail warn = 1
mon data avail crit = 1
[osd]
osd data = %(dir)s/osd$id
keyring = %(dir)s/osd$id/keyring
osd objectstore = bluestore
bluestore block size = 4294967296
bluestore fsck on mount = false
osd memory target = 939524096
osd memory base = 268435456
osd max object name len = 256
osd client watch timeout = %(watch)d
osd op num shards = 2
osd op num threads per shard = 1
osd class load list = *
osd class default list = *
"""


def missing():
    """Returns a program of Ceph that is not installed, or None."""
    return next((p for p in PROGRAMS if not shutil.which(p)), None)


class Cluster:
    """auth: cephx, with the key of client.admin in DIR/keyring; else no authentication. size: copies of each object."""

    def __init__(self, auth=False, host="127.0.0.1", osds=1, size=1):
        self.dir = tempfile.mkdtemp(prefix="ceph")
        self.leaks = os.environ.get("LSAN_OPTIONS")
        os.environ.setdefault("LSAN_OPTIONS", LEAKS)
        self.conf = os.path.join(self.dir, "ceph.conf")
        self.port = quiet_port()
        self.auth = "cephx" if auth else "none"
        self.env = dict(os.environ, CEPH_CONF=self.conf)
        self.host, self.osds, self.size = host, osds, size
        self.daemons, self.started = {}, {}
        try:
            self._start()
        except Exception:
            self.stop()
            raise

    def run(self, *args, limit=60, **kw):
        return run(list(args), timeout=patience(limit), env=self.env, **kw)

    def _start(self):
        self.fsid = str(uuid.uuid4())
        os.mkdir(os.path.join(self.dir, "mon"))
        with open(self.conf, "w") as f:
            f.write(CONF % {"fsid": self.fsid, "host": self.host, "port": self.port, "dir": self.dir, "auth": self.auth,
                            "size": self.size, "watch": WATCH})
        keyring, monmap = os.path.join(self.dir, "keyring"), os.path.join(self.dir, "monmap")
        self.run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
        self.run("ceph-authtool", keyring, "--gen-key", "-n", "client.admin", "--cap", "mon", "allow *",
                 "--cap", "osd", "allow *", "--cap", "mgr", "allow *")
        self.run("monmaptool", "--create", "--addv", "a", "[v2:%s:%d]" % (self.host, self.port), "--fsid", self.fsid, monmap)
        self.run("ceph-mon", "-i", "a", "--mkfs", "--monmap", monmap, "--keyring", keyring)
        self._daemon("mon", "ceph-mon", "-i", "a", "-f")
        for i in range(self.osds):
            self._start_osd(str(i))
        self.run("ceph", "osd", "pool", "create", "rbd", "8")
        self.run("rbd", "pool", "init", "rbd")

    def _start_osd(self, i):
        folder, osd = os.path.join(self.dir, "osd" + i), str(uuid.uuid4())
        key = os.path.join(folder, "keyring")
        os.mkdir(folder)
        self.run("ceph", "osd", "new", osd, i)
        self.run("ceph-authtool", "--create-keyring", key, "--gen-key", "-n", "osd." + i)
        self.run("ceph", "auth", "add", "osd." + i, "mon", "allow profile osd", "osd", "allow *", "-i", key)
        self.run("ceph-osd", "-i", i, "--mkfs", "--osd-uuid", osd)
        self._daemon("osd" + i, "ceph-osd", "-i", i, "-f")

    def _daemon(self, name, *args):
        self.started[name] = args
        log = open(os.path.join(self.dir, name + ".out"), "w")
        self.daemons[name] = subprocess.Popen(args, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()

    def signal(self, name, number):
        """Sends a signal to the monitor ("mon") or all OSDs ("osd"), which answer again after SIGCONT."""
        for n, p in self.daemons.items():
            if n.startswith(name) and number == signal.SIGSTOP:
                stop_process(p.pid)
            elif n.startswith(name):
                os.kill(p.pid, number)
        if name == "osd" and number == signal.SIGCONT:
            self._wake()

    def _wake(self):
        """A placement group whose OSD stood still can stay "laggy", and answers nothing any more: then the OSDs start again."""
        try:
            self.run("rados", "-p", "rbd", "bench", "1", "write", "-b", "4096", "-t", "16", limit=5)
        except subprocess.TimeoutExpired:
            for n in [n for n in self.daemons if n.startswith("osd")]:
                self.kill(n)
                self.restart(n)

    def kill(self, name):
        """Kills the monitor or one OSD ("osd0")."""
        self.daemons[name].kill()
        self.daemons[name].wait()

    def restart(self, name):
        self._daemon(name, *self.started[name])

    def is_clean(self):
        """Whether all copies of all objects are there."""
        for pg in range(8):
            try:
                text = self.run("ceph", "--connect-timeout", "5", "pg", "1.%d" % pg, "query", limit=10, check=False).text
            except subprocess.TimeoutExpired:
                return False
            if '"state": "active+clean"' not in text:
                return False
        return True

    def create(self, image, size="64M", *more):
        self.run("rbd", "create", "-s", size, image, *more)

    def lockers(self, image):
        """Returns the locks of an image, as rbd lock list prints them."""
        return json.loads(self.run("rbd", "lock", "list", image, "--format", "json").text or "[]")

    @contextlib.contextmanager
    def full(self):
        """The OSD counts as full meanwhile."""
        before = {"nearfull": "0.85", "backfillfull": "0.9", "full": "0.95"}
        for kind in before:
            self.run("ceph", "osd", "set-%s-ratio" % kind, "0.0001")
        until(lambda: ",full," in self.run("ceph", "osd", "dump").text, "the pool is full", 60)
        try:
            yield
        finally:
            for kind, ratio in reversed(before.items()):
                self.run("ceph", "osd", "set-%s-ratio" % kind, ratio)
            until(lambda: ",full," not in self.run("ceph", "osd", "dump").text, "the pool has room", 60)

    def stop(self):
        for p in self.daemons.values():
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
                p.wait()
        self.daemons = {}
        if self.leaks is None:
            os.environ.pop("LSAN_OPTIONS", None)
        shutil.rmtree(self.dir, ignore_errors=True)


if __name__ == "__main__":  # serves a cluster until the input ends
    begin = time.monotonic()
    c = Cluster()
    print("CEPH_CONF=%s (%.1f s)" % (c.conf, time.monotonic() - begin), flush=True)
    try:
        input()
    except EOFError:
        pass
    c.stop()
