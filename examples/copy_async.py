#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""copy_async.py SOURCE-URL DESTINATION-URL: copies a unit to another unit, without its holes.

Sixteen pieces are in progress at a time; each is written as soon as it was read.
"""
import asyncio
import sys

import openiser.aio

PIECE = 1 << 20
TOGETHER = 16


async def copy_piece(source, destination, limit, offset, length):
    async with limit:
        await destination.pwrite(await source.pread(length, offset), offset)


async def copy(source_url, destination_url):
    async with await openiser.aio.connect(source_url) as source, \
            await openiser.aio.connect(destination_url) as destination:
        if destination.size < source.size:
            sys.exit("%s is smaller than %s" % (destination_url, source_url))
        limit = asyncio.Semaphore(TOGETHER)
        jobs = []
        for extent in await source.extents():
            end = extent.offset + extent.length
            if extent.zeros:
                jobs.append(destination.zero(extent.offset, extent.length))
                continue
            jobs += [copy_piece(source, destination, limit, at, min(PIECE, end - at))
                     for at in range(extent.offset, end, PIECE)]
        await asyncio.gather(*jobs)
        await destination.flush()
        print("%d bytes" % source.size)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    asyncio.run(copy(*sys.argv[1:]))
