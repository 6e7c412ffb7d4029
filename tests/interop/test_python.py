#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Python module openiser, and through it libiser, against iserd and tgt."""
import asyncio
import ctypes
import errno
import gc
import inspect
import itertools
import os
import random
import re
import subprocess
import sys
import threading
import time
import unittest
import warnings

from harness import ISER, ISERCTL, WAYS, Daemon, Folder, Secrets, main, make_image, need, over, patience, quiet_port, run, sha256, sparse
from test_iser import Tgt

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(ISER))))
# OPENISER_LIBRARY: of another build, for tests of an iserd with sanitizers
LIBRARY = os.environ.get("OPENISER_LIBRARY") or os.path.join(BUILD, "src/lib/libiser.so.1")


def load():
    """Imports the module of this tree with the library of this build; None: not possible, because a library with
    AddressSanitizer ends a program without it."""
    with open(LIBRARY, "rb") as f:
        if b"__asan_init" in f.read():
            return None
    os.environ["OPENISER_LIBRARY"] = LIBRARY
    sys.path.insert(0, os.path.join(TOP, "python"))
    try:
        import openiser
        import openiser.aio
        return openiser
    finally:
        sys.path.pop(0)


openiser = load()
ENV = dict(os.environ, OPENISER_LIBRARY=LIBRARY, PYTHONPATH=os.path.join(TOP, "python"))


def random_bytes(length, seed):
    return random.Random(seed).randbytes(length)


def exercise(case, disk, rounds=60):
    """Random requests of any offset and length, compared with a copy."""
    size = 1 << 20
    rnd = random.Random(1)
    model = bytearray(disk.pread(size, 0))
    for i in range(rounds):
        at = rnd.randrange(size)
        length = rnd.randrange(1, min(size - at, rnd.choice((100, 5000, size))) + 1)
        kind = rnd.randrange(3)
        if kind == 0:
            case.assertEqual(disk.pread(length, at), model[at:at + length])
        elif kind == 1:
            data = random_bytes(length, i)
            disk.pwrite(data, at, fua=bool(i & 1))
            model[at:at + length] = data
        else:
            disk.zero(at, length, may_unmap=bool(i & 1))
            model[at:at + length] = bytes(length)
    case.assertEqual(disk.pread(size, 0), model)


