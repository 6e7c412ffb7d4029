#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iserctl import of random access rules of LIO: with each account and under each name, an initiator reaches no unit of the result
that LIO would not let it reach, and writes to none that it could only read.

IMPORT_SEED=1 IMPORT_FILES=60 tests/interop/run.py --build b test_import_access
"""
import json
import os
import random
import shutil
import unittest

from harness import Folder, main
from test_import import run_import

try:
    import yaml
except ImportError:
    yaml = None

TARGET = "iqn.2026-01.com.example:disk"
NAMES = ["iqn.2026-01.com.example:%s" % name for name in ("a", "b", "c", "stranger")]
ACCOUNTS = [(user, secret) for user in ("u", "v") for secret in ("secret-pass-1", "secret-pass-2")]


class File:
    """A random saveconfig.json with one TPG, and what LIO makes of its rules."""

    def __init__(self, rng):
        self.rng = rng
        rules = (("authentication", (0, 1)), ("generate_node_acls", (0, 1)), ("demo_mode_write_protect", (0, 1)),
                 ("prod_mode_write_protect", (0, 0, 1)))
        luns = [{"index": i, "storage_object": "/backstores/fileio/%d" % i} for i in range(rng.randrange(1, 4))]
        self.attributes = {key: rng.choice(values) for key, values in rules if rng.random() < .85}
        self.tpg = dict(self.account(), tag=1, enable=True, luns=luns, attributes=self.attributes,
                        portals=[{"ip_address": "192.0.2.1", "port": 3260}],
                        parameters={"AuthMethod": rng.choice(["CHAP", "CHAP,None", "CHAP,None"])})
        self.tpg["node_acls"] = [self.acl(name) for name in rng.sample(NAMES[:3], rng.randrange(3))]

    def account(self):
        user, secret = self.rng.choice(ACCOUNTS)
        return {} if self.rng.random() < .3 else {"chap_userid": user, "chap_password": secret}

    def acl(self, name):
        acl = dict(self.account(), node_wwn=name, mapped_luns=[])
        if self.rng.random() < .6:
            acl["attributes"] = {"authentication": self.rng.choice([0, 1, -1])}
        for lun in self.tpg["luns"]:
            if self.rng.random() < .7:
                more = {"write_protect": self.rng.choice([True, False])} if self.rng.random() < .9 else {}
                acl["mapped_luns"].append(dict(more, index=lun["index"], tpg_lun=self.rng.choice(self.tpg["luns"])["index"]))
        return acl

    def json(self):
        stores = [{"plugin": "fileio", "name": str(i), "dev": "/srv/%d" % i, "size": 4096} for i in range(3)]
        return {"storage_objects": stores, "targets": [{"fabric": "iscsi", "wwn": TARGET, "tpgs": [self.tpg]}]}

    def seen(self, name, account):
        """Returns {unit: whether it can be written to}. account: (user, secret), or None."""
        acl = next((a for a in self.tpg["node_acls"] if a["node_wwn"] == name), None)
        rules, chap = acl or self.tpg, self.attributes.get("authentication", 1)
        if not acl and not self.attributes.get("generate_node_acls", 0):
            return {}
        if acl and acl.get("attributes", {}).get("authentication", -1) != -1:
            chap = acl["attributes"]["authentication"]
        elif not acl and self.tpg["parameters"]["AuthMethod"] == "CHAP":
            chap = 1
        if chap and account != (rules.get("chap_userid"), rules.get("chap_password")):
            return {}
        if not acl:
            return {str(lun["index"]): not self.attributes.get("demo_mode_write_protect", 1) for lun in self.tpg["luns"]}
        read_only = bool(self.attributes.get("prod_mode_write_protect", 0))
        seen = {}
        for lun in acl["mapped_luns"]:
            unit = str(lun["tpg_lun"])
            seen[unit] = seen.get(unit, False) or not lun.get("write_protect", read_only)
        return seen


class Result:
    """A configuration file of iserd with one target, and what iserd makes of its rules."""

    def __init__(self, text):
        self.file = yaml.safe_load(text)
        self.target = self.file["targets"][TARGET]

    def admits(self, name, account):
        group = self.target["auth-group"]
        if group in ("any", "none"):
            return group == "any"
        group = self.file["auth-groups"][group]
        if name not in group.get("initiators", [name]):
            return False
        for a in group.get("accounts", []):
            with open(a["secret-file"]) as f:
                if account == (a["user"], f.read().rstrip("\n")) and name in a.get("initiators", [name]):
                    return True
        return not group.get("accounts")

    def seen(self, name, account):
        if not self.admits(name, account):
            return {}
        luns = self.target["luns"]
        for m in reversed(self.target.get("maps", [])):
            if name in m["initiators"] and ("account" not in m or (account and account[0] == m["account"])):
                luns = m["luns"]
        seen = {}
        for unit in luns.values():
            unit = unit if isinstance(unit, dict) else {"backstore": unit}
            path = self.file["backstores"][unit["backstore"]]["store"]
            seen[os.path.basename(path)] = not unit.get("read-only", False)
        return seen


def reached(rules, account):
    """What an initiator with this account reaches: it can take each name, and need not use the account."""
    reached = {}
    for name in NAMES:
        for a in (account, None):
            for unit, writes in rules.seen(name, a).items():
                reached[unit] = reached.get(unit, False) or writes
    return reached


@unittest.skipUnless(yaml, "needs python3-yaml")
class Access(Folder):
    def test_lio(self):
        seed, same, all_pairs = int(os.environ.get("IMPORT_SEED", "1")), 0, 0
        rng = random.Random(seed)
        for i in range(int(os.environ.get("IMPORT_FILES", "60"))):
            lio = File(rng)
            with open(self.path("saveconfig.json"), "w") as f:
                json.dump(lio.json(), f)
            os.mkdir(self.path("secrets"))
            out, notes = run_import("--secrets", self.path("secrets"), self.path("saveconfig.json"))
            iserd = Result(out)
            for account in [None] + ACCOUNTS:
                theirs, ours = reached(lio, account), reached(iserd, account)
                for unit, writes in ours.items():
                    self.assertTrue(unit in theirs and theirs[unit] >= writes, "seed %d, file %d, account %s, unit %s:\n%s\n%s\n%s" % (
                        seed, i, account, unit, json.dumps(lio.json(), indent=1), out, notes))
                same += sum(lio.seen(name, account) == iserd.seen(name, account) for name in NAMES)
                all_pairs += len(NAMES)
            shutil.rmtree(self.path("secrets"))
        self.assertGreater(same, all_pairs * 3 // 4)  # the rules are carried over, not only denied


if __name__ == "__main__":
    main()
