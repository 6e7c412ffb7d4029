# SPDX-License-Identifier: BSD-2-Clause
"""iserd --config: many targets and their access rules, in each of the three ways."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from harness import ISER, ISERCTL, ISERD, WAYS, Daemon, Folder, Wire, io, main, need, over, patience, quiet_port, run, sparse, until
from test_nbd import Bridge

IQN = "iqn.2026-01.com.example:"
ALICE, BOB, MUTUAL = "the secret of alice", "the secret of bob", "the secret of the target"


class Configured(Daemon):
    """An iserd with a configuration file."""

    def __init__(self, path, urls, *more):
        self.log = tempfile.TemporaryFile()
        self.proc = subprocess.Popen([ISERD, "--config", path, *more], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=self.log)
        self.urls = []
        self._read_urls(urls)

    def url_of(self, target, lun=0, nth=0):
        return [u for u in self.urls if u.split("/")[3] == IQN + target and u.endswith("/%d" % lun)][nth]

    def portal_of(self, target, nth=0):
        return self.url_of(target, nth=nth).split("/")[2]


class Config(Folder):
    def setUp(self):
        super().setUp()
        self.ctl = self.path("ctl")

    def secret(self, name, text, mode=0o600):
        path = self.path(name)
        with open(path, "w") as f:
            os.fchmod(f.fileno(), mode)
            f.write(text + "\n")
        return path

    def write(self, text, name="iserd.yaml"):
        path = self.path(name)
        with open(path, "w") as f:
            f.write("version: 1\ndaemon: {control: %s, io: %s}\n" % (self.ctl, io()) + text)
        return path

    def start(self, text, urls):
        d = Configured(self.write(text), urls)
        self.addCleanup(d.stop)
        return d

    def iserctl(self, *args, status=0):
        done = run([ISERCTL, "-s", self.ctl, *args], check=False)
        self.assertEqual(done.returncode, status, done.text)
        return done.text


class Named(Wire):
    """A raw initiator of this name."""

    def __init__(self, daemon, name):
        super().__init__(daemon)
        self.KEYS = ("InitiatorName=" + IQN + name,) + self.KEYS[1:]


class Redirects(Config):
    """targets.NAME.redirects: RFC 7143 §11.13.5."""
    TARGETS = "backstores: {d: {store: \"ram:8M\", serial: %s}}\nportal-groups: {p: {listen: \"127.0.0.1:0\"}}\n" \
              "targets:\n  %sdisk: {auth-group: any, portal-groups: [p], luns: {0: d}%s}\n"

    def serve(self, serial, more=""):
        self.ctl = self.path("ctl-" + serial)
        d = Configured(self.write(self.TARGETS % (serial, IQN, more), name=serial + ".yaml"), 1)
        self.addCleanup(d.stop)
        return d

    def serial(self, d, initiator="iqn.2026-01.com.example:a", *more):
        done = run(["iscsi-inq", "-i", initiator, "-e", "1", "-c", "128", d.url], check=False)
        return re.sub(r".*\[(.*)\].*", r"\1", done.text.strip().splitlines()[-1])

    @need("iscsi-inq")
    def test_initiators_and_peers(self):
        """libiscsi and libiser log in at the other place; other initiators stay; SendTargets shows the target as ever."""
        there = self.serve("there")
        here = self.serve("here", ", redirects: [{to: \"%s\", initiators: [%sa*]}]" % (there.portal, IQN))
        self.assertIn("there", self.serial(here))
        self.assertIn("here", self.serial(here, "iqn.2026-01.com.example:b"))
        for name, where in (("a1", "there"), ("b1", "here")):
            text = run([ISER, "info", "--initiator", IQN + name, here.url]).text
            self.assertIn(where, text)
            rdma = run([ISER, "info", "--initiator", IQN + name, here.url.replace("iscsi", "iser") + "?start=rdma"]).text
            self.assertIn(where, rdma)
        self.assertIn(IQN + "disk", run([ISER, "ls", "--initiator", IQN + "a", "iscsi://" + here.portal]).text)

    def test_login_response(self):
        """The bytes: status 0101h or 0102h, TargetAddress without a tag (§13.8); the same address at each login."""
        for permanent, detail in ((False, 1), (True, 2)):
            d = self.serve("x%d" % detail, ", redirects: [{to: [h1.example, h2.example:860, \"[2001:db8::1]:3261\"], permanent: %s}]" % str(permanent).lower())
            seen = {}
            for name in "abcdefghijklmnopqrst" + "ab":
                w = Named(d, name)
                _, head, data = w.login()
                w.close()
                keys = dict(k.split("=") for k in data.decode().split("\0") if k)
                self.assertEqual(head[36:38], bytes((1, detail)))
                self.assertEqual(seen.setdefault(name, keys["TargetAddress"]), keys["TargetAddress"])
            self.assertEqual(set(seen.values()), {"h1.example", "h2.example:860", "[2001:db8::1]:3261"})
            self.assertIn("LOGIN_REDIRECTED", d.messages())
            self.assertNotIn("LOGIN_FAILED", d.messages())

    def test_live(self):
        """A redirection that apply brings concerns new logins only."""
        there = self.serve("there")
        here = self.serve("here")
        self.assertIn("here", run([ISER, "info", here.url]).text)
        self.write(self.TARGETS % ("here", IQN, ", redirects: [{to: \"%s\"}]" % there.portal), name="here.yaml")
        run([ISERCTL, "-s", self.ctl, "apply"])
        self.assertIn("there", run([ISER, "info", here.url]).text)

    def test_bad_files(self):
        for text, said in (("[{}]", "to"), ("[{to: []}]", "to"), ("[{to: \"a b\"}]", "not an address"), ("[{to: \"h:0\"}]", "not an address"),
                           ("[{to: \"h:99999\"}]", "not an address"), ("[{to: \"h:%03260d\"}]" % 3260, "not an address"), ("[{to: \"h,1\"}]", "not an address"), ("[{to: \"[::1\"}]", "not an address"),
                           ("[{to: h, initiators: []}]", "names nothing"), ("[{to: h, initiators: [nogroup]}]", "nogroup"),
                           ("[{to: h, permanent: 3}]", "permanent"), ("[{too: h}]", "did you mean")):
            path = self.write(self.TARGETS % ("x", IQN, ", redirects: " + text))
            done = run([ISERCTL, "check", path], check=False)
            self.assertEqual(done.returncode, 1, text)
            self.assertIn(said, done.text)


class Bound(Config):
    """Accounts of certain initiators, and maps of certain accounts."""

    def login(self, d, name, user, secret, sizes):
        """sizes: those of the units that the initiator sees; None: the login fails."""
        url = "iscsi://%s%%%s@%s" % (user, secret, d.portal)
        done = run([ISER, "ls", "--json", "-i", IQN + name, url], check=False)
        self.assertEqual(done.returncode == 0, sizes is not None, done.text)
        if sizes is not None:
            self.assertEqual([u["bytes"] >> 20 for u in json.loads(done.text)[0]["units"]], sizes, done.text)

    def test_accounts_and_maps(self):
        text = ("backstores: {a: {store: \"ram:1M\"}, b: {store: \"ram:2M\"}}\nportal-groups: {p: {listen: \"127.0.0.1:0\", discovery-auth: g}}\n"
                "auth-groups:\n  g:\n    accounts:\n"
                "    - {user: alice, secret-file: %s, initiators: [%sA*]}\n    - {user: bob, secret-file: %s%%s}\ntargets:\n"
                "  %sdisk: {auth-group: g, portal-groups: [p], luns: {0: a}, maps: [{initiators: \"*\", account: bob, luns: {0: b}}]}\n" % (
                    self.secret("alice", ALICE), IQN, self.secret("bob", BOB), IQN))
        d = self.start(text % "", 1)
        for name, sizes in (("a1", [1]), ("A2", [1]), ("b1", None)):
            self.login(d, name, "alice", ALICE, sizes)
            self.login(d, name, "bob", BOB, [2])
        # bound while iserd runs: a session of another initiator ends
        self.iserctl("auth", "set", "g", "accounts-={user: bob, secret-file: %s}" % self.path("bob"),
                     "accounts+={user: bob, secret-file: %s, initiators: %sb*}" % (self.path("bob"), IQN))
        self.login(d, "a1", "bob", BOB, None)
        self.login(d, "b1", "bob", BOB, [2])
        self.login(d, "c1", "bob", BOB, None)
        self.assertIn("no account for this initiator name", d.messages())
        self.assertIn("no account of the target's auth group", self.iserctl("map", "set", IQN + "disk/1", "account=carol", status=1))


class Algorithms(Config):
    """auth-groups.NAME.algorithms and the URL key auth (RFC 7143 §12.1.3)."""

    def serve(self, algorithms):
        return self.start("backstores: {d: {store: \"ram:8M\"}}\nportal-groups: {p: {listen: \"127.0.0.1:0\"}}\n"
                          "auth-groups: {g: {accounts: [{user: alice, secret-file: %s}]%s}}\ntargets:\n"
                          "  %sdisk: {auth-group: g, portal-groups: [p], luns: {0: d}}\n" % (
                              self.secret("alice", ALICE), algorithms and ", algorithms: " + algorithms, IQN), 1)

    def login(self, d, auth, status=0):
        url = d.url.replace("//", "//alice%%%s@" % ALICE) + (auth and "?auth=" + auth)
        done = run([ISER, "info", url], check=False)
        self.assertEqual(done.returncode == 0, status == 0, done.text)
        return done.text

    @need("iscsi-inq")
    def test_forbidden(self):
        """An initiator that offers forbidden algorithms only is refused, libiscsi too; nothing else changes."""
        d = self.serve("[sha3-256, sha256]")
        self.login(d, "")
        self.login(d, "md5,sha3-256")
        self.assertIn("no CHAP algorithm in common", self.login(d, "md5", 1) + d.messages())
        self.login(d, "sha1,md5", 1)
        inq = run(["iscsi-inq", d.url.replace("//", "//alice%%%s@" % ALICE)], check=False)
        self.assertNotEqual(inq.returncode, 0)  # it offers MD5 alone

    def test_all(self):
        d = self.serve("")
        for auth in ("md5", "sha1", "sha256", "sha3-256", "sha1,sha256", ""):
            self.login(d, auth)


class Files(Config):
    """Files that are refused, without an iserd that serves."""

    GOOD = "portal-groups: {p: {listen: 127.0.0.1:0}}\n"

    def refused(self, text, *words):
        path = self.write(text)
        for command in ([ISERD, "--config", path], [ISERD, "--config", path, "--check"], [ISERCTL, "check", path]):
            done = run(command, check=False)
            self.assertIn(done.returncode, (1, 2), command)
            for word in words:
                self.assertIn(word, done.text)
            self.assertRegex(done.text, r"(?m)^(iserd: )?%s:\d+:\d+: " % path)
        return done.text

    def test_empty_lists_admit_nobody_by_accident(self):
        """An empty list of whom to admit is refused: its writer may have meant none, and it would admit every initiator."""
        for field in ("initiators: []", "addresses: []", "accounts: []", "accounts: ", "algorithms: []"):
            done = run([ISERCTL, "check", self.write("auth-groups: {g: {%s}}\n" % field)], check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("iserd.yaml:3:", done.text)
            self.assertIn("auth group g: %s: names nothing" % field.split(":")[0], done.text)

    def test_errors(self):
        """All errors of a file, with the nearest valid name."""
        text = self.refused("daemon2: {}\nportal-groups: {p: {lsiten: 3260}}\ntargets:\n  %sa: {auth-group: any, "
                            "portal-groups: q, luns: {0: x}}\n" % IQN, "did you mean daemon?", "did you mean listen?",
                            "q: no such portal group", "x: no such backstore")
        self.assertEqual(len(text.splitlines()), 4)

    def test_good(self):
        path = self.write(self.GOOD)
        run([ISERCTL, "check", path])
        run([ISERD, "--config", path, "--check"])

    # [RFC 7143: 9.2.1 #2]
    def test_random_secrets_rfc7143_9_2_1(self):
        """iserctl makes them, and iserd and iser take them."""
        seen = set()
        for bits, length in ((None, 22), (96, 16), (128, 22), (512, 86)):
            for _ in range(8):
                secret = run([ISERCTL, "secret"] + (["bits=%d" % bits] if bits else [])).text
                self.assertRegex(secret, "^[A-Za-z0-9_-]{%d}\n$" % length)
                seen.add(secret)
            path = self.secret("random", secret)
            with Daemon("--chap-user", "me", "--chap-secret-file", path, "ram:1M") as d:
                run([ISER, "ping", "--count", "1", d.url.replace("://", "://me%" + secret.strip() + "@")])
                self.assertNotEqual(run([ISER, "ping", "--count", "1", d.url.replace("://", "://me%" + ALICE + "@")],
                                        check=False).returncode, 0)
        self.assertEqual(len(seen), 32)
        for bad in ("bits=95", "bits=513", "bits=", "bits=x", "bits=-128", "bits=128x", "128", "length=16"):
            self.assertEqual(run([ISERCTL, "secret", bad], check=False).returncode, 2, bad)
        self.assertEqual(run([ISERCTL, "secret", "bits=128", "bits=128"], check=False).returncode, 2)

    def test_secret_that_other_users_can_read(self):
        path = self.secret("alice", ALICE, 0o644)
        text = self.refused("auth-groups: {g: {accounts: [{user: a, secret-file: %s}]}}\n" % path, path,
                            "others may read or change it")
        self.assertNotIn(ALICE, text)

    def test_one_secret_for_both_ways(self):
        path = self.secret("alice", ALICE)
        self.refused("auth-groups: {g: {accounts: [{user: a, secret-file: %s}], mutual: {user: t, secret-file: %s}}}\n"
                     % (path, path), "the two must differ")

    def test_no_file(self):
        for command in ([ISERD, "--config", "/nowhere"], [ISERCTL, "check", "/nowhere"]):
            done = run(command, check=False)
            self.assertIn("/nowhere: no such file; name", done.text)
        self.assertEqual(run([ISERD, "--config"], check=False).returncode, 2)
        self.assertEqual(run([ISERD, "--config", "/nowhere", "ram:1M"], check=False).returncode, 2)

    def test_one_image_twice(self):
        path = self.path("disk")
        with open(path, "wb") as f:
            f.truncate(1 << 20)
        done = run([ISERD, "--config", self.write("backstores: {a: {store: %s}, b: {store: %s}}\n" % (path, path))],
                   check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn("backstore b: %s: already backstore a" % path, done.text)

    def start_and_check(self, text, code, line, start, check=None):
        """iserd does not start, and says why with the place; check says so, too."""
        path = self.write(text)
        done = run([ISERD, "--config", path], check=False)
        self.assertEqual(done.returncode, code, done.text)
        self.assertRegex(done.text, r"%s:%d:\d+: " % (re.escape(path), line))
        self.assertIn(start, done.text)
        done = run([ISERCTL, "check", path], check=False)
        self.assertEqual(done.returncode, 1, done.text)
        self.assertRegex(done.text, r"(?m)^%s:%d:\d+: " % (re.escape(path), line))
        self.assertIn(check or start, done.text)

    def test_what_is_not_there(self):
        """Files, directories, users: iserd names place, noun and reason at the start; check looks before."""
        made = self.path("made")
        open(made, "wb").close()
        here = os.path.dirname(made)
        for text, code, line, start, check in (
                ("backstores:\n  b: {store: /nowhere/x}\n", 3, 4, "backstore b: /nowhere/x: no such file", None),
                ("backstores:\n  b: {store: %s}\n" % here, 3, 4, "backstore b: %s: is a directory" % here, None),
                ("backstores:\n  b: {store: \"cd:/nowhere/x\"}\n", 3, 4, "backstore b: /nowhere/x: no such file", None),
                ("backstores:\n  b: {store: %s, key: /nowhere/key}\n" % made, 3, 4, "backstore b: ", "backstore b: key: /nowhere/key: there is no")):
            with self.subTest(text=text):
                self.start_and_check(text, code, line, start, check)
        for field, code, start, check in (("control: /nowhere/a/ctl", 1, "daemon: control /nowhere/a/ctl: No such file", "there is no such directory"),
                                          ("metrics: /nowhere/a/sock", 4, "daemon: metrics /nowhere/a/sock: No such file", "there is no such directory"),
                                          ("state: /nowhere/a/state", 3, "daemon: state /nowhere/a/state: No such file", "there is no such directory"),
                                          ("user: nosuch", 2, "daemon: user nosuch: not found", None)):
            path = self.path("daemon.yaml")
            with open(path, "w") as f:
                f.write("version: 1\ndaemon:\n  %s\n" % field)
            for command, word in (([ISERD, "--config", path], start), ([ISERCTL, "check", path], check or start)):
                done = run(command, check=False)
                self.assertEqual(done.returncode, code if command[0] == ISERD else 1, done.text)
                self.assertRegex(done.text, "%s:3:3: daemon: " % re.escape(path))
                self.assertIn(word, done.text)

    def test_check_says_that_all_is_well(self):
        self.assertEqual(run([ISERCTL, "check", self.write(self.GOOD)]).text,
                         self.path("iserd.yaml") + ": valid: 0 targets, 0 backstores, 1 portal group\n")

    def test_check_fails_where_the_start_does(self):
        """With the same words, whatever the working directory: relative paths begin in the directory of the file. It only
        warns of an address or a device that is missing: it may belong to another machine or come later."""
        later = "; a start here would be refused"
        for name, size in ("zero", 0), ("odd", 700), ("disk", 1 << 20), ("open-key", 64):
            sparse(self.path(name), size)
            os.chmod(self.path(name), 0o644)
        listen = "portal-groups: {p: {listen: \"127.0.0.1:0\"}}\n"
        for text, start in (("backstores: {d: {store: nosuch}}", "/nosuch: no such file"), ("backstores: {d: {store: ./zero}}", "zero: is empty; give"),
                            ("backstores: {d: {store: odd}}", "its 700 bytes are not whole blocks of 512"),
                            ("backstores: {d: {store: \"cd:odd\"}}", "its 700 bytes are not whole blocks of 2048"),
                            ("backstores: {d: {store: /dev/nosuch}}", "/dev/nosuch: no such file; name an existing"), ("backstores: {d: {store: /dev/null}}", "neither a file nor"),
                            ("backstores: {d: {store: \"cd:/dev/nosuch\"}}", "/dev/nosuch: no such file; name an existing"),
                            ("backstores: {d: {store: \"scsi:nosuch\"}}", "/nosuch: "),
                            ("backstores: {d: {store: \"scsi:disk\"}}", "/disk: not a device; give /dev/sgN"),
                            ("backstores: {d: {store: disk, key: open-key}}", "open-key: others may read or change it; use chmod 600"),
                            ("backstores: {d: {store: disk, new-key: open-key}}", "open-key: already exists; new-key= never replaces"),
                            ("backstores: {d: {store: \"ram:8000T\"}}", "larger than the memory of this machine"),
                            ("backstores: {a: {store: disk}, b: {store: ./disk}}", "already backstore a"),
                            ("portal-groups: {q: {listen: 198.51.100.1}}", "this machine has no such address")):
            with self.subTest(text=text):
                warns = any(word in text for word in ("/dev/nosuch", "scsi:nosuch", "198.51.100.1"))
                path = self.write(text + "\n" + (listen if "portal-groups" not in text else ""))
                for command, status in ([ISERD, "--config"], None), ([ISERD, "--check", "--config"], 2), ([ISERCTL, "check"], 1):
                    done = run([os.path.abspath(command[0]), *command[1:], path], check=False, cwd="/")
                    self.assertIn(done.returncode, (3, 4) if status is None else (0,) if warns else (status,), done.text)
                    self.assertIn(start, done.text)
                    if status is not None:
                        self.assertEqual(bool(re.search("warning: .*" + later, done.text)), warns, done.text)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to give a file to another group")
    def test_check_of_a_key_of_an_own_group(self):
        """Kubernetes lets a user read a secret by the group of the pod: the start takes such a key, so does the check."""
        disk, key = sparse(self.path("disk"), 1 << 20), self.path("key")
        with open(key, "wb") as f:
            f.write(os.urandom(64))
        os.chown(key, 0, 65534)
        os.chmod(key, 0o440)
        path = self.write("backstores: {d: {store: %s, key: %s}}\nportal-groups: {p: {listen: \"127.0.0.1:0\"}}\n" % (disk, key))
        for command in [ISERCTL, "check"], [ISERD, "--check", "--config"]:
            done = run([*command, path], check=False, extra_groups=[65534])
            self.assertEqual((done.returncode, "valid: " in done.text), (0, True), done.text)
            self.assertIn("others may read or change it", run([*command, path], check=False).text)

    def test_messages_say_what_to_do(self):
        for text, place, message in (
                ("portal-groups: {p: {listen: \"127.0.0.1:99999\"}}", 3, "127.0.0.1:99999: its port is above 65535; give ADDR, ADDR:PORT"),
                ("portal-groups: {p: {listen: \"99999\"}}", 3, "99999: its port is above 65535; give"),
                ("backstores:\n  a: {store: \"ram:1M\"}\n b: {store: \"ram:1M\"}", 5, "begin the lines of one mapping in the same column"),
                ("backstores:\n  a:\n    store: \"ram:1M\"\n   read-only: yes", 6, "begin the lines of one mapping in the same column"),
                ("backstores: {a: {store: \"ram:1M\"}", 4, "a comma is missing there, or the bracket that ends"),
                ("portals: {p: {listen: \"127.0.0.1\"}}", 3, "portals: unknown field; did you mean portal-groups?"),
                ("portal-groups: {p: {address: \"127.0.0.1\"}}", 3, "address: unknown field; give one of tag, listen"),
                ("backstores: {a: {store: \"ram:64Mb\"}}", 3, "64Mb: not a size; give bytes, or a number with K")):
            with self.subTest(text=text):
                done = run([ISERCTL, "check", self.write(text + "\n")], check=False)
                self.assertEqual(done.returncode, 1, done.text)
                self.assertRegex(done.text, r"(?m)^\S*iserd.yaml:%d:\d+: " % place)
                self.assertIn(message, done.text)
        for url, message in (("127.0.0.1:3260", "give iscsi://HOST[:PORT]/IQN/LUN, as iser ls HOST[:PORT] prints it"),
                             ("iscsi://127.0.0.1:99999/%sa/0" % IQN, "the port must be a number up to 65535: '99999'")):
            self.assertIn(message, run([ISER, "info", url], check=False).text)
        disk = sparse(self.path("disk"), 1 << 20)
        suffixes = [s["name"] for s in json.loads(run([ISERD, "schema"]).text)["suffixes"]]
        self.assertIn("LUNs have the suffixes " + " ".join(",%s=" % s for s in suffixes), run([ISERD, "serve", disk + ",ro"], check=False).text)

    def test_unknown_words_without_iserd(self):
        for words, message in ((["lun", "ad", "x"], "lun ad: no such verb; did you mean lun add?"), (["lnu", "add", "x"], "lnu: no such noun; did you mean lun?"),
                               (["statsu"], "statsu: unknown method; did you mean status?")):
            done = run([ISERCTL, "-s", self.path("nowhere"), *words], check=False)
            self.assertEqual(done.returncode, 2, done.text)
            self.assertIn(message, done.text)
        self.assertEqual(run([ISERCTL, "-s", self.path("nowhere"), "status"], check=False).returncode, 3)

    def test_relative_paths(self):
        """Those of a file begin in its directory, those of iserctl in its own working directory."""
        os.mkdir(self.path("images"))
        for name in "images/a", "b", "c.iso":
            sparse(self.path(name), 1 << 20)
        path = self.write("backstores: {a: {store: images/a}, cd: {store: \"cd:\"}}\nportal-groups: {p: {listen: \"127.0.0.1:0\"}}\n"
                          "targets:\n  %sa: {auth-group: any, portal-groups: [p], luns: {0: a}}\n" % IQN)
        self.assertIn("valid: ", run([os.path.abspath(ISERCTL), "check", path], cwd="/").text)
        d = Configured(path, 1)
        self.addCleanup(d.stop)
        ctl = [os.path.abspath(ISERCTL), "-s", self.path("ctl")]
        run(ctl + ["lun", "add", IQN + "a/1", "store=b"], cwd=self.dir)
        run(ctl + ["insert", "cd", "path=c.iso"], cwd=self.dir)
        stores = [u["store"] for u in json.loads(run(ctl + ["--json", "luns"]).text)]
        self.assertEqual(sorted(os.path.realpath(s.replace("cd:", "")) for s in stores if s != "cd:"),
                         sorted(os.path.realpath(self.path(n)) for n in ("images/a", "b", "c.iso")))
        self.assertIn("/b", run(ctl + ["dump"]).text)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be another user")
    def test_rights_of_the_user(self):
        """The user that iserd becomes opens files of later changes, reads secrets again and replaces keys."""
        folder = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        disk, secret, path = (os.path.join(folder.name, n) for n in ("disk", "secret", "iserd.yaml"))
        for name in disk, secret:
            with open(name, "w") as f:
                os.fchmod(f.fileno(), 0o600)
                f.write(ALICE)
        sparse(os.path.join(folder.name, "shown"), 512)
        os.truncate(disk, 512)
        with open(path, "w") as f:
            f.write("version: 1\ndaemon: {user: nobody}\nbackstores: {b: {store: %s}, r: {store: shown, read-only: yes}}\n"
                    "auth-groups: {g: {accounts: [{user: a, secret-file: %s}]}}\n" % (disk, secret))
        text = run([ISERCTL, "check", path]).text
        self.assertIn("warning: backstore b: %s: user nobody: permission denied" % disk, text)
        self.assertIn("warning: auth group g: secret-file: %s: user nobody: permission denied" % secret, text)
        self.assertNotIn("backstore r", text)
        shutil.chown(disk, "nobody")
        shutil.chown(secret, "nobody")
        self.assertNotIn("warning", run([ISERCTL, "check", path]).text)

    def test_diff(self):
        a = self.write(self.GOOD, "a.yaml")
        b = self.write(self.GOOD.replace("127.0.0.1:0", "127.0.0.1:1") + "targets: {}\n", "b.yaml")
        self.assertEqual(run([ISERCTL, "diff", a, a]).text, "")
        self.assertEqual(run([ISERCTL, "diff", a, b]).text,
                         "~ portal-groups.p.listen: [127.0.0.1:0] -> [127.0.0.1:1]\n")


class Access(Config):
    """Access by names, accounts, addresses, portal groups and maps."""

    def setUp(self):
        super().setUp()
        self.d = self.start("""
