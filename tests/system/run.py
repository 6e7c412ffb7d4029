#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs iserd and iser on real data: serves an ext4 image of this tree, lists it,
copies it out and in with iser and with the tools of libiscsi, QEMU and libnbd, and
compares every byte. iser repeats the job over iSCSI and over iSER with both starts,
on the same port, and the program prints the costs in one table.

usage: run.py [BUILD]      exit status 1: a step failed
"""
import os
import sys
import tempfile

from clients import Iser, OtherClients
from connections import CONNECTIONS, Comparison
from image import Image, TREE
from iserd import Iserd
from steps import Table


def copy_with_each_client(table, image, iserd, iser):
    others = OtherClients(image, iserd)
    do = table.step
    do("list: libiscsi's tools", others.list_units)
    do("list: iser", iser.list_units)
    do("copy out: iser, sha256", iser.copy_out, 0, "ours")
    do("copy out: qemu-img, sha256", others.copy_out, 0, "qemu")
    do("copy in (file): iser", iser.copy_in, 1)
    do("copy in (memory): qemu-img, compare", others.copy_in, 2)
    do("copy out again (memory): iser, sha256", iser.copy_out, 2, "again")
    do("iser hash of all three", iser.check_hashes)
    do("read 4 KiB random, depth 32: iscsi-perf", others.random_reads, 2)


def compare_connections(table, comparison):
    do = table.step
    for c in CONNECTIONS:
        do("copy and compare over " + c.name, comparison.copy_and_compare, c)
    for c in CONNECTIONS[1:]:
        do("copy out by nbdcopy: " + c.name, comparison.copy_through_nbd, c)
    for c in CONNECTIONS:
        do("bench over " + c.name, comparison.bench, c)


def end(table, image, iserd):
    do = table.step
    do("memory of iserd afterwards", iserd.memory)
    do("iserd ends in order", iserd.shut_down)
    do("the written file: sha256", image.check_copy, "blank")
    for name in ("served", "blank", "ours", "qemu"):
        do("e2fsck -fn of " + name, image.check_file_system, name)


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else
                            os.path.join(TREE, "build"))
    table = Table()
    with tempfile.TemporaryDirectory(prefix="run-", dir=build) as folder:
        image = Image(build, folder)
        iserd = Iserd(build, image)
        iser = Iser(build, image, iserd)
        comparison = Comparison(image, iserd, iser)
        try:
            if table.step("ext4 image of this tree", image.make) and \
                    table.step("iserd serves it", iserd.serve):
                copy_with_each_client(table, image, iserd, iser)
                compare_connections(table, comparison)
                end(table, image, iserd)
            comparison.show()
        finally:
            iserd.kill()
    return table.end()


if __name__ == "__main__":
    sys.exit(main())
