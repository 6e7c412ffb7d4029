#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""read.py URL [OFFSET [LENGTH]]: prints bytes of a unit in hexadecimal."""
import sys

import openiser


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    offset, length = (int(a, 0) for a in (sys.argv[2:] + ["0", "64"][len(sys.argv) - 2:])[:2])
    try:
        with openiser.connect(sys.argv[1]) as disk:
            print("%s %s: %d bytes, blocks of %d" % (disk.info.vendor, disk.info.product, disk.size,
                                                     disk.block_size))
            print(disk.pread(length, offset).hex(" "))
    except openiser.Error as e:
        sys.exit("%s: %s" % (sys.argv[1], e.strerror))


if __name__ == "__main__":
    main()
