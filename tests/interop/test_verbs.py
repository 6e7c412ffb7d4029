# SPDX-License-Identifier: BSD-2-Clause
"""iserctl NOUN VERB: changes of a live iserd, while a session that they do not concern stays."""
import http.client
import json
import select
import socket
import subprocess
import time

from harness import ISER, ISERCTL, Daemon, Wire, main, patience, quiet_port, run, until
from test_config import ALICE, IQN, Config, Configured

A, B, C = IQN + "a", IQN + "b", IQN + "c"


class Live(Config):
    BASE = """
backstores:
  one: {store: "ram:1M"}
  two: {store: "ram:2M"}
portal-groups:
  front: {listen: "127.0.0.1:0"}
targets:
  %s: {auth-group: any, portal-groups: [front], luns: {0: one}}
  %s: {auth-group: any, portal-groups: [front], luns: {0: two}}
""" % (A, B)

    def setUp(self):
        super().setUp()
        self.d = self.start(self.BASE, 2)
        self.file = self.path("iserd.yaml")

    def json(self, *args):
        return json.loads(self.iserctl("-j", *args))

    def call(self, method, **params):
        """One request of JSON-RPC on a connection of its own; returns the answer."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(patience(10))
            s.connect(self.ctl)
            s.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
            return json.loads(s.makefile().readline())

    def size(self, target, lun=0, *more):
        url = "%s/%d" % (self.d.url_of("a").replace(":a/", ":%s/" % target[len(IQN):]).rsplit("/", 1)[0], lun)
        done = run([ISER, "info", "--json", *more, url], check=False)
        return json.loads(done.text)["bytes"] >> 20 if done.returncode == 0 else None

    def logged_in(self):
        w = Wire(self.d)
        w.login()
        w.ready()
        self.addCleanup(w.close)
        return w

    def session_ids(self):
        return [(x["initiator"], x["tsih"]) for x in self.json("status")["sessions"]]

    def restarted(self):
        """Saves, restarts iserd, and returns its dump."""
        self.iserctl("save")
        with open(self.file) as f:
            self.assertEqual(f.read(), self.iserctl("dump"))
        self.d.stop()
        self.d = Configured(self.file, 1)
        self.addCleanup(self.d.stop)
        return self.iserctl("dump")


class Verbs(Live):
    def test_each_noun_and_verb(self):
        """A series of all verbs; the session at another target stays; a restarted iserd serves the same."""
        w = self.logged_in()
        before = self.session_ids()
        secret = self.secret("alice", ALICE)
        ctl = self.iserctl
        ctl("backstore", "add", "three", "store=ram:3M", "vendor=ACME")
        self.assertEqual([b["name"] for b in self.json("backstore", "list")], ["one", "two", "three"])
        ctl("backstore", "set", "three", "vendor=", "max-iops=5000")
        self.assertEqual(self.json("backstore", "show", "three")["max-iops"], "5000")
        ctl("portal", "add", "back", "tag=2", "listen=127.0.0.2:0")
        ctl("portal", "set", "back", "discovery=all")
        self.assertRegex(ctl("portal", "show", "back"), r"(?m)^discovery +all$")
        ctl("auth", "add", "lab", "accounts=[{user: alice, secret-file: %s}]" % secret)
        ctl("auth", "set", "lab", "addresses=127.0.0.0/8")
        self.assertEqual(self.json("auth", "show", "lab")["addresses"], ["127.0.0.0/8"])
        ctl("target", "add", C, "auth-group=lab", "portal-groups=front,back", "luns={0: two}")
        self.assertIsNone(self.size(C))
        ctl("target", "set", C, "auth-group=any")
        self.assertEqual(self.size(C), 2)
        ctl("lun", "add", B + "/5", "backstore=three")
        self.assertEqual(self.size(B, 5), 3)
        ctl("lun", "set", B + "/5", "read-only=yes")
        self.assertEqual(self.json("lun", "show", B + "/5"), {"backstore": "three", "read-only": "yes"})
        ctl("lun", "replace", B + "/5", "store=ram:4M", "backstore=four")
        self.assertEqual(self.size(B, 5), 4)
        ctl("initiators", "add", "cluster", "names=%sn1" % IQN)
        ctl("initiators", "set", "cluster", "names+=%sn2" % IQN)
        ctl("map", "add", B, "initiators=cluster", "luns={1: one}")
        ctl("lun", "add", B + "/1/2", "backstore=three")
        self.assertEqual((self.size(B, 2, "-i", IQN + "n2"), self.size(B, 2)), (3, None))
        self.assertIn(B + "/1/2", [x["name"] for x in self.json("lun", "list")])
        ctl("map", "set", B + "/1", "luns-=2")
        self.assertIn("cluster", ctl("map", "list"))
        ctl("daemon", "set", "log=info")
        self.size(B)
        self.d.wait_for("info CONN_OPEN")
        ctl("daemon", "set", "log=")
        for line in ("map remove %s/1" % B, "initiators remove cluster", "lun remove %s/5" % B, "backstore remove four",
                     "target remove " + C, "portal remove back"):
            ctl(*line.split())
        self.assertEqual(self.size(B, 5), None)
        self.assertEqual(self.session_ids(), before)
        w.ready()
        dump = ctl("dump")
        self.assertEqual(self.restarted(), dump)
        self.assertEqual((self.size(A), self.size(B), self.size(C)), (1, 2, None))

    def test_wrong_input(self):
        """The error names the object and the next command, and nothing changes."""
        self.iserctl("auth", "add", "lan", "addresses=127.0.0.0/8")
        self.iserctl("auth", "add", "one", "initiators=%sx" % IQN)
        dump = self.iserctl("dump")
        for words, text in (
                ("targt list", "did you mean target?"), ("target lst", "did you mean target list?"),
                ("target add", "give target add TARGET"), ("target list x", "takes no name"),
                ("target show %sx" % A, "did you mean %s?" % A), ("target remove %s alias=x" % A, "takes no fields"),
                ("target set " + A, "no field to set"), ("target set %s alais=x" % A, "did you mean alias?"),
                ("lun add %s/0 backstore=two" % A, "iserctl lun set changes it"),
                ("lun add %s/1 store=/nowhere/x" % A, "backstore disk0: /nowhere/x: no such file"),
                ("-n lun add %s/1 store=/nowhere/x" % A, "backstore disk0: /nowhere/x: no such file"),
                ("portal set front listen+=198.51.100.1:1", "portal group front: 198.51.100.1:1: cannot listen: Cannot assign requested address; this machine"),
                ("-n portal set front listen+=198.51.100.1:1", "portal group front: 198.51.100.1:1: this machine has no such address"),
                ("lun add %s/1 backstore=tow" % A, "did you mean two?"),
                ("backstore remove one", "first iserctl lun remove %s/0" % A),
                ("portal set front listen=203.0.113.1:1", "cannot listen"),
                ("portal remove front", "portal-groups-=front"),
                ("group add 1 ports=0", "ports"), ("daemon set workers=7", "needs a restart"),
                ("backstore set one store=ram:%dM" % (1 << 60), "store"), ("lun replace %s/0" % A, "store=STORE"),
                ("target set %s alias=%s" % (A, "x" * 300), "longer than 223"),
                ("auth set lan initiators+=%sx" % IQN, "initiators: not given, which means every name; initiators+= would leave these entries alone"),
                ("auth set one initiators-=%sx" % IQN, "initiators: no entry would be left, which means every name; give initiators= for that"),
                ("auth add g accounts=[{user:a", "not valid YAML"), ("auth add g initiators=x", "initiators")):
            self.assertIn(text, self.iserctl(*words.split(), status=1), words)
            self.assertEqual(self.iserctl("dump"), dump, words)
        for words in ("target", "target add x y"):
            self.iserctl(*words.split(), status=2)
        self.assertIn("removed", self.iserctl("-n", "target", "remove", A))
        self.assertEqual(self.iserctl("dump"), dump)

    def test_json(self):
        """Parameters by JSON-RPC: types, unknown names, deep and huge values."""
        deep = []
        for _ in range(500):
            deep = [deep]
        for method, params, text in (
                ("target.set", {}, "no name"), ("target.set", {"name": 3}, "not a string"),
                ("target.set", {"name": A, "fields": []}, "must be an object"),
                ("target.set", {"name": A, "fields": {"luns": deep}}, "luns"),
                ("target.set", {"name": A, "fields": {"luns": {"0": {"backstore": ["one"]}}}}, "a list"),
                ("target.set", {"name": A, "fields": {"data-timeout": 10**18}}, "data-timeout"),
                ("target.set", {"name": A, "fields": {"data-timeout": -1}}, "data-timeout"),
                ("target.set", {"name": A, "fields": {"data-timeout": 60.0}}, "fields: a value is neither a string"),
                ("target.set", {"name": A, "fields": {"portal-groups": ["front", None]}}, "fields: a value is neither"),
                ("target.set", {"name": A, "fields": {"alias": "x" * (1 << 20)}}, "longer than 223"),
                ("target.set", {"name": A, "feilds": {}}, "unknown parameter"),
                ("target.set", {"name": A, "fields": {"alias": "x"}, "dry-run": 2}, "yes or no"),
                ("target.list", {"dry-run": True}, "changes nothing"),
                ("target.", {"name": A}, "no such verb"), (".", {}, "no such noun"),
                ("a" * 100000 + ".list", {}, "no such noun")):
            self.assertIn(text, self.call(method, **params)["error"]["message"], method)
        self.call("target.set", name=A, fields={"luns": {"0": "one", "3": {"backstore": "two", "read-only": True}}})
        self.assertEqual((self.size(A, 0), self.size(A, 3)), (1, 2))
        self.assertIsNone(self.call("target.set", name=A, fields={"luns": {"0": "one"}, "alias": None}).get("error"))
        self.assertEqual(self.call("schema")["result"]["verbs"][0]["name"], "target")

    def test_two_administrators(self):
        """Changes that arrive at once: each is executed, one after the other."""
        self.logged_in()
        clients = [subprocess.Popen([ISERCTL, "-s", self.ctl, "lun", "add", "%s/%d" % (t, n), "store=ram:1M"],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for n in range(1, 6) for t in (A, B)]
        for c in clients:
            out = c.communicate(timeout=patience(20))[0]
            self.assertEqual(c.returncode, 0, out)
        self.assertEqual(len(self.json("lun", "list")), 12)
        self.assertEqual(len({b["name"] for b in self.json("backstore", "list")}), 12)

    def test_change_waits_for_the_one_before(self):
        """A session that does not log out delays the next change until it is dropped; a client that goes away is forgotten."""
        w = self.logged_in()
        target = w.daemon.target
        self.iserctl("target", "remove", target)
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.ctl)
            s.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "backstore.add",
                                  "params": {"name": "lost", "fields": {"store": "ram:1M"}}}).encode() + b"\n")
            self.call("methods")
        w.close()
        self.iserctl("backstore", "add", "next", "store=ram:1M")
        self.assertIn("next", self.iserctl("backstore", "list"))
        self.assertNotIn("lost", self.iserctl("backstore", "list"))

    def kick(self, noun, name, then=None):
        """Runs NOUN kick in the background, calls then, and returns the answer."""
        proc = subprocess.Popen([ISERCTL, "-j", "-s", self.ctl, noun, "kick", name], stdout=subprocess.PIPE)
        if then:
            then()
        out = proc.communicate(timeout=patience(20))[0]
        self.assertEqual(proc.returncode, 0)
        return json.loads(out)

    def test_sessions(self):
        """Sessions are listed, shown, asked to log out and dropped; connections are dropped at once; other sessions stay."""
        w, other = self.logged_in(), Wire(self.d)
        other.ISID = b"\x80\x12\x34\x56\x00\x02"
        other.login()
        other.ready()
        self.addCleanup(other.close)
        rows = self.json("session", "list")
        self.assertEqual([r["target"] for r in rows], [A, A])
        self.assertIn(rows[0]["initiator"], self.iserctl("connection", "list"))
        mine = next(r["tsih"] for r in rows if r["peer"] == "%s:%d" % w.sock.getsockname())
        self.assertEqual(self.json("session", "show", str(mine))[0]["isid"], w.ISID.hex())
        for name in (A, A.upper(), rows[0]["initiator"].upper()):  # RFC 3722: the same names
            self.assertEqual(len(self.json("session", "show", name)), 2)

        def log_out():
            op, head, _ = w.recv()  # Async Message, event 1: log out (RFC 7143 §11.9.1)
            self.assertEqual((op, head[36]), (0x32, 1))
            w.pdu(6, 0x80)
            self.assertEqual(w.recv()[0], 0x26)
            w.close()
        end = self.kick("session", str(mine), log_out)
        self.assertEqual([(x["tsih"], x["result"]) for x in end], [(mine, "logged out")])
        other.ready()
        end = self.kick("connection", "%s:%d" % other.sock.getsockname())
        self.assertEqual([x["result"] for x in end], ["dropped"])
        self.assertEqual(self.json("session", "list"), [])
        for words, text in (("session kick 1", "no such session; iserctl session list"), ("session show x", "no such session"),
                            ("session show " + A + "a" * 240, "longer than 255 bytes"),
                            ("connection kick 127.0.0.1", "no such connection"), ("session kick 1 a=b", "takes no fields"),
                            ("session remove 1", "give one of list, show, kick"), ("session list x", "takes no name")):
            self.assertIn(text, self.iserctl(*words.split(), status=1), words)

    def test_kick_of_a_client_that_goes(self):
        """The client of kick goes away before the answer: the connection ends all the same."""
        self.logged_in()
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.ctl)
            s.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "connection.kick", "params": {"name": "127.0.0.1"}}).encode() + b"\n")
        until(lambda: self.json("session", "list") == [], "the session is dropped")


class Events(Live):
    def follow(self):
        s = socket.socket(socket.AF_UNIX)
        self.addCleanup(s.close)
        s.settimeout(patience(10))
        s.connect(self.ctl)
        s.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "events"}\n')
        f = s.makefile()
        return s, f, json.loads(f.readline())

    def test_events(self):
        """Logins, refusals, changes and logouts, also below the level of the log; iserctl prints them."""
        self.iserctl("log", "level=error")
        proc = subprocess.Popen([ISERCTL, "-s", self.ctl, "events"], stdout=subprocess.PIPE)
        self.addCleanup(proc.wait)
        self.addCleanup(proc.kill)

        def follows():
            self.call("target.set", name=B, fields={"alias": str(time.monotonic())})
            return select.select([proc.stdout], [], [], 0.1)[0]
        until(follows, "iserctl follows")
        _, f, answer = self.follow()
        self.assertIs(answer["result"], True)
        until(lambda: self.call("events")["result"], "followed")
        self.size(A)
        self.iserctl("lun", "add", A + "/9", "store=ram:1M")
        self.size(C)
        got = [json.loads(f.readline())["params"] for _ in range(4)]
        self.assertEqual([e["event"] for e in got], ["LOGIN", "LOGOUT", "CHANGE", "LOGIN_FAILED"])
        self.assertEqual(got[0]["target"], A)
        self.assertIn("added targets.%s.luns.9" % A, got[2]["text"])
        lines = []
        while len(lines) < 4:
            lines += [l for l in (proc.stdout.readline().decode(),) if ".alias" not in l]
        self.assertEqual([l.split()[2] for l in lines], [e["event"] + ":" for e in got])
        proc = subprocess.Popen([ISERCTL, "-s", self.ctl, "events", "count=1"], stdout=subprocess.PIPE)
        until(lambda: follows() and proc.poll() is not None, "iserctl ends")
        self.assertEqual((proc.returncode, len(proc.stdout.read().splitlines())), (0, 1))
        self.assertNotIn("LOGIN", self.d.messages().split("level")[-1].replace("LOGIN_FAILED", ""))
        self.assertIn("count", self.iserctl("events", "x=1", status=2))

    def test_clients_that_do_not_read(self):
        """A client that never reads is dropped, other clients get all events; at most eight follow."""
        idle, _, _ = self.follow()
        reader, f, _ = self.follow()
        seen, n = "", 0
        while seen != "CONN_LIMIT":
            n += 1
            self.call("target.set", name=A, fields={"alias": "x" * (1 + n % 2)})
            seen = json.loads(f.readline())["params"]["event"]
            self.assertIn(seen, ("CHANGE", "CONN_LIMIT"))
            self.assertLess(n, 9999)
        self.d.wait_for("dropped a client that does not read its events")
        reader.close()
        f.close()
        more = [self.follow() for _ in range(8)]
        self.assertTrue(all(m[2].get("result") for m in more))
        self.assertIn("too many clients follow", self.follow()[2]["error"]["message"])
        self.assertIn("one", self.iserctl("backstore", "list"))


class CommandLine(Config):
    def test_serve(self):
        """The configuration of a command line is changed and saved, and iserd --config reads it."""
        d = Daemon("ram:1M", "--control", self.ctl)
        self.addCleanup(d.stop)
        target = d.target
        self.iserctl("lun", "add", target + "/1", "store=ram:2M")
        self.iserctl("auth", "add", "g", "addresses=10.0.0.0/8")
        self.assertIn("give path=FILE", self.iserctl("save", status=1))
        self.iserctl("save", self.path("saved.yaml"))
        dump = self.iserctl("dump")
        d.stop()
        d = Configured(self.path("saved.yaml"), 2)
        self.addCleanup(d.stop)
        self.assertEqual(self.iserctl("dump"), dump)


class Tree(Config):
    """All of a configuration with its sessions on one screen; and words that iserctl does not have."""
    FILE = """backstores: {one: {store: "ram:1M"}, two: {store: "ram:2M", read-only: yes}, spare: {store: "ram:3M"}}
