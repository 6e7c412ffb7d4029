#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vmlinux.py BZIMAGE OUT: extracts the ELF kernel from a bzImage (xz or zstd).

Offsets are those of the Linux/x86 boot protocol: setup_sects at 0x1f1,
payload_offset and payload_length at 0x248, counted from the end of the setup.
"""
import lzma
import os
import struct
import subprocess
import sys


def payload(image):
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (image[0x1f1] + 1) * 512 + offset
    return image[start:start + length]


def unpack(data):
    if data.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        # the last four bytes are the size, which the kernel build appends
        return subprocess.run(["zstd", "-dcq"], input=data[:-4], check=True,
                              stdout=subprocess.PIPE).stdout
    sys.exit("vmlinux.py: compressed in an unknown way: %s" % data[:6].hex())


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    with open(sys.argv[1], "rb") as f:
        kernel = unpack(payload(f.read()))
    if not kernel.startswith(b"\x7fELF"):
        sys.exit("vmlinux.py: no ELF file inside")
    with open(sys.argv[2] + ".new", "wb") as f:
        f.write(kernel)
    os.rename(sys.argv[2] + ".new", sys.argv[2])


if __name__ == "__main__":
    main()
