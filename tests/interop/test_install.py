#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The files of make install are sufficient to build and run a program."""
import os
import re
import subprocess
import tempfile
import unittest

from harness import ISER, Daemon, main, need

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(ISER))))


def sanitized():
    options = os.path.join(BUILD, "meson-info", "intro-buildoptions.json")
    with open(options) as f:
        return '"value": "none"' not in f.read().split('"name": "b_sanitize"')[1][:200]


def pkg_config(*args):
    return subprocess.run(["pkg-config", *args], check=True, stdout=subprocess.PIPE, text=True).stdout


def link_pc_files(folder, names):
    """Makes a folder with the .pc files of these libraries and of what they require, as a package manager does."""
    names = list(names)
    for name in names:
        os.symlink(os.path.join(pkg_config("--variable=pcfiledir", name).strip(), name + ".pc"), os.path.join(folder, name + ".pc"))
        required = pkg_config("--print-requires", "--print-requires-private", name)
        names += {line.split()[0] for line in required.splitlines()} - set(names)


class Packages(unittest.TestCase):
    """The commands of scripts/packages for other distributions than Debian."""
    def command(self, distribution):
        return subprocess.run([os.path.join(TOP, "scripts/packages"), "--command", distribution], check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    @need("meson", "ninja", "pkg-config")
    def test_the_packages_are_sufficient(self):
        """meson finds all that it requires in what the command of each distribution installs."""
        commands = {d: self.command(d) for d in ("fedora", "opensuse-leap", "alpine")}
        sets = {frozenset(re.findall(r"pkgconfig\(([^)]+)\)|pc:(\S+)", c)) for c in commands.values()}
        names = {frozenset(a or b for a, b in s) for s in sets}
        self.assertEqual(len(names), 1, commands)
        libraries = names.pop()
        with tempfile.TemporaryDirectory() as d:
            known = os.path.join(d, "pc")
            os.mkdir(known)
            link_pc_files(known, sorted(libraries))
            done = subprocess.run(["meson", "setup", os.path.join(d, "build"), TOP, "-Dtests=false", "-Dbench=false"],
                                  stdout=subprocess.PIPE, text=True, env=dict(os.environ, PKG_CONFIG_LIBDIR=known))
            self.assertEqual(done.returncode, 0, done.stdout[-1000:])
            found = re.findall(r"Run-time dependency (\S+) found: YES", done.stdout)
            self.assertLessEqual(libraries, set(found))

    def test_arch_has_a_package_for_each_library(self):
        """The libraries that meson.build requires have a package of Arch in the list of the script."""
        with open(os.path.join(TOP, "scripts/packages")) as f:
            pairs = dict(p.split("=") for line in re.findall(r'(?m)^(?:REQUIRED|OPTIONAL)="(.*)"', f.read()) for p in line.split())
        with open(os.path.join(TOP, "meson.build")) as f:
            text = f.read()
        required = {name for name, rest in re.findall(r"dependency\('([^']+)'(.*)\)", text)
                    if not rest or "get_option('daemon')" in rest} - {"threads", "dl", "libnbd"}
        self.assertLessEqual(required, set(pairs))
        self.assertLessEqual(set(pairs.values()), set(self.command("arch").split()))


class Install(unittest.TestCase):
    @unittest.skipIf(sanitized(), "a sanitizer's library needs a sanitizer's program")
    @need("meson", "pkg-config", "gcc")
    def test_example_against_the_installed_library(self):
        with tempfile.TemporaryDirectory() as d:
            subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", d],
                           check=True, stdout=subprocess.DEVNULL)
            pc = [os.path.join(a, f) for a, _, fs in os.walk(d) for f in fs if f == "libiser.pc"]
            self.assertEqual(len(pc), 1)
            files = {f for _, _, fs in os.walk(d) for f in fs}
            self.assertLessEqual({"iser.1", "iserctl.1", "iserd.8", "iser.h"}, {f.removesuffix(".gz") for f in files})
            env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pc[0]), PKG_CONFIG_SYSROOT_DIR=d)
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libiser"], env=env, check=True,
                                   stdout=subprocess.PIPE, text=True).stdout.split()
            program = os.path.join(d, "read_first_block")
            subprocess.run(["gcc", "-Wall", "-Werror", os.path.join(TOP, "examples/read_first_block.c"),
                            "-o", program] + flags, check=True)
            lib = os.path.dirname(next(os.path.join(a, f) for a, _, fs in os.walk(d) for f in fs
                                       if f == "libiser.so.1"))
            with Daemon("ram:1M") as daemon:
                out = subprocess.run([program, daemon.url], env=dict(os.environ, LD_LIBRARY_PATH=lib),
                                     check=True, stdout=subprocess.PIPE, text=True, timeout=30).stdout
            self.assertIn("2048 blocks of 512 bytes", out)
            # the library exports the public names only
            names = subprocess.run(["nm", "-D", "--defined-only", os.path.join(lib, "libiser.so.1")], check=True,
                                   stdout=subprocess.PIPE, text=True).stdout
            for line in names.splitlines():
                self.assertRegex(line.split()[-1], r"^(iser_|LIBISER_1)")

    @need("meson", "ninja", "pkg-config")
    def test_the_library_needs_no_json_and_no_cmocka(self):
        """The library can be configured without both, and no object of the library includes their headers."""
        with tempfile.TemporaryDirectory() as d:
            known = os.path.join(d, "pc")
            os.mkdir(known)
            link_pc_files(known, ["libisal", "liburing", "libcrypto"])
            build = os.path.join(d, "build")
            subprocess.run(["meson", "setup", build, TOP, "-Ddaemon=false", "-Dtools=disabled", "-Dtests=false",
                            "-Dbench=false"], check=True, stdout=subprocess.DEVNULL,
                           env=dict(os.environ, PKG_CONFIG_LIBDIR=known))
            targets = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], check=True, stdout=subprocess.PIPE,
                                     text=True).stdout
            self.assertIn("src/lib/libiser.so", targets)
            for program in ("src/daemon/", "src/tools/iser:", "src/tools/iserctl", "tests/"):
                self.assertNotIn("\n" + program, targets)
        deps = subprocess.run(["ninja", "-C", BUILD, "-t", "deps"], check=True, stdout=subprocess.PIPE, text=True).stdout
        ours = [text for text in deps.split("\n\n") if text.startswith("src/lib")]
        self.assertGreater(len(ours), 50)
        for text in ours:
            self.assertNotRegex(text, r"/(jansson|cmocka)\.h")


if __name__ == "__main__":
    main()
