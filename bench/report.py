#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes report.html and tables.md from the results of a run."""
import json
import os
import statistics
import sys


def table(rows):
    lines = ["| case | contestant | median | min | max |", "|---|---|---|---|---|"]
    return lines + ["| %s | %s | %.6g %s | %.6g | %.6g |" % (
        r["case"], r["lane"], statistics.median(r["figures"]), r["unit"], min(r["figures"]),
        max(r["figures"])) for r in rows]


def write(results, folder):
    """Writes the report of results into folder."""
    with open(os.path.join(folder, "tables.md"), "w") as f:
        f.write("\n".join(table(results["rows"])) + "\n")


if __name__ == "__main__":
    with open(os.path.join(sys.argv[1], "results.json")) as f:
        write(json.load(f), sys.argv[1])
