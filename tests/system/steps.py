# SPDX-License-Identifier: BSD-2-Clause
"""Steps of the system test: programs that must succeed, and the printed table."""
import hashlib
import os
import select
import subprocess
import time


class Failed(Exception):
    """A step failed; the text is the reason."""


def run(*args):
    """Returns the output of a program that must succeed within a minute."""
    try:
        done = subprocess.run(args, stdin=subprocess.DEVNULL, timeout=60,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    except FileNotFoundError:
        raise Failed("%s is not installed" % args[0])
    except subprocess.TimeoutExpired:
        raise Failed("%s took more than a minute" % args[0])
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        last = (text.strip().splitlines() or ["no message"])[-1]
        raise Failed("%s ended with %d: %s" % (args[0], done.returncode, last))
    return text


def start(*args):
    """Starts a program in the background; returns its Popen object."""
    try:
        return subprocess.Popen(args, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE)
    except OSError as e:
        raise Failed("%s: cannot start: %s" % (args[0], e.strerror))


def first_lines(proc, count):
    """Returns the first lines of a program that start() started, or fails after 10 s
    without output."""
    text = b""
    while text.count(b"\n") < count:
        if not select.select([proc.stdout], [], [], 10)[0]:
            raise Failed("%s is not ready after 10 s" % proc.args[0])
        more = os.read(proc.stdout.fileno(), 4096)
        if not more:
            raise Failed("%s ended with %d" % (proc.args[0], proc.wait()))
        text += more
    return text.decode().splitlines()


def sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        for piece in iter(lambda: f.read(1 << 20), b""):
            h.update(piece)
    return h.hexdigest()


class Table:
    """Prints each step at its end: name, result, figures or duration."""

    def __init__(self):
        self.failed = 0
        self.began = time.monotonic()
        print("%-46s %-6s %s" % ("step", "result", "figures"))
        print("-" * 79)

    def step(self, name, function, *args):
        """Calls function; returns whether the step succeeded. The function returns the
        text of the last column, or None for the duration."""
        began = time.monotonic()
        try:
            result, text = "ok", function(*args)
        except Failed as e:
            result, text = "FAILED", str(e)
            self.failed += 1
        took = time.monotonic() - began
        print("%-46s %-6s %s" % (name, result, text or "%.2f s" % took),
              flush=True)
        return result == "ok"

    def end(self):
        """Prints the last line; returns the exit status."""
        print("-" * 79)
        print("%s in %.0f s" % ("all steps passed" if not self.failed else
                                "%d steps FAILED" % self.failed,
                                time.monotonic() - self.began))
        return 1 if self.failed else 0
