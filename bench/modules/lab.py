# SPDX-License-Identifier: BSD-2-Clause
"""The Linux kernel as a peer: LIO and isert over siw and rxe, in the emulated guest of the
laboratory (tests/lab). Only a full run boots the guests; others quote the last laboratory
run from docs/interop.md."""
import os
import re
import sys

import common

TITLE = "The Linux kernel's iSCSI and iSER, in the guest"
SECONDS = 0
NOTE = """An emulated guest is a hundred times slower than this machine, and its figures vary by a factor of
2 or 3 from run to run: only the order of the pairs means something. BENCH=full runs the jobs
figures-siw, figures-rxe, tcp-iser-to-lio and tcp-linux-to-iserd anew; a shorter run quotes the
figures of docs/interop.md."""

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
JOBS = ("figures-siw", "figures-rxe", "tcp-iser-to-lio", "tcp-linux-to-iserd")
COLUMNS = {"read 4k depth 8 IOPS": ("4K read QD8", "iops", 1),
           "write 4k depth 8 IOPS": ("4K write QD8", "iops", 1),
           "read 1m depth 4 MB/s": ("1M read QD4", "bytes", 1e6),
           "write 1m depth 4 MB/s": ("1M write QD4", "bytes", 1e6)}


def figures_of(text):
    """Returns (pair, column, value) of a table of figures in Markdown."""
    lines = [[c.strip() for c in line.strip("|").split("|")]
             for line in text.splitlines() if line.startswith("|")]
    found, heads = [], None
    for cells in lines:
        if "read 4k depth 8 IOPS" in cells:
            heads = cells
        elif heads and len(cells) == len(heads) and not cells[0].startswith("---"):
            pair = "%s to %s, %s" % tuple(cells[:3])
            found += [(pair, head, float(cell)) for head, cell in zip(heads, cells)
                      if head in COLUMNS and re.fullmatch(r"[\d.]+", cell)]
    return found


def run_jobs(args):
    """Runs the jobs; returns the table that run.py prints, as Markdown lines."""
    words = [w for job in JOBS for w in ("--job", job)]
    done = common.run_outside([sys.executable, os.path.join(TREE, "tests/lab/run.py"), "--build",
                               os.path.abspath(args.build), *words], timeout=4 * 3600, cwd=TREE)
    return "\n".join("|" + re.sub(r"\s{2,}", "|", line) + "|"
                     for line in done.stdout.splitlines() if re.search(r"\s{2,}", line))


def run(build):
    args = common.settings(build)
    if args.full:
        text, source = run_jobs(args), "this run"
    else:
        with open(os.path.join(TREE, "docs/interop.md")) as f:
            text, source = f.read(), "docs/interop.md"
    for pair, head, value in figures_of(text):
        case, unit, factor = COLUMNS[head]
        same_boot = pair.endswith(", one boot")
        if not same_boot and not pair.endswith(", TCP"):
            continue  # other jobs' figures are not comparable
        pair = pair.replace(", one boot", "")
        yield common.row("lab", case, pair, unit, [value * factor], source=source)