backstores:
  one: {store: "ram:1M"}
  two: {store: "ram:2M"}
  three: {store: "ram:3M", serial: "S3", vendor: ACME}
auth-groups:
  people:
    accounts: [{user: alice, secret-file: %s}, {user: bob, secret-file: %s}]
    mutual: {user: tgt, secret-file: %s}
  named: {initiators: ["iqn.2026-01.com.example:n?", "iqn.*:special"]}
  here: {addresses: [127.0.0.0/8]}
  elsewhere: {addresses: [10.0.0.0/8, "fd00::/8"]}
portal-groups:
  front: {listen: "127.0.0.1:0"}
  back: {tag: 2, listen: "127.0.0.1:0", discovery: all}
  shut: {tag: 3, listen: "127.0.0.1:0", discovery: none}
  asks: {tag: 4, listen: "127.0.0.1:0", discovery-auth: people}
  plain: {tag: 5, listen: "127.0.0.1:0", transport: tcp}
initiator-groups:
  cluster: ["iqn.2026-01.com.example:c1", "iqn.2026-01.com.example:c2"]
targets:
  iqn.2026-01.com.example:any: {auth-group: any, portal-groups: [front, back, shut, asks, plain], luns: {0: one, 300: two}}
  iqn.2026-01.com.example:chap: {auth-group: people, portal-groups: [front, back], luns: {0: one}}
  iqn.2026-01.com.example:named: {auth-group: named, portal-groups: [front, back], luns: {0: one}}
  iqn.2026-01.com.example:here: {auth-group: here, portal-groups: [front], luns: {0: one}}
  iqn.2026-01.com.example:elsewhere: {auth-group: elsewhere, portal-groups: [front, back], luns: {0: one}}
  iqn.2026-01.com.example:none: {auth-group: none, portal-groups: [front], luns: {0: one}}
  iqn.2026-01.com.example:masked:
    auth-group: any
    portal-groups: [front]
    luns: {0: one}
    maps:
      - {initiators: [cluster, "eui.*"], luns: {0: three, 5: {backstore: two, read-only: yes}}}
      - {initiators: ["*:c*"], luns: {1: two}}
