# SPDX-License-Identifier: BSD-2-Clause
"""The clients of the system test over iSCSI: iser and the tools of libiscsi and QEMU."""
import os
import re

from image import IMAGE_BYTES, timed
from steps import Failed, run


class Iser:
    """The tool iser, which copies between the units of iserd and files."""

    def __init__(self, build, image, iserd):
        self.program = os.path.join(build, "iser")
        self.image, self.iserd = image, iserd

    def copy(self, source, to):
        return timed(self.program, "copy", "--quiet", source, to)

    def list_units(self):
        if self.iserd.urls[0].split("/")[3] not in run(self.program, "ls",
                                                       self.iserd.portal):
            raise Failed("iser ls does not show the target")
        run(self.program, "info", self.iserd.urls[0])
        return "iser ls, iser info"

    def copy_out(self, lun, name):
        rate = self.copy(self.iserd.urls[lun], self.image.path(name))
        self.image.check_copy(name)
        return rate

    def copy_in(self, lun):
        return self.copy(self.image.path("image"), self.iserd.urls[lun])

    def check_hash(self, url):
        if self.image.sum not in run(self.program, "hash", url):
            raise Failed("iser hash differs for " + url)

    def check_hashes(self):
        for url in self.iserd.urls:
            self.check_hash(url)


class OtherClients:
    """The tools of libiscsi and QEMU."""

    def __init__(self, image, iserd):
        self.image, self.iserd = image, iserd

    def list_units(self):
        text = run("iscsi-ls", "-s", "iscsi://" + self.iserd.portal)
        if text.count("DIRECT_ACCESS") != 3:
            raise Failed("iscsi-ls does not show 3 disks")
        run("iscsi-inq", self.iserd.urls[0])
        text = run("iscsi-readcapacity16", self.iserd.urls[0])
        if "Total size:%d" % IMAGE_BYTES not in text:
            raise Failed("iscsi-readcapacity16 shows another size")
        return "iscsi-ls, iscsi-inq, iscsi-readcapacity16"

    def copy_out(self, lun, name):
        rate = timed("qemu-img", "convert", "-f", "raw", "-O", "raw",
                     self.iserd.urls[lun], self.image.path(name))
        self.image.check_copy(name)
        return rate

    def copy_in(self, lun):
        rate = timed("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw",
                     self.image.path("image"), self.iserd.urls[lun])
        run("qemu-img", "compare", "-f", "raw", "-F", "raw",
            self.image.path("image"), self.iserd.urls[lun])
        return rate

    def random_reads(self, lun):
        text = run("iscsi-perf", "-t", "1", "-m", "32", "-b", "8", "-r",
                   self.iserd.urls[lun])
        rates = re.findall(r"iops average (\d+) \((\d+) MB/s\)", text)
        if not rates:
            raise Failed("iscsi-perf shows no rate")
        return "%8d IOPS %7d MB/s" % tuple(int(x) for x in rates[-1])
