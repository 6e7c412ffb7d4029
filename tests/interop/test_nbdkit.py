#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The nbdkit plugin with nbdkit, libnbd's tools and QEMU, against iserd."""
import json
import os
import re
import subprocess
import unittest

from harness import ISER, WAYS, Daemon, Folder, Secrets, main, make_image, need, over, run, sha256

BUILD = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(ISER))))
PLUGIN = os.path.join(BUILD, "src/nbdkit/nbdkit-iser-plugin.so")


def usable():
    """Returns whether nbdkit can load the plugin: not with a sanitizer."""
    if not os.path.exists(PLUGIN):
        return False
    done = subprocess.run(["ldd", PLUGIN], stdout=subprocess.PIPE, text=True)
    return "libasan" not in done.stdout


def serve(url, command, *args, check=True):
    """Runs a shell command with nbdkit in front of the unit; $uri is its address."""
    return run(["nbdkit", "-U", "-", PLUGIN, url, *args, "--run", command], check=check)


def qemu_io(*commands):
    return "qemu-io -f raw %s $uri" % " ".join("-c '%s'" % c for c in commands)


@need("nbdkit", "nbdinfo", "nbdcopy", "qemu-img", "qemu-io")
@unittest.skipUnless(usable(), "the plugin is not built, or has a sanitizer")
class Plugin(Folder):
    def test_properties(self):
        with Daemon("--block-size", "4096", "ram:64M") as d:
            text = serve(d.url, "nbdinfo --json $uri").text
            info = json.loads(text)["exports"][0]
            self.assertEqual(info["export-size"], 64 << 20)
            self.assertEqual(info["block_size_minimum"], 4096)
            self.assertIn("LUN 0", info["description"])
            for name in ("can_flush", "can_fua", "can_trim", "can_zero", "can_fast_zero", "can_multi_conn"):
                self.assertTrue(info[name], name)
            self.assertFalse(info["is_read_only"])

    def test_copy_over_each_way(self):
        """An image to the unit and back, with several connections."""
        image, back = self.path("image"), self.path("back")
        make_image(image)
        for way in WAYS:
            with self.subTest(way), Daemon("--workers", "2", "ram:24M") as d:
                serve(over(d.url, way), "nbdcopy --flush %s $uri && nbdcopy $uri %s" % (image, back))
                self.assertEqual(sha256(image), sha256(back))
                run(["nbdkit", "-U", "-", PLUGIN, over(d.url, way), "--run",
                     "qemu-img compare -f raw -F raw $uri " + image])

    def test_extents(self):
        """Holes of the unit are holes of the export; a hole is not copied."""
        image = self.path("image")
        make_image(image)
        with Daemon("ram:24M") as d:
            serve(d.url, "nbdcopy %s $uri" % image)
            text = serve(d.url, "nbdinfo --map --json $uri").text
            extents = json.loads(text)
            self.assertEqual(sum(e["length"] for e in extents), 24 << 20)
            data = [(e["offset"], e["length"]) for e in extents if e["type"] == 0]
            self.assertEqual(data, [(0, 3 << 20), (10 << 20, 1 << 20)])
            self.assertTrue(all(e["type"] == 3 for e in extents if e["type"]))

    def test_requests(self):
        """WRITE with FUA, zeros, fast zeros, discard, at all kinds of offsets."""
        with Daemon("ram:8M") as d:
            serve(d.url, qemu_io("write -P 7 0 1M", "write -f -P 8 4096 512", "write -z -u 64k 64k",
                                 "write -z 256k 64k", "discard 512k 64k", "flush",
                                 "read -P 7 0 4096", "read -P 8 4096 512", "read -P 7 4608 60928",
                                 "read -P 0 64k 64k", "read -P 7 128k 128k", "read -P 0 256k 64k",
                                 "read -P 0 512k 64k", "read -P 7 576k 448k"))
            with_map = json.loads(serve(d.url, "nbdinfo --map --json $uri").text)
            holes = [(e["offset"], e["length"]) for e in with_map if e["type"] == 3]
            self.assertEqual(holes, [(64 << 10, 64 << 10), (512 << 10, 64 << 10), (1 << 20, 7 << 20)])

    def test_partial_blocks(self):
        """nbdkit passes requests that are smaller than a block if its filter advertises that."""
        image = self.path("image")
        with open(image, "wb") as f:
            f.write(os.urandom(1000003))
            f.truncate((1 << 20) + 1)
        with Daemon("ram:8M") as d:
            # offset makes all requests of the client unaligned for the unit
            run(["nbdkit", "-U", "-", "--filter=blocksize-policy", "--filter=offset", PLUGIN, d.url,
                 "offset=77", "range=%d" % ((1 << 20) + 1), "blocksize-minimum=1", "blocksize-error-policy=allow",
                 "--run", "nbdcopy %s $uri && nbdcopy $uri %s" % (image, image + ".back")])
            self.assertEqual(sha256(image), sha256(image + ".back"))

    def test_read_only(self):
        with Daemon("ram:8M", "--read-only") as d:
            info = json.loads(serve(d.url, "nbdinfo --json $uri").text)["exports"][0]
            self.assertTrue(info["is_read_only"])
            done = serve(d.url, qemu_io("write 0 4k"), check=False)
            self.assertNotEqual(done.returncode, 0)

    def test_chap(self):
        """A secret in a file does not appear in the process list."""
        with Secrets() as c, Daemon(*c.args, "ram:8M") as d:
            mine, theirs = (os.path.join(c.dir.name, n) for n in ("chap", "chap-mutual"))
            serve(d.url, "nbdinfo --size $uri", "user=me", "password=+" + mine)
            serve(d.url, "nbdinfo --size $uri", "user=me", "password=+" + mine, "target-user=disk",
                  "target-password=+" + theirs)
            for wrong in (["user=me", "password=wrong wrong wrong"], []):
                done = serve(d.url, "nbdinfo --size $uri", *wrong, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.text, "authentication|login|CHAP")

    def test_command_line(self):
        for args, text in (([], "no URL"), (["http://x"], "not an iscsi"), (["iscsi://h/t/0", "colour=red"], "unknown parameter"),
                           (["iscsi://h/t/0", "user=a", "user=b"], "given twice"),
                           (["iscsi://h/t/0", "user=" + "x" * 300], "longer than")):
            done = run(["nbdkit", "-U", "-", PLUGIN, *args, "--run", "true"], check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.text)
        self.assertIn("password=SECRET", run(["nbdkit", "--help", PLUGIN]).text)
        self.assertRegex(run(["nbdkit", "--dump-plugin", PLUGIN]).text, r"(?m)^iser_version=\d")

    def test_lost_target(self):
        """A target that is gone: the client gets an error, and nbdkit goes on."""
        d = Daemon("ram:8M")
        d.kill()
        done = serve(d.url, qemu_io("read 0 4k"), check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.text, "refused|could not connect")

    @need("fio")
    def test_many_connections(self):
        """Four connections with 16 requests each; fio checks the data."""
        with Daemon("--workers", "2", "ram:64M") as d:
            done = serve(d.url, "fio --name=v --ioengine=nbd --uri=$uri --rw=randrw --bsrange=4k-128k --iodepth=16 "
                         "--size=16M --io_size=32M --verify=crc32c --numjobs=4 --offset_increment=16M --norandommap=0 "
                         "--direct=0", check=False)
            if "engine nbd not loadable" in done.text:
                self.skipTest("fio without libnbd")
            self.assertEqual(done.returncode, 0, done.text[-2000:])
            self.assertNotIn("verify failed", done.text)
            self.assertTrue(re.search(r"err= 0", done.text))


if __name__ == "__main__":
    main()
