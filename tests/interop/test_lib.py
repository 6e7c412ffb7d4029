#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The interface of libiser: symbols, manual pages of section 3, and a program that uses the unit calls over each
kind of connection."""
import glob
import os
import re
import subprocess
import unittest

from harness import ISER, WAYS, Daemon, Folder, main, need, over, run
from test_iser import Tgt

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(ISER))))
LIBRARY = os.path.join(BUILD, "src/lib/libiser.so.1")
MAN = os.path.join(TOP, "docs/man")


def headers():
    """Returns the functions that the headers declare."""
    text = "".join(open(p).read() for p in glob.glob(os.path.join(TOP, "include/iser/*.h")))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"^ISER_API\b[^;(]*?(\w+)\(", text, re.M))


class Interface(Folder):
    def test_generated_files(self):
        """The pages and the symbol map are those of the headers."""
        self.assertEqual(run([os.path.join(TOP, "scripts/api")]).text, "")

    @need("nm")
    def test_symbols(self):
        names = run(["nm", "-D", "--defined-only", "--with-symbol-versions", LIBRARY]).text
        found = dict(re.findall(r" T (\w+)@@(\w+)$", names, re.M))
        self.assertEqual(set(found), headers())
        self.assertEqual(set(found.values()), {"LIBISER_1"})

    @need("man")
    def test_pages(self):
        """man reports no warning, and each function has its page."""
        documented = set()
        for path in sorted(glob.glob(MAN + "/*.3")):
            for width in ("80", "100"):
                done = run(["man", "--warnings", "-E", "UTF-8", "-l", path], env=dict(os.environ, MANWIDTH=width))
                self.assertNotRegex(done.text, r"warning|error:", path)
            with open(path) as f:
                documented |= set(re.findall(r"^\.It Fn (\w+)", f.read(), re.M))
        self.assertEqual(documented, headers())

    @need("gcc")
    def test_example_of_the_overview(self):
        """The program of libiser.3 compiles without a warning and works, over TCP, iSER and with tgt."""
        with open(MAN + "/libiser.3") as f:
            source = re.search(r"(#include.*?)\n\.Ed", f.read(), re.S)[1].replace("\\e", "\\")
        program = self.path("hello")
        with open(LIBRARY, "rb") as f:
            if b"__asan_init" in f.read():
                raise unittest.SkipTest("a sanitizer's library needs a sanitizer's program")
        subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-x", "c", "-", "-I", os.path.join(TOP, "include"), "-o",
                        program, "-x", "none", LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY)], input=source.replace("\n.\n", "\n"),
                       check=True, text=True)
        with Daemon("ram:1M") as d:
            for way in WAYS:
                self.assertEqual(run([program, over(d.url, way)]).text, "hello\n")
        with open(self.path("image"), "wb") as f:
            f.truncate(1 << 20)
        with Tgt(f.name) as t:
            self.assertEqual(run([program, t.url]).text, "hello\n")
        with open(f.name, "rb") as f:
            f.seek(1000)
            self.assertEqual(f.read(6), b"hello\0")
        done = run([program, "iscsi://127.0.0.1:1/iqn.t/0"], check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("127.0.0.1", done.text)


if __name__ == "__main__":
    main()
