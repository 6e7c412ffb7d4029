#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iserctl import: the examples of tests/vectors/import and of Debian's packages, the command line, and
the numbers that tgt-admin gives LUNs.

IMPORT=write tests/interop/run.py --build b test_import   writes the expected results of tests/vectors/import
"""
import glob
import gzip
import json
import os
import random
import re
import socket
import subprocess
import time
import unittest

from harness import Folder, ISER, ISERCTL, ISERD, io, main, need, patience, quiet_port, run, sparse

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(HERE, "../vectors/import")
EXAMPLES = "/usr/share/doc/tgt/examples"


def run_import(*args, status=0, folder=None):
    """Returns standard output and standard error."""
    done = subprocess.run([ISERCTL, "import", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=patience(20), cwd=folder)
    out, err = done.stdout.decode(), done.stderr.decode()
    if done.returncode != status:
        raise AssertionError("iserctl import ended with %d: %s" % (done.returncode, err))
    return out, err


def check_file(case, path, text):
    """iserctl check accepts the result, with files for its stores; secrets that iserd would refuse are the administrator's to choose."""
    files = {}

    def store(m):
        file = files.setdefault(m.group(3), "%s.%d" % (path, len(files)))
        sparse(file, 1 << 20)
        return "store: %s%s%s" % (m.group(1), m.group(2) or "", file)

    text = re.sub(r'store: ("?)(cd:|scsi:)?(/(?:[^\\",}\n]|\\.)+)', store, text)
    with open(path, "w") as f:
        f.write(text)
    for secret in re.findall(r"secret-file: ([^,}\n]+)", text):
        secret = secret.strip('"')
        if not os.path.exists(secret):
            with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
                f.write("secret for %s\n" % os.path.basename(secret))
    done = subprocess.run([ISERCTL, "check", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=patience(20))
    errors = [line for line in done.stdout.decode().split("\n") if not re.search(": warning: .*: this machine has no such address; |: not a device; |: valid: |^$", line)]
    case.assertEqual(errors, [], text)


def check_result(case, text):
    """The result has the sections of a configuration file and valid references."""
    try:
        import yaml
    except ImportError:
        return
    c = yaml.safe_load(text)
    case.assertEqual(c["version"], 1)
    groups = {"any", "none"} | set(c.get("auth-groups", {}))
    for t in c["targets"].values():
        case.assertIn(t["auth-group"], groups)
        for p in t["portal-groups"]:
            case.assertIn(p, c["portal-groups"])
        for luns in [t["luns"]] + [m["luns"] for m in t.get("maps", [])]:
            for number, unit in luns.items():
                case.assertIsInstance(number, int)
                case.assertIn(unit["backstore"] if isinstance(unit, dict) else unit, c["backstores"])
    for p in c.get("portal-groups", {}).values():
        case.assertIn(p.get("discovery-auth", "any"), groups)
    tags = [p["tag"] for p in c.get("portal-groups", {}).values()]
    case.assertEqual(len(tags), len(set(tags)))


class Examples(Folder):
    maxDiff = None

    def examples(self):
        """Returns the examples of the tree and of tgt's package."""
        names = glob.glob(VECTORS + "/*.conf") + glob.glob(VECTORS + "/*.json") + glob.glob(EXAMPLES + "/targets.conf*")
        return sorted(n for n in names if not n.endswith(".gz"))

    def test_check_accepts(self):
        for path in self.examples():
            with self.subTest(os.path.basename(path)):
                secrets = self.path(os.path.basename(path))
                os.mkdir(secrets)
                out, _ = run_import("--secrets", secrets, path)
                check_file(self, self.path("iserd.yaml"), out)

    def test_check_accepts_changed_examples(self):
        """Whatever import accepts, check accepts: with lines removed, repeated and exchanged, and with words replaced."""
        rng = random.Random(14)
        accepted = 0
        for path in self.examples() * 8:
            with open(path) as f:
                lines = f.read().split("\n")
            for _ in range(rng.randrange(1, 6)):
                i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
                how = rng.randrange(4)
                if how == 0:
                    del lines[i:i + 1]
                elif how == 1:
                    lines.insert(j, lines[i])
                elif how == 2:
                    lines[i], lines[j] = lines[j], lines[i]
                else:
                    lines[i] = re.sub(r"\w+", rng.choice(("0", "-1", "65536", "any", "none", "x" * 300, "a:b", "[")), lines[i], count=1)
                lines = lines or [""]
            name = self.path("changed")
            with open(name, "w") as f:
                f.write("\n".join(lines))
            secrets = self.path("secrets%d" % accepted)
            os.makedirs(secrets, exist_ok=True)
            kind = "tgt" if "targets.conf" in path else os.path.basename(path)[:3]
            done = subprocess.run([ISERCTL, "import", "--format", kind, "--secrets", secrets, name], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience(20))
            self.assertIn(done.returncode, (0, 1), done.stderr)
            if done.returncode == 0:
                check_file(self, self.path("iserd.yaml"), done.stdout.decode())
                accepted += 1
            else:
                self.assertRegex(done.stderr.decode(), r"changed:\d+: .+")
        self.assertGreater(accepted, 10)

    def test_vectors(self):
        """Each example gives the file NAME.yaml and the notes NAME.notes."""
        names = sorted(glob.glob(VECTORS + "/*.conf") + glob.glob(VECTORS + "/*.json"))
        self.assertGreater(len(names), 3)
        for path in names:
            out, err = run_import(os.path.basename(path), folder=VECTORS)
            check_result(self, out)
            for text, ending in ((out, ".yaml"), (err, ".notes")):
                expected = os.path.splitext(path)[0] + ending
                if os.environ.get("IMPORT") == "write":
                    with open(expected, "w") as f:
                        f.write(text)
                with self.subTest(os.path.basename(expected)), open(expected) as f:
                    self.assertEqual(text, f.read())

    @unittest.skipUnless(os.path.isdir(EXAMPLES), "the examples of tgt are not installed: install tgt")
    def test_examples_of_tgt(self):
        names = [n for n in glob.glob(EXAMPLES + "/targets.conf*") if not n.endswith(".gz")]
        self.assertTrue(names)
        for path in names:
            with self.subTest(os.path.basename(path)):
                out, err = run_import(path)
                check_result(self, out)
                self.assertRegex(err, r"import: \d+ targets")
        out, _ = run_import(EXAMPLES + "/targets.conf.example")
        self.assertEqual(len(re.findall(r'^  "iqn', out, re.M)), 9)
        self.assertIn("luns: {10: somedevice}", out)


@need("tgt-admin")
class TgtAdmin(Folder):
    def test_same_lun_numbers(self):
        """tgt-admin --pretend prints the numbers that it would give."""
        for name in ("a", "b", "c", "d", "z"):
            sparse(self.path(name), 1 << 20)
        with open(self.path("conf"), "w") as f:
            f.write("".join("<target iqn.2026-01.com.example:t%d>\nallow-in-use yes\n%s</target>\n" % (
                i, body.replace("@", self.dir + "/")) for i, body in enumerate((
                    "backing-store @z\nbacking-store @a\nbacking-store @c\n",
                    "backing-store @d\n",
                    "<backing-store @a>\nvendor_id X\n</backing-store>\n<backing-store @b>\nlun 1\n</backing-store>\n"
                    "<backing-store @c>\nlun 5\n</backing-store>\n",
                    "backing-store @b\nlun 12\n"))))
        done = subprocess.run(["tgt-admin", "--pretend", "--execute", "-c", self.path("conf")],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=patience(20))
        theirs, target = {}, None
        for line in done.stdout.decode().splitlines():
            if m := re.match(r"# Adding target: (\S+)", line):
                target = m.group(1)
            if m := re.search(r"--op new --mode logicalunit .*--lun (\d+) -b \"([^\"]+)\"", line):
                theirs.setdefault(target, {})[int(m.group(1))] = m.group(2)
        if not theirs:
            self.skipTest("tgt-admin does not run here: " + done.stdout.decode()[-200:])
        out, _ = run_import(self.path("conf"))
        stores = dict(re.findall(r"^  \"?([a-z0-9-]+)\"?: \{store: ([^,}]+)", out, re.M))
        ours = {}
        for target, luns in re.findall(r'^  "(iqn[^"]+)":\n(?:    .*\n)*?    luns: \{(.*)\}', out, re.M):
            ours[target] = {int(n): stores[u] for n, u in re.findall(r"(\d+): \"?([a-z0-9-]+)", luns)}
        self.assertEqual(ours, theirs)


def answers(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Servers(Folder):
    """Servers of an imported file, and what initiators see there."""
    TARGETS = ()
    LUNS = (0, 1)
    INITIATORS = ("iqn.2026-01.com.example:node1", "iqn.2026-01.com.example:node2")
    CHAP = ()  # the targets at which each account is tried
    ACCOUNTS = ("",)

    def start(self, args, port):
        log = open(self.path("log"), "ab")
        self.addCleanup(log.close)
        proc = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(proc.wait)
        self.addCleanup(proc.kill)
        end = time.monotonic() + patience(10)
        while not answers(port):
            if proc.poll() is not None or time.monotonic() > end:
                with open(self.path("log")) as f:
                    self.skipTest("%s does not run here: %s" % (args[0], f.read()[-200:]))
            time.sleep(0.05)
        return proc

    def serve(self, path):
        """Starts iserd with the imported file; returns its port."""
        os.mkdir(self.path("secrets"))
        out, _ = run_import("--secrets", self.path("secrets"), path)
        port = quiet_port()
        with open(self.path("iserd.yaml"), "w") as f:
            f.write("daemon: {io: %s, penalty: \"0:0\", login-rate: 0}\n" % io() +
                    re.sub(r"listen: .*", 'listen: ["127.0.0.1:%d"]' % port, out))
        self.start([ISERD, "--config", self.path("iserd.yaml")], port)
        return port

    def seen(self, port):
        """Returns {(target, initiator, account): {LUN: its blocks}}."""
        table = {}
        for target in self.TARGETS:
            for initiator in self.INITIATORS:
                for account in self.ACCOUNTS if target in self.CHAP else ("",):
                    luns = {}
                    for lun in self.LUNS:
                        done = subprocess.run(["iscsi-readcapacity16", "-i", initiator, "iscsi://%s127.0.0.1:%d/%s:%s/%d" % (
                            account, port, "iqn.2026-01.com.example", target, lun)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience(20))
                        m = re.search(rb"BLOCK ADDRESS:(\d+)", done.stdout)
                        if m:
                            luns[lun] = int(m.group(1)) + 1
                    table[target, initiator, account] = luns
        return table


@need("tgtd", "tgt-admin", "tgtadm", "iscsi-readcapacity16")
class SameAsTgt(Servers):
    """tgtd with a targets.conf, and iserd with the imported file: the same initiators see the same LUNs, except that names without
    addresses have no effect in tgt, and that iserd needs the address as well as the name. iserd never admits more."""

    CONF = """
<target iqn.2026-01.com.example:open>
    backing-store @open.img
</target>
<target iqn.2026-01.com.example:named>
    backing-store @b.img
    backing-store @a.img
    initiator-address ALL
    initiator-name iqn.2026-01.com.example:node1
</target>
<target iqn.2026-01.com.example:chap>
    <backing-store @c.img>
        lun 7
    </backing-store>
    incominguser alice first-secret-0001
    incominguser bob second-secret-002
</target>
<target iqn.2026-01.com.example:near>
    backing-store @d.img
    initiator-address 127.0.0.0/8
</target>
<target iqn.2026-01.com.example:either>
    backing-store @f.img
    initiator-address 192.0.2.0/24
    initiator-name iqn.2026-01.com.example:node1
</target>
<target iqn.2026-01.com.example:far>
    backing-store @e.img
    initiator-address 192.0.2.0/24
</target>
"""
    TARGETS = ("open", "named", "chap", "near", "either", "far")
    CHAP = ("chap",)
    LUNS = (1, 2, 7)
    ACCOUNTS = ("", "alice%first-secret-0001@", "bob%second-secret-002@", "alice%second-secret-002@", "carol%first-secret-0001@")

    def naa(self, port, target):
        """The NAA identifier of 16 bytes of LUN 1 (VPD page 83h, SPC-4 §7.8.6.6.6)."""
        text = run([ISER, "info", "iscsi://127.0.0.1:%d/iqn.2026-01.com.example:%s/1" % (port, target)]).text
        return re.search(r"01030010(6[0-9a-f]{31})", text).group(1)

    def test_same_name(self):
        """Initiators know the disk by the NAA identifier that tgt makes of scsi_id."""
        conf = ""
        for name, scsi_id in (("a", "volume-11111111-2222-3333-4444-555555555555"), ("b", "12345678-x"), ("c", "IET-0001BEEF0001")):
            sparse(self.path(name + ".img"), 1 << 20)
            conf += "<target iqn.2026-01.com.example:%s>\nbacking-store %s.img\nscsi_id %s\n</target>\n" % (name, self.path(name), scsi_id)
        with open(self.path("conf"), "w") as f:
            f.write(conf)
        port, control = quiet_port(), str(random.randrange(20000, 30000))
        self.start(["tgtd", "-f", "-C", control, "--iscsi", "portal=127.0.0.1:%d" % port], port)
        subprocess.run(["tgt-admin", "-C", control, "--execute", "-c", self.path("conf")], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience(60))
        theirs = [self.naa(port, name) for name in "abc"]
        out, _ = run_import(self.path("conf"))
        port = quiet_port()
        with open(self.path("iserd.yaml"), "w") as f:
            f.write("daemon: {io: %s}\n" % io() + re.sub(r"listen: .*", 'listen: ["127.0.0.1:%d"]' % port, out))
        self.start([ISERD, "--config", self.path("iserd.yaml")], port)
        self.assertEqual([self.naa(port, name) for name in "abc"], theirs)

    def test_who_sees_what(self):
        for i, name in enumerate(("open", "a", "b", "c", "d", "e", "f")):
            sparse(self.path(name + ".img"), (i + 1) << 20)
        with open(self.path("conf"), "w") as f:
            f.write(self.CONF.replace("@", self.dir + "/"))
        port, control = quiet_port(), str(random.randrange(20000, 30000))
        self.start(["tgtd", "-f", "-C", control, "--iscsi", "portal=127.0.0.1:%d" % port], port)
        subprocess.run(["tgt-admin", "-C", control, "--execute", "-c", self.path("conf")], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience(60))
        theirs = self.seen(port)
        ours = self.seen(self.serve(self.path("conf")))
        # of two initiators: open, named and near admit both, either admits one, chap both with each of two accounts
        self.assertEqual(sum(1 for luns in theirs.values() if luns), 2 + 2 + 2 + 1 + 2 * 2)
        for (target, initiator, account), luns in theirs.items():
            narrower = target == "either" or (target == "named" and initiator.endswith("node2"))
            with self.subTest(target, initiator=initiator, account=account):
                self.assertEqual(ours[target, initiator, account], {} if narrower else luns)


@need("iscsi-readcapacity16")
class SameAsLio(Servers):
    """An account of an ACL is for its initiator, and in demo mode what the ACL maps is for the account."""
    TARGETS = CHAP = ("acls", "demo", "open")
    ACCOUNTS = ("", "alice%first-secret-0001@", "bob%second-secret-002@", "carol%third-secret-0003@")

    @staticmethod
    def acl(node, user, secret, lun):
        return {"node_wwn": "iqn.2026-01.com.example:" + node, "chap_userid": user, "chap_password": secret,
                "attributes": {"authentication": 1}, "mapped_luns": [{"index": 0, "tpg_lun": lun, "write_protect": False}]}

    def tpg(self, name, attributes, acls, **more):
        luns = [{"index": i, "storage_object": "/backstores/fileio/%d" % i} for i in (0, 1)]
        return {"fabric": "iscsi", "wwn": "iqn.2026-01.com.example:" + name, "tpgs": [dict(
            more, tag=1, enable=True, attributes=attributes, luns=luns, node_acls=acls,
            portals=[{"ip_address": "127.0.0.1", "port": 3260}])]}

    def test_who_sees_what(self):
        alice, bob = self.acl("node1", "alice", "first-secret-0001", 1), self.acl("node2", "bob", "second-secret-002", 0)
        demo = {"generate_node_acls": 1, "demo_mode_write_protect": 1}
        for i in (0, 1):
            sparse(self.path(str(i)), (i + 1) << 20)
        with open(self.path("saveconfig.json"), "w") as f:
            json.dump({"storage_objects": [{"plugin": "fileio", "name": str(i), "dev": self.path(str(i)), "size": (i + 1) << 20} for i in (0, 1)],
                       "targets": [self.tpg("acls", {"authentication": 1}, [alice, bob]),
                                   self.tpg("demo", dict(demo, authentication=1), [alice], chap_userid="carol", chap_password="third-secret-0003"),
                                   self.tpg("open", dict(demo, authentication=0), [alice])]}, f)
        seen = {who: luns for who, luns in self.seen(self.serve(self.path("saveconfig.json"))).items() if luns}
        small, large = 2048, 4096
        node1, node2 = self.INITIATORS
        _, alice, bob, carol = self.ACCOUNTS
        self.assertEqual(seen, {
            ("acls", node1, alice): {0: large}, ("acls", node2, bob): {0: small},
            ("demo", node1, alice): {0: large}, ("demo", node2, carol): {0: small, 1: large},
            ("demo", node1, carol): {0: small, 1: large},  # which the account may see by each other name
            ("open", node1, alice): {0: large}})  # iserd demands CHAP of all


class CommandLine(Folder):
    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def test_format(self):
        for text, word in (("\n# c\n<target iqn.2026-01.com.example:a>\n</target>\n", "tgt"),
                           ("include /nothing/*\n", "tgt"), ("default-driver iscsi\n", "tgt"),
                           (" {\"targets\": []}", "lio"), ("# c\n\nauth-group a { }\n", "ctl"),
                           ("portal-group {\n}\n", "ctl"), ("{ \"portal-group\" { } }", "ctl")):
            out, _ = run_import(self.write("f", text))
            self.assertIn("of the format %s\n" % word, out)
        _, err = run_import(self.write("f", "hello world\n"), status=1)
        self.assertIn("format not recognized; give --format tgt, lio or ctl", err)
        out, _ = run_import("--format", "tgt", self.write("f", "# nothing\n"))
        self.assertIn("targets: {}", out)

    def test_bad_files(self):
        _, err = run_import(self.path("missing"), status=1)
        self.assertIn("missing: No such file", err)
        _, err = run_import(self.dir, status=1)
        self.assertIn("is a directory", err)
        name = self.write("f", "<target iqn.2026-01.com.example:a>\n\n")
        out, err = run_import(name, status=1)
        self.assertEqual(out, "")
        self.assertIn("f:1: <target iqn.2026-01.com.example:a>: the block has no end", err)
        _, err = run_import(self.write("f", "include /dev/zero\n"), status=1)
        self.assertIn("f:1: include /dev/zero: not a regular file", err)
        with open(self.path("big"), "w") as f:
            f.write("# comment\n" * (17 << 20 >> 3))
        _, err = run_import("--format", "tgt", self.path("big"), status=1)
        self.assertIn("longer than 16 MiB", err)

    def test_include(self):
        os.mkdir(self.path("d"))
        for n in "ab":
            self.write("d/%s.conf" % n, "<target iqn.2026-01.com.example:%s>\nfoo\n</target>\n" % n)
        for pattern in ("/d/*.conf", "/d", "/d/a.conf\ninclude %s/d/b.conf" % self.dir):
            out, err = run_import(self.write("f", "include %s%s\n" % (self.dir, pattern)))
            self.assertRegex(out, r'(?s)"iqn.2026-01.com.example:a":.*"iqn.2026-01.com.example:b":')
            self.assertIn("d/b.conf:2: iqn.2026-01.com.example:b: foo:", err)

    def test_include_of_ucl(self):
        with open(self.path("x.conf"), "wb") as f:
            f.write(b"\xef\xbb\xbftarget \"iqn.2026-01.com.example:x\" { auth-group = no-authentication }\n")
        for line in ('.include "%s/x.conf"' % self.dir, ".include(glob=true) %s/*.conf" % self.dir):
            out, _ = run_import(self.write("f", line + "\n"))
            self.assertIn('"iqn.2026-01.com.example:x":\n    auth-group: any', out)

    def test_byte_order_marks(self):
        """A mark of UTF-8 is skipped; UTF-16 is refused."""
        for text, word in (("<target iqn.2026-01.com.example:a>\n</target>\n", "tgt"), ('{"targets": []}', "lio"),
                           ("auth-group a { }\n", "ctl"), ("lun { }\n", "ctl")):
            with open(self.path("f"), "wb") as f:
                f.write(text.encode("utf-8-sig"))
            out, _ = run_import(self.path("f"))
            self.assertIn("of the format %s\n" % word, out)
            with open(self.path("f"), "wb") as f:
                f.write(text.encode("utf-16"))
            _, err = run_import(self.path("f"), status=1)
            self.assertIn("f: is UTF-16; convert it", err)
        with open(self.path("f"), "wb") as f:
            f.write(gzip.compress(b"{}"))  # as targetcli keeps old files
        _, err = run_import(self.path("f"), status=1)
        self.assertIn("f: is compressed; unpack it by gunzip first", err)

    def test_patterns_are_bounded(self):
        """A pattern that would look at all files, or at very many names, ends."""
        for pattern, why in (("/proc" + "/*?" * 7, "looks at too many files"), ("/" + "{a,b}" * 30, "too many braces"),
                             ("/{%s}" % ("," * 5000), "too many braces")):
            _, err = run_import(self.write("f", "include %s\n" % pattern), status=1)
            self.assertIn(why, err)
        for i in range(1030):
            self.write("many%d" % i, "")
        _, err = run_import(self.write("f", "include %s/many*\n" % self.dir), status=1)
        self.assertIn("more than 1024 included files", err)
        self.write("big", "# comment\n" * 800000)
        _, err = run_import(self.write("f", "include %s/big\n" % self.dir * 20), status=1)
        self.assertIn("the included files are longer than 64 MiB", err)

    def test_sizes(self):
        """A file that is longer than its LUN shows more to initiators than before."""
        sparse(self.path("a.img"), 1 << 20)
        text = json.dumps({"storage_objects": [{"plugin": "fileio", "name": name, "dev": self.path(name), "size": size, "write_back": True}
                                               for name, size in (("a.img", 4096), ("b.img", 4096))]})
        _, err = run_import(self.write("f", text))
        self.assertIn("a.img: has 1048576 bytes, of which the file gives the LUN 4096", err)
        self.assertIn("b.img: not compared", err)
        _, err = run_import(self.write("f", text.replace("4096", "1048576")))
        self.assertNotIn("has 1048576", err)

    def test_secrets(self):
        name = self.write("f", "<target iqn.2026-01.com.example:a>\nincominguser u secretpass12\n</target>\n")
        _, err = run_import(name)
        self.assertIn("write it to /etc/iserd/secrets/a.1.secret with mode 0600", err)
        _, err = run_import("--secrets", self.path("s"), name, status=1)
        self.assertIn("No such file", err)
        os.mkdir(self.path("s"))
        out, err = run_import("--secrets", "s", name, folder=self.dir)
        path = self.path("s/a.1.secret")
        self.assertIn("secret-file: %s" % path, out.replace('"', ""))
        self.assertEqual(os.stat(path).st_mode & 0o7777, 0o600)
        with open(path) as f:
            self.assertEqual(f.read(), "secretpass12\n")
        out, err = run_import("--secrets", "s", name, folder=self.dir, status=1)
        self.assertEqual(out, "")
        self.assertIn("File exists; give an empty directory", err)

    def test_usage(self):
        run_import(status=2)
        run_import("a", "b", status=2)
        _, err = run_import("--format", "yaml", "a", status=2)
        self.assertIn("--format yaml: must be one of auto, tgt, lio, ctl", err)


if __name__ == "__main__":
    main()