""" % (self.secret("alice", ALICE), self.secret("bob", BOB), self.secret("mutual", MUTUAL)), 16)

    def info(self, way, target, initiator="x", user=None, lun=0, nth=0):
        """Returns the size in MiB of a LUN, or None: refused."""
        url = self.d.url_of(target, nth=nth)
        url = "%s/%d" % (url.rsplit("/", 1)[0], lun)
        if user:
            url = url.replace("://", "://%s@" % "%".join(user))
        done = run([ISER, "info", "-i", IQN + initiator, "--json", over(url, way)], check=False)
        return json.loads(done.text)["bytes"] >> 20 if done.returncode == 0 else None

    def test_who_may_see_what(self):
        alice, bob = ("alice", ALICE), ("bob", BOB)
        rows = (  # target, initiator, account, LUN, size
            ("any", "x", None, 0, 1), ("any", "x", None, 300, 2), ("any", "x", None, 1, None),
            ("any", "x", None, 44, None),
            ("chap", "x", None, 0, None), ("chap", "x", alice, 0, 1), ("chap", "x", bob, 0, 1),
            ("chap", "x", ("alice", BOB), 0, None), ("chap", "x", ("carol", ALICE), 0, None),
            ("named", "x", None, 0, None), ("named", "n1", None, 0, 1), ("named", "n12", None, 0, None),
            ("named", "special", None, 0, 1), ("named", "unspecial", None, 0, None),
            ("here", "x", None, 0, 1), ("elsewhere", "x", None, 0, None), ("none", "x", None, 0, None),
            ("masked", "x", None, 0, 1), ("masked", "x", None, 1, None), ("masked", "c1", None, 0, 3),
            ("masked", "c2", None, 5, 2), ("masked", "c1", None, 1, None), ("masked", "c3", None, 1, 2),
            ("masked", "c3", None, 0, None))
        for way in WAYS:
            for target, initiator, user, lun, size in rows:
                with self.subTest(way=way, target=target, initiator=initiator, user=user, lun=lun):
                    self.assertEqual(self.info(way, target, initiator, user, lun), size)

    def test_mutual(self):
        url = self.d.url_of("chap").replace("://", "://alice%%%s@" % ALICE)
        run([ISER, "info", url + "?target_user=tgt&target_password=" + MUTUAL])
        done = run([ISER, "info", url + "?target_user=tgt&target_password=another secret"], check=False)
        self.assertNotEqual(done.returncode, 0)

    def names(self, nth, initiator="x", user=None, way="tcp"):
        portal = self.d.portal_of("any", nth)
        url = "iscsi://%s" % portal
        if user:
            url = url.replace("://", "://%s@" % "%".join(user))
        done = run([ISER, "ls", "-i", IQN + initiator, over(url, way)], check=False)
        return {w[len(IQN):] for w in done.text.split() if w.startswith(IQN)}

    def test_discovery(self):
        """The rule of the portal group, for each initiator."""
        front = {"any", "chap", "here", "masked"}
        for way in WAYS:
            with self.subTest(way=way):
                self.assertEqual(self.names(0, way=way), front)
                self.assertEqual(self.names(0, "n1", way=way), front | {"named"})
                self.assertEqual(self.names(1, way=way), {"any", "chap", "named", "elsewhere"})
                self.assertEqual(self.names(2, way=way), set())
                self.assertEqual(self.names(3, way=way), set())
                self.assertEqual(self.names(3, user=("bob", BOB), way=way), {"any"})

    def test_transports_of_a_portal_group(self):
        url = self.d.url_of("any", nth=4)
        self.assertEqual(run([ISER, "info", url], check=False).returncode, 0)
        for way in WAYS:
            if way != "tcp":
                self.assertNotEqual(run([ISER, "info", over(url, way)], check=False).returncode, 0, way)

    def test_portal_groups_have_their_targets_only(self):
        """Login to a target through the portal group of another one: status 0203h."""
        url = self.d.url_of("any", nth=2).replace(":any/", ":chap/")
        self.assertNotEqual(run([ISER, "info", url], check=False).returncode, 0)
        self.assertIn("0203", self.d.messages())

    def test_read_only_for_some(self):
        """A LUN that one map has read-only takes writes by another map."""
        masked = self.d.url_of("masked").rsplit("/", 1)[0]
        zeros = self.path("zeros")
        with open(zeros, "wb") as f:
            f.truncate(64 << 10)
        for initiator, lun, good in (("c1", 5, False), ("c3", 1, True)):
            done = run([ISER, "copy", "-i", IQN + initiator, zeros, "%s/%d" % (masked, lun)], check=False)
            self.assertEqual(done.returncode == 0, good, done.text)

    @need("iscsi-ls")
    def test_libiscsi(self):
        ls = run(["iscsi-ls", "-i", IQN + "c1", "iscsi://" + self.d.portal_of("any")]).text
        self.assertIn("Target:%smasked" % IQN, ls)
        url = self.d.url_of("masked")
        self.assertIn("Unit Serial Number:[S3]", run(["iscsi-inq", "-i", IQN + "c1", "-e", "1", "-c", "128", url]).text)
        self.assertNotIn("S3", run(["iscsi-inq", "-i", IQN + "x", "-e", "1", "-c", "128", url]).text)
        self.assertIn("Vendor:ACME", run(["iscsi-inq", "-i", IQN + "c1", url]).text)
        bob = self.d.url_of("chap").replace("://", "://bob%%%s@" % BOB)
        run(["iscsi-inq", bob])


class Live(Config):
    """Changes while iserd serves."""

    BASE = """