auth-groups: {lab: {accounts: [{user: alice, secret-file: %s}], algorithms: [md5]}}
portal-groups: {front: {listen: ["127.0.0.1:0"]}}
targets:
  %sa: {auth-group: lab, portal-groups: front, luns: {0: one, 5: two}, alias: first}
  %sb: {auth-group: any, portal-groups: front, maps: [{initiators: ["%sx*", "%sy"], luns: {3: {backstore: one, read-only: yes}}}]}
"""

    def test_tree(self):
        d = self.start(self.FILE % (self.secret("alice", ALICE), IQN, IQN, IQN, IQN), 2)
        url = d.urls[0].replace("://", "://alice%" + ALICE + "@").replace("%sb" % IQN, "%sa" % IQN)
        load = subprocess.Popen([ISER, "bench", "--time", "600", url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)

        def session():
            found = json.loads(self.iserctl("-j", "session", "list"))
            return found[0] if found and found[0]["target"] == IQN + "a" else None
        until(session, "the session")
        s = session()
        self.assertEqual((s["account"], s["algorithm"]), ("alice", "md5"))
        self.assertRegex(s["since"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        lines = self.iserctl("tree").splitlines()
        self.assertRegex(lines.pop(0), r"^o- iserd \S+ on \S+$")
        self.assertRegex(lines.pop(10), r"^      o- session of \S+ at 127\.0\.0\.1:\d+, iscsi, account alice by md5, for \d+ (s|min)$")
        self.assertEqual(lines, [
            "  o- backstores [3]", "    o- one: ram:1M, 1 MiB", "    o- two: ram:2M, 2 MiB, read-only", "    o- spare: ram:3M, 3 MiB, no LUN",
            "  o- portal groups [1]", "    o- front, tag 1: " + d.portal, "  o- targets [2]",
            "    o- %sa (first), auth group lab, portal groups front" % IQN, "      o- LUN 0: one", "      o- LUN 5: two, read-only",
            "    o- %sb, auth group any, portal groups front" % IQN, "      o- map 1, for %sx*, %sy" % (IQN, IQN), "        o- LUN 3: one, read-only"])
        tree = json.loads(self.iserctl("-j", "tree"))
        self.assertEqual([t["name"] for t in tree["targets"]], json.loads(self.iserctl("-j", "status"))["targets"])
        self.assertEqual(tree["targets"][1]["maps"][0]["luns"], [{"lun": 3, "backstore": "one", "read_only": True}])
        shown = json.loads(self.iserctl("-j", "session", "show", str(s["tsih"])))[0]
        self.assertLess(shown["age"], 600)
        self.assertEqual(self.iserctl("reservations"), "(none)\n")
        self.assertRegex(self.iserctl("stats"), r"start +20\d\d-\d\d-\d\dT")
        self.assertRegex(self.iserctl("status"), r"one +ram:1M +1048576 +-? *%sa/0, %sb/1/3" % (IQN, IQN))
        load.kill()
        self.assertIn("iserd ends: ", self.iserctl("shutdown"))

    def test_drain(self):
        """No new sessions at a target, or at all; sessions go on, and /readyz says so."""
        port = quiet_port()
        with open(self.write(self.FILE % (self.secret("alice", ALICE), IQN, IQN, IQN, IQN)), "r+") as f:
            text = f.read().replace("daemon: {", "daemon: {metrics: '127.0.0.1:%d', " % port)
            f.seek(0)
            f.write(text)

        class OfB(Configured):
            target = IQN + "b"
        d = OfB(self.path("iserd.yaml"), 2)
        self.addCleanup(d.stop)

        def ready():
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=patience(10))
            c.request("GET", "/readyz")
            return c.getresponse().status

        def works(target):
            url = d.urls[0].rsplit("/", 2)[0] + "/" + IQN + target + "/0"
            done = run([ISER, "ping", "--count", "1", url.replace("://", "://alice%" + ALICE + "@") if target == "a" else url], check=False)
            self.assertIn(done.returncode, (0, 5), done.text)
            if done.returncode:
                self.assertIn("Service unavailable", done.text)
            return done.returncode == 0
        w = Wire(d)
        w.login()
        self.assertEqual((works("a"), works("b"), ready()), (True, True, 200))
        self.assertEqual(json.loads(self.iserctl("-j", "drain", IQN + "b")), {"all": False, "targets": [IQN + "b"]})
        self.assertEqual((works("a"), works("b"), ready()), (True, False, 200))
        self.assertIn("%sb, auth group any, portal groups front, no new sessions (drain)" % IQN, self.iserctl("tree"))
        self.iserctl("apply")  # the configuration does not end it
        self.iserctl("target", "set", IQN + "b", "alias=x")
        self.assertFalse(works("b"))
        self.iserctl("drain")
        self.assertEqual((works("a"), works("b"), ready()), (False, False, 503))
        self.assertTrue(json.loads(self.iserctl("-j", "status"))["drain"]["all"])
        self.assertIn("all targets drain", self.iserctl("drain", IQN + "b", "state=off", status=1))
        self.assertIn("did you mean %sb?" % IQN, self.iserctl("drain", IQN + "bb", status=1))
        self.assertEqual(w.ask(bytes(16))[0], 2)  # the session goes on: UNIT ATTENTION
        self.assertIn("login to %sb refused: 0301" % IQN, d.messages())
        self.iserctl("drain", "state=off")
        self.assertEqual((works("a"), works("b"), ready()), (True, True, 200))
        w.close()

    def test_unknown_words(self):
        self.start(self.FILE % (self.secret("alice", ALICE), IQN, IQN, IQN, IQN), 2)
        for word, text in (("sessions", "sessions: unknown method; did you mean session list?"), ("list", "list: unknown method; did you mean tree?"),
                           ("reload", "did you mean apply?"), ("restart", "restart the service"), ("targts", "did you mean targets?"),
                           ("backstores", "did you mean backstore list?"), ("frobnicate", 'frobnicate: unknown method; "methods" lists them')):
            self.assertIn(text, self.iserctl(word, status=1))
        self.assertIn("usage: iserctl", self.iserctl("help"))


if __name__ == "__main__":
    main()