@unittest.skipUnless(openiser, "libiser cannot be loaded by this Python")
class Blocking(Folder):
    def test_random_requests_over_each_way(self):
        with Daemon("--workers", "2", "ram:8M") as d:
            for way in WAYS:
                with self.subTest(way), openiser.connect(over(d.url, way)) as disk:
                    self.assertEqual(disk.transport, "tcp" if way == "tcp" else "iser")
                    exercise(self, disk)

    def test_unit_of_another_size(self):
        """extents() is of the size that the unit has now; nothing is sent to a unit that became smaller."""
        sparse(self.path("disk"), 1 << 20)
        control = ["-s", self.path("control"), "resize", "lun0"]
        with Daemon("--control", self.path("control"), self.path("disk")) as d, openiser.connect(d.url) as disk:
            run([ISERCTL, *control, "size=3M"])
            self.assertEqual(sum(e.length for e in disk.extents()), 3 << 20)
            self.assertEqual(disk.size, 3 << 20)
            disk.pwrite(b"z" * 4096, (3 << 20) - 4096)
            run([ISERCTL, *control, "size=2M", "force=yes"])
            with self.assertRaises(openiser.Error) as e:
                disk.pread(4096, 0)
            self.assertEqual(e.exception.code, openiser.ErrorCode.CHANGED)

    def test_random_requests_with_4k_blocks(self):
        with Daemon("--block-size", "4096", "ram:8M") as d, openiser.connect(d.url) as disk:
            self.assertEqual(disk.block_size, 4096)
            exercise(self, disk)

    def test_info(self):
        with Daemon("ram:8M", "null:1G") as d:
            with openiser.connect(d.url) as disk:
                i = disk.info
                self.assertEqual((disk.size, disk.block_size), (8 << 20, 512))
                self.assertTrue(i.thin and i.can_trim and i.has_fua and i.atomic_partial and not i.read_only)
                self.assertEqual(i.vendor, "OPENISER")
                self.assertEqual(disk.refresh(), i)
                self.assertLess(disk.ping(1000), patience(5))
                disk.manage_tasks(openiser.Function.LUN_RESET)
                disk.flush()
            with openiser.connect(d.urls[1]) as disk:
                self.assertEqual(disk.size, 1 << 30)
        self.assertRegex(openiser.version(), r"^\d+\.\d+\.\d+$")

    def test_extents_and_trim(self):
        with Daemon("ram:8M") as d, openiser.connect(d.url) as disk:
            disk.pwrite(b"x" * 10000, 1 << 20)
            disk.pwrite(b"y" * 512, 3 << 20)
            mapped = [(e.offset, e.length) for e in disk.extents() if e.mapped]
            self.assertEqual(len(mapped), 2)
            self.assertEqual(sum(e.length for e in disk.extents()), 8 << 20)
            disk.trim(0, 2 << 20)
            mapped = [e.offset for e in disk.extents() if e.mapped]
            self.assertEqual(mapped, [3 << 20])
            self.assertEqual([e.length for e in disk.extents(3 << 20, 100)], [100])
            self.assertEqual(disk.pread(10000, 1 << 20), bytes(10000))
            self.assertTrue(all(e.zeros != e.mapped for e in disk.extents()))
            self.assertEqual(disk.extents(5, 0), [])

    def test_buffers(self):
        with Daemon("ram:8M") as d, openiser.connect(d.url) as disk:
            for data in (b"bytes", bytearray(b"bytearray"), memoryview(b"read-only view"),
                         memoryview(bytearray(b"xxview"))[2:], (ctypes.c_int * 3)(1, 2, 3)):
                disk.pwrite(data, 77)
                want = bytes(memoryview(data).cast("B"))
                self.assertEqual(disk.pread(len(want), 77), want)
                into = bytearray(len(want) + 2)
                disk.preadinto(memoryview(into)[1:-1], 77)
                self.assertEqual(bytes(into), b"\0" + want + b"\0")
                into += b"grows"  # the library does not keep the memory
            with self.assertRaises(TypeError):
                disk.preadinto(b"read-only", 0)
            with self.assertRaises(TypeError):
                disk.pwrite(memoryview(bytearray(20))[::2], 0)
            disk.pwrite(b"", 0)
            self.assertEqual(disk.pread(0, 8 << 20), b"")

    def test_errors(self):
        with Daemon("ram:8M", "--read-only") as d, openiser.connect(d.url) as disk:
            with self.assertRaises(openiser.ScsiError) as c:
                disk.pwrite(b"x" * 512, 0)
            self.assertEqual((c.exception.errno, c.exception.sense_key), (errno.EROFS, 7))
            self.assertIn("WRITE of 512 bytes", str(c.exception))
            for bad in (lambda: disk.pread(1, 8 << 20), lambda: disk.pread(2, (8 << 20) - 1)):
                with self.assertRaises(openiser.Error) as c:
                    bad()
                self.assertEqual(c.exception.code, openiser.ErrorCode.INVALID)
            with self.assertRaises(ValueError):
                disk.pread(1, -1)
            with self.assertRaises(openiser.Error) as c:
                disk.trim(0, 4096)
            self.assertEqual(c.exception.errno, errno.EOPNOTSUPP)

    def test_compare_and_write(self):
        with Daemon("ram:8M") as d, openiser.connect(d.url) as disk:
            disk.compare_and_write(bytes(512), b"a" * 512, 512)
            with self.assertRaises(openiser.MiscompareError) as c:
                disk.compare_and_write(b"a" * 300 + b"b" * 212, bytes(512), 512)
            self.assertEqual(c.exception.offset, 300)
            self.assertEqual(disk.pread(512, 512), b"a" * 512)

    def test_partial_blocks_of_two_disks(self):
        """Two initiators write the bytes of one block in turn; none is lost."""
        with Daemon("--workers", "2", "ram:8M") as d:
            def fill(disk, at):
                for i in range(at, 512, 2):
                    disk.pwrite(bytes([i & 255]), i)
            with openiser.connect(d.url) as a, openiser.connect(over(d.url, "rdma")) as b:
                threads = [threading.Thread(target=fill, args=x) for x in ((a, 0), (b, 1))]
                for t in threads:
                    t.start()
                for t in threads:
                    t.join()
                self.assertEqual(a.pread(512, 0), bytes(i & 255 for i in range(512)))

    def test_commands(self):
        with Daemon("ram:8M") as d, openiser.connect(d.url) as disk:
            reply = disk.command(b"\x12\0\0\0\xff\0", read=255)
            self.assertEqual(reply.data[8:16], b"OPENISER")
            self.assertEqual(reply.transferred, len(reply.data))
            disk.command(b"\x2a\0\0\0\0\0\0\0\1\0", write=b"w" * 512)
            self.assertEqual(disk.pread(3, 0), b"www")
            with self.assertRaises(openiser.ScsiError) as c:
                disk.command(b"\xff" + bytes(5))
            self.assertEqual((c.exception.status, c.exception.sense_key, c.exception.asc), (2, 5, 0x2000))
            self.assertTrue(c.exception.sense)
            for bad in (b"", bytes(33)):
                with self.assertRaises(ValueError):
                    disk.command(bad)

    def test_connect_failures(self):
        for url, code in (("http://x", "INVALID"), ("iscsi://127.0.0.1:1/iqn.t/0", "CONNECT")):
            with self.assertRaises(openiser.Error) as c:
                openiser.connect(url)
            self.assertEqual(c.exception.code, openiser.ErrorCode[code])
        with Daemon("ram:8M") as d:
            with self.assertRaises(openiser.Error) as c:
                openiser.connect(d.url.replace("/0", "/9"))
            self.assertEqual(c.exception.code, openiser.ErrorCode.NOT_FOUND)

    def test_chap_and_discovery(self):
        with Secrets() as s, Daemon(*s.args, "ram:8M") as d:
            with openiser.connect(s.url(d.url, target="staple in the attic")) as disk:
                self.assertEqual(disk.size, 8 << 20)
            with self.assertRaises(openiser.Error) as c:
                openiser.connect(s.url(d.url, password="wrong wrong wrong"))
            self.assertEqual(c.exception.code, openiser.ErrorCode.AUTH)
            found = openiser.discover(s.url("iscsi://" + d.portal))
            self.assertEqual([t.name for t in found], [d.target])
            self.assertEqual(found[0].portals, [d.portal + ",1"])

    def test_closed_disk(self):
        with Daemon("ram:8M") as d:
            disk = openiser.connect(d.url)
            disk.close()
            disk.close()
            for call in (lambda: disk.size, lambda: disk.pread(1, 0), lambda: disk.command(bytes(6)), disk.flush):
                with self.assertRaises(ValueError):
                    call()
            disk = openiser.connect(d.url)
            with warnings.catch_warnings(record=True) as w:
                warnings.simplefilter("always")
                del disk
                gc.collect()
            self.assertTrue(any(x.category is ResourceWarning for x in w))

    def test_lost_target(self):
        d = Daemon("ram:8M")
        with openiser.connect(d.url) as disk:
            d.kill()
            with self.assertRaises(openiser.Error) as c:
                disk.pread(512, 0)
            self.assertIn(c.exception.code, (openiser.ErrorCode.CLOSED, openiser.ErrorCode.CONNECT))

    def test_requests_survive_a_restart(self):
        """With reconnect=N, requests of any offset go on after iserd was killed, and no byte is lost."""
        image = sparse(self.path("image"), 4 << 20)
        args = ("--listen", "127.0.0.1:%d" % quiet_port(), "--buffered", image)
        d = Daemon(*args)
        model = bytearray(4 << 20)
        failures = []
        stop = threading.Event()
        self.addCleanup(stop.set)

        def write(disk):
            rnd = random.Random(3)
            try:
                for i in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
                    at, data = rnd.randrange(3 << 20), random_bytes(rnd.randrange(1, 3000), i)
                    disk.pwrite(data, at)
                    model[at:at + len(data)] = data
            except openiser.Error as e:
                failures.append(e)

        with openiser.connect(d.url + "?reconnect=100") as disk:
            thread = threading.Thread(target=write, args=(disk,))
            thread.start()
            for _ in range(4):
                time.sleep(0.2)
                d.kill()
                d = Daemon(*args)
            time.sleep(0.2)
            stop.set()
            thread.join(patience(60))
            self.assertEqual(failures, [])
            self.assertEqual(disk.pread(4 << 20, 0), model)
        self.assertEqual(d.stop(), 0)

    @need("tgtd", "tgtadm")
    def test_tgt(self):
        image = self.path("image")
        make_image(image, 16 << 20)
        with Tgt(image) as t, openiser.connect(t.url) as disk:
            self.assertEqual(disk.pread(3 << 20, 0), open(image, "rb").read(3 << 20))
            exercise(self, disk)

    def test_examples(self):
        source, destination = self.path("a"), self.path("b")
        make_image(source)
        make_image(destination)
        with Daemon(source, destination) as d:
            for args in ([d.url], [d.url, "0x10", "4"]):
                done = subprocess.run([sys.executable, os.path.join(TOP, "examples/read.py"), *args], env=ENV, check=True,
                                      stdout=subprocess.PIPE, text=True, timeout=patience(30))
                self.assertIn("25165824 bytes", done.stdout)
            with open(source, "rb") as f:
                self.assertEqual(done.stdout.splitlines()[-1], f.read(20)[16:].hex(" "))
            run([sys.executable, os.path.join(TOP, "examples/copy_async.py"), *d.urls], env=ENV)
        self.assertEqual(sha256(source), sha256(destination))


