# SPDX-License-Identifier: BSD-2-Clause
"""The iserd of the system test, which serves three units of one size on one port."""
import json
import os
import signal
import subprocess

from image import IMAGE_BYTES
from steps import Failed, first_lines, run, start


class Iserd:
    """LUN 0 is the file served, LUN 1 the file blank, LUN 2 memory."""

    def __init__(self, build, image):
        self.program = os.path.join(build, "iserd")
        self.iserctl = os.path.join(build, "iserctl")
        self.image = image
        self.socket = image.path("ctl")
        self.proc = None
        self.urls = []
        self.portal = None

    def serve(self):
        self.proc = start(
            self.program, "serve", "--listen", "127.0.0.1:0", "--log", "error",
            "--control", self.socket, self.image.path("served"),
            self.image.path("blank"), "ram:%d" % IMAGE_BYTES)
        self.urls = first_lines(self.proc, 3)
        self.portal = self.urls[0].split("/")[2]
        return "file, file and memory at %s" % self.portal

    def shut_down(self):
        self.proc.send_signal(signal.SIGTERM)
        try:
            status = self.proc.wait(15)
        except subprocess.TimeoutExpired:
            raise Failed("iserd did not end within 15 s")
        if status:
            raise Failed("iserd ended with %d" % status)

    def kill(self):
        """Kills iserd if it runs."""
        if self.proc and self.proc.poll() is None:
            self.proc.kill()

    def memory(self):
        with open("/proc/%d/status" % self.proc.pid) as f:
            kib = dict(line.split(":", 1) for line in f)["RssAnon"].split()[0]
        return "%.1f MiB anonymous memory" % (int(kib) / 1024)

    def costs(self):
        """Returns (system calls, copied bytes) per command of the session with the most
        commands, or None if no session has executed a command."""
        status = json.loads(run(self.iserctl, "--socket", self.socket, "--json",
                                "status"))
        session = max(status["sessions"], key=lambda s: s["commands"], default=None)
        if not session or not session["commands"]:
            return None
        traffic, commands = session["traffic"], session["commands"]
        return ((traffic["calls_in"] + traffic["calls_out"]) / commands,
                traffic["bytes_copied"] / commands)
