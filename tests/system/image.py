# SPDX-License-Identifier: BSD-2-Clause
"""The image that the system test serves and copies, and its copies."""
import os
import shutil
import time

from steps import Failed, run, sha256

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IMAGE_BYTES = 256 << 20


def copy_tree(folder, build):
    """Copies the files of this tree that git knows, or all files without git, except
    builds."""
    if not os.path.exists(os.path.join(TREE, ".git")):
        shutil.copytree(TREE, folder, ignore=shutil.ignore_patterns(
            "build*", ".git", os.path.basename(build)))
        return
    for name in run("git", "-C", TREE, "ls-files", "-z").split("\0"):
        source, copy = os.path.join(TREE, name), os.path.join(folder, name)
        if os.path.isfile(source):
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy2(source, copy)


def timed(*args):
    """Runs a program that copies the whole image; returns its rate."""
    began = time.monotonic()
    run(*args)
    return "%.0f MB/s" % (IMAGE_BYTES / (time.monotonic() - began) / 1e6)


class Image:
    """An ext4 file system with the files of this tree. The folder has the image, a copy
    (served) and a file of zeros (blank); the last two are for iserd."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.sum = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self):
        copy_tree(self.path("tree"), self.build)
        with open(self.path("image"), "wb") as f:
            f.truncate(IMAGE_BYTES)
        run("mkfs.ext4", "-q", "-F", "-d", self.path("tree"), self.path("image"))
        shutil.copyfile(self.path("image"), self.path("served"))
        with open(self.path("blank"), "wb") as f:
            f.truncate(IMAGE_BYTES)
        self.sum = sha256(self.path("image"))
        files = sum(len(names) for _, _, names in os.walk(self.path("tree")))
        return "%d MiB, %d files, sha256 %s..." % (IMAGE_BYTES >> 20, files,
                                                   self.sum[:12])

    def check_copy(self, name):
        if sha256(self.path(name)) != self.sum:
            raise Failed("sha256 differs")

    def check_file_system(self, name):
        run("e2fsck", "-fn", self.path(name))