@unittest.skipUnless(openiser, "libiser cannot be loaded by this Python")
class Async(unittest.TestCase):
    def run_with(self, test, *args, url=lambda u: u):
        async def session(address):
            async with await openiser.aio.connect(address) as disk:
                await asyncio.wait_for(test(disk), patience(30))

        with Daemon(*(args or ("ram:8M",))) as d:
            asyncio.run(session(url(d.url)))

    def test_many_requests_over_each_way(self):
        async def test(disk):
            pieces = [(i * 3001, random_bytes(3001, i)) for i in range(300)]
            await asyncio.gather(*(disk.pwrite(data, at) for at, data in pieces))
            got = await asyncio.gather(*(disk.pread(3001, at) for at, _ in pieces))
            self.assertEqual(got, [data for _, data in pieces])
            await disk.flush()
            await disk.zero(0, 3001)
            self.assertEqual(await disk.pread(6002, 0), bytes(3001) + pieces[1][1])

        for way in WAYS:
            with self.subTest(way):
                self.run_with(test, url=lambda u, way=way: over(u, way))

    def test_all_calls(self):
        async def test(disk):
            self.assertEqual((disk.size, disk.block_size, disk.transport), (8 << 20, 512, "tcp"))
            await disk.trim(0, 8 << 20)
            await disk.compare_and_write(bytes(512), b"q" * 512, 512)
            with self.assertRaises(openiser.MiscompareError):
                await disk.compare_and_write(bytes(512), b"q" * 512, 512)
            self.assertEqual([(e.offset, e.length) for e in await disk.extents() if e.mapped][0][0] <= 512, True)
            self.assertEqual((await disk.command(b"\x12\0\0\0\x24\0", read=36)).data[8:16], b"OPENISER")
            self.assertGreater(await disk.ping(), 0)
            await disk.manage_tasks(openiser.Function.LUN_RESET)
            self.assertEqual((await disk.refresh()).size, 8 << 20)

        self.run_with(test)

    def test_cancelled_requests(self):
        """The memory of a request stays valid after its task was cancelled."""
        async def test(disk):
            for _ in range(30):
                tasks = [asyncio.ensure_future(disk.pread(1 << 20, 0)) for _ in range(4)]
                tasks.append(asyncio.ensure_future(disk.command(b"\x28" + bytes(6) + b"\1\0\0", read=256 * 512)))
                await asyncio.sleep(0)
                for t in tasks:
                    t.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
                self.assertTrue(all(isinstance(e, asyncio.CancelledError) for e in ended))
                gc.collect()
            self.assertEqual(await disk.pread(512, 0), bytes(512))

        self.run_with(test)
        self.assertEqual(len(openiser._core._registry), 0)

    def test_cancelled_connect(self):
        async def connect(url):
            for turns in (0, 1, 2, 3, 5, 8):
                task = asyncio.ensure_future(openiser.aio.connect(url))
                for _ in range(turns):
                    await asyncio.sleep(0.001)
                task.cancel()
                try:
                    disk = await task
                except asyncio.CancelledError:
                    continue
                await disk.close()

        with Daemon("ram:8M") as d:
            asyncio.run(connect(d.url))
            self.assertEqual(len(openiser._core._registry), 0)

    def test_discovery(self):
        with Daemon("ram:8M") as d:
            found = asyncio.run(openiser.aio.discover(d.portal))
            self.assertEqual([t.name for t in found], [d.target])
            with self.assertRaises(openiser.Error):
                asyncio.run(openiser.aio.discover("127.0.0.1:1"))

    def test_two_targets_in_one_loop(self):
        async def test(urls):
            disks = await asyncio.gather(*(openiser.aio.connect(u) for u in urls))
            await asyncio.gather(*(d.pwrite(b"%d" % i * 10000, 5) for i, d in enumerate(disks)))
            data = await asyncio.gather(*(d.pread(10000, 5) for d in disks))
            self.assertEqual(data, [b"%d" % i * 10000 for i in range(len(disks))])
            await asyncio.gather(*(d.close() for d in disks))

        with Daemon("ram:8M") as a, Daemon("--workers", "2", "ram:8M", "ram:8M") as b:
            asyncio.run(test(a.urls + b.urls))

    def test_lost_target(self):
        """Requests in progress end with an error; other tasks go on."""
        async def test():
            async with await openiser.aio.connect(d.url) as disk:
                d.kill()
                ended = await asyncio.gather(*(disk.pread(512, 0) for _ in range(5)), return_exceptions=True)
                self.assertTrue(all(isinstance(e, openiser.Error) for e in ended))

        d = Daemon("ram:8M")
        asyncio.run(asyncio.wait_for(test(), patience(20)))