backstores:
  one: {store: "ram:1M"}
  two: {store: "ram:2M"}
auth-groups:
  lab: {accounts: [{user: alice, secret-file: %(secret)s}]}
portal-groups:
  front: {listen: "127.0.0.1:0"}
targets:
  iqn.2026-01.com.example:a: {auth-group: any, portal-groups: [front], luns: {0: one}}
  iqn.2026-01.com.example:b: {auth-group: any, portal-groups: [front], luns: {0: two}}
"""

    def setUp(self):
        super().setUp()
        self.text = self.BASE % {"secret": self.secret("alice", ALICE)}
        self.d = self.start(self.text, 2)
        self.file = self.path("iserd.yaml")

    def apply(self, *changes, status=0, name="iserd.yaml", options=()):
        """Writes the file with these replacements and applies it; the changes of earlier calls stay."""
        for a, b in changes:
            self.assertIn(a, self.text)
            self.text = self.text.replace(a, b)
        return self.iserctl(*options, "apply", self.write(self.text, name), status=status)

    def size(self, target, lun=0, user=None, way="tcp"):
        url = "%s/%d" % (self.d.url_of("a").replace(":a/", ":%s/" % target).rsplit("/", 1)[0], lun)
        if user:
            url = url.replace("://", "://%s@" % "%".join(user))
        done = run([ISER, "info", "--json", over(url, way)], check=False)
        return json.loads(done.text)["bytes"] >> 20 if done.returncode == 0 else None

    def test_nothing_changes(self):
        self.assertIn("none", self.apply())
        self.assertEqual(self.size("a"), 1)

    def test_luns(self):
        """A LUN is added, moved and removed; a target is added and removed."""
        for way in WAYS:
            with self.subTest(way=way):
                out = self.apply(("{0: one}", "{0: one, 5: new}"), ('"ram:2M"}', '"ram:2M"}\n  new: {store: "ram:3M"}'))
                self.assertRegex(out, r"(?s)added.*backstores\.new.*targets\.%sa\.luns\.5" % IQN.replace(".", r"\."))
                self.d.wait_for("configuration changes: added backstores.new, added targets.%sa.luns.5" % IQN)
                self.assertEqual((self.size("a", way=way), self.size("a", 5, way=way)), (1, 3))
                self.apply(("5: new", "6: new"))
                self.assertEqual((self.size("a", 5, way=way), self.size("a", 6, way=way)), (None, 3))
                self.apply((", 6: new", ""), ('\n  new: {store: "ram:3M"}', ""))
                self.assertEqual(self.size("a", 6, way=way), None)
                until(lambda: "ram:3M" not in self.iserctl("luns"), "the unit is closed")

    def test_targets(self):
        c = "  %sc: {auth-group: any, portal-groups: [front], luns: {9: two}}\n" % IQN
        self.assertEqual(self.size("c", 9), None)
        self.apply(("targets:\n", "targets:\n" + c))
        self.assertEqual(self.size("c", 9), 2)
        self.apply((c, ""))
        self.assertEqual(self.size("c", 9), None)
        self.assertEqual(self.size("b"), 2)

    def test_accounts(self):
        self.apply(("b: {auth-group: any", "b: {auth-group: lab"))
        self.assertEqual((self.size("b"), self.size("b", user=("alice", ALICE))), (None, 2))
        self.secret("alice", BOB)
        self.apply()
        self.assertEqual((self.size("b", user=("alice", ALICE)), self.size("b", user=("alice", BOB))), (None, 2))

    def test_portal_groups(self):
        before = self.d.portal
        self.apply(('front: {listen: "127.0.0.1:0"}', 'front: {listen: ["127.0.0.1:0", "127.0.0.2:0"], tag: 7}\n'
                    '  more: {tag: 9, listen: "127.0.0.3:0"}'))
        listen = [l for l in json.loads(self.iserctl("-j", "status"))["listen"]]
        self.assertEqual(listen[0], before)
        self.assertEqual([l.split(":")[0] for l in listen], ["127.0.0.1", "127.0.0.2", "127.0.0.3"])
        self.assertEqual(self.size("a"), 1)
        self.assertIn(",7", run([ISER, "ls", "iscsi://" + before]).text)
        self.apply((', "127.0.0.2:0"', ""), ('\n  more: {tag: 9, listen: "127.0.0.3:0"}', ""))
        self.assertEqual(json.loads(self.iserctl("-j", "status"))["listen"], [before])

    def test_all_or_nothing(self):
        """An error of any kind changes nothing: in the file, of a backstore, of an address."""
        dump = self.iserctl("dump")
        good = self.text
        for change, word in ((("luns: {0: two}", "luns: {0: three}"), "no such backstore"),
                             (('"ram:2M"', '"/nowhere/disk"'), "/nowhere/disk: no such file"),
                             (('listen: "127.0.0.1:0"', 'listen: ["127.0.0.1:0", "203.0.113.1:1"]'), "cannot listen"),
                             (("version: 1", "version: 1"), None)):
            self.text = good.replace("{0: one}", "{0: one, 1: two}")
            if word is None:
                path = self.write(self.text)
                with open(path) as f:
                    text = f.read().replace("daemon: {", "daemon: {workers: 7, ")
                with open(path, "w") as f:
                    f.write(text)
                self.assertIn("daemon.workers: (not given) -> 7: needs a restart", self.iserctl("apply", path, status=1))
            else:
                self.assertIn(word, self.apply(change, status=1))
            until(lambda: self.iserctl("dump") == dump, "the old configuration")
            self.assertEqual((self.size("a"), self.size("a", 1), self.size("b")), (1, None, 2))
        self.text = good
        self.apply()

    def test_dry_run(self):
        dump = self.iserctl("dump")
        self.assertIn("luns.1", self.apply(("{0: one}", "{0: one, 1: two}"), options=("--dry-run",)))
        self.assertEqual(self.iserctl("dump"), dump)
        self.assertEqual(self.size("a", 1), None)

    def test_hup(self):
        self.text = self.text.replace("{0: one}", "{0: one, 1: two}")
        self.write(self.text)
        self.d.proc.send_signal(signal.SIGHUP)
        self.d.wait_for("SIGHUP: the configuration file is in force")
        self.assertEqual(self.size("a", 1), 2)
        self.write("targets: 3\n")
        self.d.proc.send_signal(signal.SIGHUP)
        self.d.wait_for("SIGHUP: the configuration is unchanged")
        self.d.wait_for("iserd.yaml:3:10: targets: not a mapping")
        self.assertEqual(self.size("a", 1), 2)

    def test_save_and_dump(self):
        """The saved file is the dump, and the same configuration."""
        other = self.path("other.yaml")
        self.apply(("{0: one}", "{0: one, 1: two}"), name="new.yaml")
        self.iserctl("save", other)
        with open(other) as f:
            self.assertEqual(f.read(), self.iserctl("dump"))
        self.assertEqual(run([ISERCTL, "diff", other, self.path("new.yaml")]).text, "")
        self.iserctl("save")
        self.assertEqual(run([ISERCTL, "diff", other, self.file]).text, "")
        self.assertIn("cannot be written", self.iserctl("save", "/nowhere/x", status=1))
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        for special in (pipe, self.ctl):  # as would be a device
            before = os.lstat(special)
            self.assertIn("not a regular file; give another path", self.iserctl("save", special, status=1))
            self.assertEqual(os.lstat(special)[:3], before[:3])

    def session_ids(self):
        return [(x["initiator"], x["tsih"]) for x in json.loads(self.iserctl("-j", "status"))["sessions"]]

    def attention(self, w):
        """The ASC and ASCQ of the unit attention of the session, or None."""
        status, sense = w.ask(bytes(16))
        self.assertIn(status, (0, 2))
        if status == 0:
            return None
        self.assertEqual(sense[4] & 15, 6)
        return sense[14], sense[15]

    def unit(self, backstore):
        return next(u for u in json.loads(self.iserctl("--json", "luns")) if u["backstore"] == backstore)

    @staticmethod
    def write_cache(w):
        """WCE of the caching mode page."""
        return w.ask([0x1a, 8, 8, 0, 0xff, 0] + [0] * 10, edtl=255)[1][6] >> 2 & 1

    def disk(self, name):
        path = self.path(name)
        with open(path, "wb") as f:
            f.truncate(1 << 20)
        return path

    def test_backstore_in_use(self):
        """Names, serial number, read-only, cache and limits of a file in use; the session stays and gets unit attentions."""
        self.apply(('"ram:1M"', '"%s", buffered: yes' % self.disk("disk")))
        w = Wire(self.d)
        w.login()
        w.ready()
        before = self.session_ids()
        self.assertEqual(self.write_cache(w), 1)
        self.assertTrue(self.unit("one")["write_cache"])
        limits = ', cache: write-through, max-iops: "5000:6000", max-bandwidth: 1G'
        self.apply(("buffered: yes", "buffered: yes" + limits))
        self.assertEqual(self.attention(w), (0x2a, 1))
        self.assertEqual(self.write_cache(w), 0)
        self.assertFalse(self.unit("one")["write_cache"])
        self.assertIn('max-iops: "5000:6000"', self.iserctl("dump"))
        self.assertEqual(w.write10(0, bytes(512))[0], 0)
        self.apply(("buffered: yes", "buffered: yes, vendor: ACME, serial: S1"))
        self.assertEqual(self.attention(w), (0x3f, 3))
        self.assertEqual(w.ask([0x12, 0, 0, 0, 36, 0] + [0] * 10, edtl=36)[1][8:16], b"ACME    ")
        self.assertIn(b"S1", w.ask([0x12, 1, 0x80, 0, 64, 0] + [0] * 10, edtl=64)[1])
        self.apply(("buffered: yes", "buffered: yes, read-only: yes"))
        self.assertEqual(self.attention(w), (0x2a, 1))
        status, sense = w.write10(0, bytes(512))
        self.assertEqual((status, sense[4] & 15), (2, 7))
        self.apply((", read-only: yes", ""), (limits, ""))
        self.assertEqual(self.attention(w), (0x2a, 1))
        self.assertEqual(w.write10(0, bytes(512))[0], 0)
        self.assertEqual(self.write_cache(w), 1)
        self.apply(("buffered: yes", "max-iops: 7000, buffered: yes"))
        self.assertIsNone(self.attention(w))
        self.assertEqual(self.session_ids(), before)
        w.close()

    def test_memory_in_use(self):
        """A live change of a ram: backstore keeps its data."""
        w = Wire(self.d)
        w.login()
        w.ready()
        self.assertEqual(w.write10(8, b"kept" * 128)[0], 0)
        self.apply(('"ram:1M"', '"ram:1M", rotational: yes'))
        self.assertEqual(self.attention(w), (0x3f, 3))
        self.assertEqual(w.read10(8, 1), (0, b"kept" * 128))
        w.close()

    def test_backstore_in_use_is_refused(self):
        """Other fields, and write access to a file that was opened for reading, change nothing."""
        self.apply(('"ram:1M"', '"%s", buffered: yes' % self.disk("one")),
                   ('"ram:2M"', '"%s", buffered: yes, read-only: yes' % self.disk("two")))
        w = Wire(self.d)
        w.login()
        w.ready()
        dump, good = self.iserctl("dump"), self.text
        for change in (("buffered: yes}", "buffered: no, serial: S1}"), (", read-only: yes", ""),
                       ("buffered: yes, read-only: yes", "serial: S1, buffered: yes, read-only: no")):
            self.text = good.replace("one: {", "one: {cache: write-through, ")
            self.assertIn("in use with other fields", self.apply(change, status=1))
            self.assertEqual(self.iserctl("dump"), dump)
            self.assertIsNone(self.attention(w))
        w.close()

    def test_sessions_that_a_change_does_not_concern(self):
        """100 changes while a copy to another target is in progress: it sees nothing of them."""
        image = self.path("image")
        with open(image, "wb") as f:
            f.write(os.urandom(1 << 20))
        url = self.d.url_of("a")
        w = Wire(self.d)
        w.login()

        def session():
            return [(x["initiator"], x["tsih"], x["peer"]) for x in json.loads(self.iserctl("-j", "status"))["sessions"]]
        before = session()
        self.assertEqual([x[0] for x in before], ["iqn.2026-01.org.example:wire"])
        for i in range(100):
            if i % 10 == 0:
                run([ISER, "copy", image, url])
            a, b = ("luns: {0: two}", "luns: {0: two, 1: one}") if i % 2 == 0 else ("luns: {0: two, 1: one}", "luns: {0: two}")
            self.apply((a, b))
        self.assertEqual(session(), before)
        run([ISER, "copy", url, self.path("back")])
        with open(image, "rb") as f, open(self.path("back"), "rb") as g:
            self.assertEqual(f.read(), g.read())
        w.close()


class Random(Config):
    """Random changes, by files and by verbs, while fio writes and verifies on LUNs that stay: no error, no new login.
    CONFIG_CHANGES and CONFIG_SEED change the run."""

    def choose(self, chance):
        """The text of a random configuration in which the target "fio" is always the same."""
        names = ["b%d" % i for i in range(6) if chance.random() < 0.6]
        stores = {n: "ram:%dM" % chance.choice((1, 2)) for n in names}
        text = "backstores:\n  disk: {store: %s}\n" % self.disk
        text += "".join("  %s: {store: \"%s\"}\n" % n for n in stores.items())
        text += "auth-groups:\n  local: {addresses: [127.0.0.0/8]}\n  lab: {accounts: [{user: alice, secret-file: %s}]}\n" % self.alice
        text += "portal-groups:\n  front: {listen: \"%s\", tag: 1}\n" % self.listen
        if chance.random() < 0.5:
            text += "  more: {listen: \"127.0.0.2:%d\", tag: 2}\n" % self.port
        more = "more" in text
        text += "targets:\n  %sfio: {auth-group: local, portal-groups: [front], luns: {0: disk}}\n" % IQN
        for t in range(5):
            if chance.random() < 0.6:
                luns = ", ".join("%d: %s" % n for n in zip(chance.sample((0, 1, 5, 300, 16383), 3), chance.sample(names, min(3, len(names)))))
                text += "  %st%d: {auth-group: %s, portal-groups: [%s], luns: {%s}}\n" % (
                    IQN, t, chance.choice(("any", "none", "local", "lab")),
                    chance.choice(("front", "more", "front, more")) if more else "front", luns)
        groups = "".join("  %d: {ports: [%d, %d], state: %s}\n" % (g, 100 + g, 200 + g, chance.choice(self.STATES))
                         for g in (1, 2, 3) if chance.random() < 0.5)
        return text + ("alua-groups:\n" + groups if groups else "")

    STATES = ("optimized", "non-optimized", "standby", "unavailable")

    def verb(self, chance):
        """Makes a random change by a verb, of what there is; "fio" stays as it is."""
        def names(noun):
            return [x["name"] for x in json.loads(self.iserctl("-j", noun, "list"))]
        luns = [x for x in names("lun") if not x.startswith(IQN + "fio")]
        targets = [x for x in names("target") if x != IQN + "fio"]
        groups, stores = names("group"), [x for x in names("backstore") if x != "disk"]
        self.made += 1
        ways = [("backstore", "add", "v%d" % self.made, "store=ram:1M"), ("daemon", "set", "max-sessions=%d:900" % chance.randint(900, 999)),
                ("daemon", "set", "log=%s" % chance.choice(("notice", "info", "")), "slow-command=%d" % chance.choice((0, 5000)))]
        if luns:
            ways += [("lun", "replace", chance.choice(luns), "store=ram:%dM" % chance.randint(1, 3), "backstore=v%d" % self.made),
                     ("lun", "remove", chance.choice(luns)), ("lun", "set", chance.choice(luns), "read-only=%s" % chance.choice(("yes", "no")))]
        if targets:
            ways += [("lun", "add", chance.choice(targets) + "/%d" % (1000 + self.made), "store=ram:1M", "backstore=v%d" % self.made),
                     ("target", "set", chance.choice(targets), "alias=a%d" % self.made), ("target", "remove", chance.choice(targets))]
        if stores:
            ways.append(("backstore", "set", chance.choice(stores), "serial=S%d" % self.made, "max-iops=%d" % chance.randint(1000, 2000)))
        if groups:
            ways += [("group", "set", chance.choice(groups), "state=" + chance.choice(self.STATES), "preferred=yes"),
                     ("group", "remove", chance.choice(groups))]
        if len(groups) < 10:
            ways.append(("group", "add", str(300 + self.made), "ports=%d" % (300 + self.made)))
        self.iserctl(*chance.choice(ways))

    @need("fio")
    def test_random_changes(self):
        self.made = 0
        chance = random.Random(int(os.environ.get("CONFIG_SEED", "1")))
        self.disk, self.alice = sparse(self.path("disk"), 64 << 20), self.secret("alice", ALICE)
        self.port = quiet_port()
        self.listen = "127.0.0.1:%d" % self.port
        text = self.choose(chance)
        d = self.start(text, 1)
        count = int(os.environ.get("CONFIG_CHANGES", "60" if d.sanitized() else "200"))
        url = "iscsi://%s/%sfio/0" % (self.listen, IQN)
        loads = []
        for n, way in enumerate(WAYS):
            b = Bridge(over(url, way) + ("&" if "?" in over(url, way) else "?") + "reconnect=0")
            self.addCleanup(b.__exit__, None, None, None)
            b.__enter__()
            loads.append(subprocess.Popen(
                ["fio", "--name=verify", "--verify_state_save=0", "--ioengine=nbd", "--uri=" + b.uri, "--rw=randrw", "--bs=16k",
                 "--iodepth=8", "--offset=%dM" % (16 * n), "--size=16M", "--rate_iops=200,200", "--time_based", "--runtime=3600",
                 "--verify=crc32c", "--verify_fatal=1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        self.addCleanup(lambda: [p.kill() for p in loads])
        until(lambda: all(s["bytes_written"] > 1 << 20 for s in self.sessions()), "each fio has written", 60)
        before = sorted(s["tsih"] for s in self.sessions())
        self.assertEqual(len(before), 3)
        for n in range(count):
            if n % 2:
                self.verb(chance)
                continue
            new = self.write(self.choose(chance))
            self.iserctl("apply", new)
            self.assertIn("none", self.iserctl("apply", new, "--dry-run"))
        self.assertEqual(sorted(s["tsih"] for s in self.sessions()), before)
        for p in loads:
            self.assertIsNone(p.poll(), p.poll() is None or p.communicate()[0])
            p.send_signal(signal.SIGINT)
            out = p.communicate(timeout=patience(30))[0].decode()
            self.assertNotIn("error=", out.replace("error= 0", ""))
        dump, file = self.path("dump.yaml"), self.path("iserd.yaml")
        with open(dump, "w") as f:
            f.write(self.iserctl("dump"))
        self.iserctl("save", file)
        self.assertEqual(self.iserctl("diff", dump, file), "")

    def test_killed(self):
        """SIGKILL at any point of apply and save: the file is the old or the new configuration, whole."""
        chance = random.Random(int(os.environ.get("CONFIG_SEED", "1")))
        self.disk, self.alice = sparse(self.path("disk"), 1 << 20), self.secret("alice", ALICE)
        self.port = quiet_port()
        self.listen = "127.0.0.1:%d" % self.port
        file, other = self.path("iserd.yaml"), self.path("other.yaml")
        self.write(self.choose(chance))
        for n in range(8):
            d = Configured(file, 1)
            self.iserctl("save")
            with open(file) as f:
                old = f.read()
            self.write(self.choose(chance), "other.yaml")
            saving = subprocess.Popen("%s -s %s apply %s && %s -s %s save" % (ISERCTL, self.ctl, other, ISERCTL, self.ctl),
                                      shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(chance.random() * 0.03)
            d.kill()
            saving.wait(patience(10))
            run([ISERCTL, "check", file])
            with open(file) as f:
                if f.read() != old:
                    self.assertEqual(run([ISERCTL, "diff", file, other]).text, "")

    def sessions(self):
        return [s for s in json.loads(self.iserctl("-j", "status"))["sessions"] if s["target"] == IQN + "fio"]


if __name__ == "__main__":
    main()