@unittest.skipUnless(openiser, "libiser cannot be loaded by this Python")
class Layout(unittest.TestCase):
    """The structs of the module are those of the headers."""

    STRUCTS = {"iser_url": "Url", "iser_target": "Target", "iser_portal": "Portal", "iser_params": "Params",
               "iser_io": "Io", "iser_unit_info": "UnitInfo", "iser_range": "Range", "iser_request": "Request",
               "iovec": "Iovec"}
    RENAMED = {"base": "iov_base", "len": "iov_len"}

    @need("gcc")
    def test_offsets(self):
        native = sys.modules["openiser._native"]
        lines, want = [], []
        for c_name, name in self.STRUCTS.items():
            struct = getattr(native, name)
            want.append("%s %d" % (c_name, ctypes.sizeof(struct)))
            lines.append('printf("%s %%zu\\n", sizeof(struct %s));' % (c_name, c_name))
            for field in struct._fields_:
                member = self.RENAMED.get(field[0], field[0]) if c_name == "iovec" else field[0]
                want.append("%s.%s %d" % (c_name, member, getattr(struct, field[0]).offset))
                lines.append('printf("%s.%s %%zu\\n", offsetof(struct %s, %s));' % (c_name, member, c_name, member))
        text = "#include <iser/unit.h>\n#include <stdio.h>\nint main(void) {\n%s\nreturn 0; }\n" % "\n".join(lines)
        program = os.path.abspath("layout")
        subprocess.run(["gcc", "-x", "c", "-", "-I", os.path.join(TOP, "include"), "-o", program], input=text, check=True,
                       text=True)
        self.assertEqual(run([program]).text.splitlines(), want)

    def test_codes(self):
        """Error codes, functions and operations."""
        with open(os.path.join(TOP, "include/iser/iser.h")) as f:
            header = f.read()
        codes = {k: int(v) for k, v in re.findall(r"\bISER_E_(\w+) = (-\d+)", header)}
        self.assertEqual({c.name: c.value for c in openiser.ErrorCode}, codes)
        functions = {k: int(v) for k, v in re.findall(r"\bISER_(\w+_(?:RESET|SET)) = (\d+)", header)}
        self.assertEqual({c.name: c.value for c in openiser.Function}, functions)
        with open(os.path.join(TOP, "include/iser/unit.h")) as f:
            ops = re.findall(r"^\tISER_OP_(\w+)(?: = 1)?,", f.read().split("enum iser_op_flags")[0], re.M)
        self.assertEqual([o.name for o in openiser._core.Op], ops)

    def test_both_interfaces_have_the_same_calls(self):
        def calls(c):
            return {k: str(inspect.signature(v)) for k, v in vars(c).items()
                    if callable(v) and not k.startswith("_")}
        self.assertEqual(calls(openiser.Disk), calls(openiser.aio.Disk))
        for name, value in vars(openiser.Disk).items():
            if not name.startswith("_"):
                self.assertTrue(value.__doc__, name)

    @need("mypy")
    def test_types(self):
        # the decorators of ctypes have no types
        run(["mypy", "--strict", "--allow-untyped-decorators", "--cache-dir", os.devnull,
             os.path.join(TOP, "python/openiser")])


if __name__ == "__main__":
    main()
