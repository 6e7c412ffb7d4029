#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes report.html and tables.md from the results of a run.

    report.py FOLDER               from FOLDER/results.json
    report.py FOLDER --merge LATER first takes the groups of a later run, LATER/results.json, into
                                   FOLDER/results.json, in place of groups with the same name
"""
import argparse
import html
import json
import os
import re
import statistics

import common
import pages
import plots

LARGE = 64 * 1024  # from here on a table shows bytes per second in place of operations


# ---- values ----

def shown_unit(row):
    """Returns (factor, unit) of the figures of a row in tables."""
    unit, size = row["unit"], row["x"].get("size", 0)
    if unit == "iops" and size >= LARGE and row["x"].get("axis") != "data" and \
            row["group"] != "distance":
        return size / 1e9, "GB/s"
    return {"iops": (1e-3, "k/s"), "messages": (1e-3, "k/s"), "bytes": (1e-9, "GB/s"),
            "us": (1, "us"), "ms": (1, "ms"), "seconds": (1, "s"), "mib": (1, "MiB"),
            "ratio": (1, "")}[unit]


def number(v):
    """Returns v with three digits."""
    if v >= 100:
        return "%.0f" % v
    return "%.1f" % v if v >= 10 else "%.2f" % v


def cell(row, reference):
    """Returns (median, unit, range, ratio to the reference or None) as texts."""
    factor, unit = shown_unit(row)
    v = [f * factor for f in row["figures"]]
    ratio = common.paired_ratio(row, reference) if reference is not row else None
    return (number(statistics.median(v)), unit, "%s–%s" % (number(min(v)), number(max(v))),
            "%.2f" % ratio if ratio is not None else None)


# ---- tables: lists of rows of texts, with a heading ----

def by_case(rows):
    """Returns [(case, {lane: row})] in the order of the run."""
    found = {}
    for r in rows:
        found.setdefault(r["case"], {})[r["lane"]] = r
    return list(found.items())


def same_lanes(found):
    """Returns lists of consecutive cases with the same contestants."""
    parts = []
    for case, lanes in found:
        if not parts or list(parts[-1][-1][1]) != list(lanes):
            parts.append([])
        parts[-1].append((case, lanes))
    return parts


def by_contestant(part):
    """Returns the heads and cells of a table with a line for each contestant."""
    heads = ["contestant"] + ["%s, %s" % (case, shown_unit(next(iter(rows.values())))[1])
                              for case, rows in part]
    body = []
    for lane in part[0][1]:
        cells = [(lane, "")]
        for _, rows in part:
            median, _, spread, _ = cell(rows[lane], rows[lane])
            cells.append((median, spread if len(rows[lane]["figures"]) > 1 else ""))
        body.append(cells)
    return heads, body


def comparison(part):
    """Returns the heads and cells of the table of some cases: (text, range) each."""
    lanes = list(part[0][1])
    if len(lanes) > 8:
        return by_contestant(part)
    heads = ["load", "unit"] + lanes
    body = []
    for case, rows in part:
        first = rows[lanes[0]]
        cells = [(case, ""), (cell(first, first)[1], "")]
        for lane in lanes:
            median, _, spread, ratio = cell(rows[lane], first)
            cells.append((median + (" (× %s)" % ratio if ratio else ""), spread))
        body.append(cells)
    return heads, body


METRICS = (("client_cpu_us", "CPU client, us", 1), ("target_cpu_us", "CPU target, us", 1),
           ("client_calls", "system calls client", 1), ("target_calls", "target", 1),
           ("client_copied", "bytes copied client", 1), ("target_copied", "target", 1))


def median_metric(row, name):
    v = [x for x in row["metrics"].get(name, []) if x is not None]
    return statistics.median(v) if v else None


def costs(rows):
    """Returns the table of CPU time, system calls and copies per operation."""
    body = []
    for r in rows:
        values = [median_metric(r, name) for name, _, _ in METRICS]
        if None in values[:2]:
            continue
        kib = r["x"]["size"] / 1024
        both = (values[0] + values[1]) * 1e3 / kib
        body.append([(r["case"], ""), (r["lane"], "")] + [
            (number(v) if v is not None else "", "") for v in values] + [(number(both), "")])
    return ["load", "contestant"] + [head for _, head, _ in METRICS] + \
        ["CPU of both, ns per KiB"], body


def tails(rows):
    """Returns the table of latencies."""
    names = ("p50", "p90", "p99", "p99.9", "p99.99", "max")
    body = []
    for r in rows:
        values = [median_metric(r, n + "_us") for n in names]
        if values[0] is None:
            continue
        body.append([(r["case"], ""), (r["lane"], "")] +
                    [(number(v) if v is not None else "", "") for v in values])
    return ["load", "contestant"] + ["%s, us" % n for n in names], body


def goals(rows):
    """Returns the table of goals and of what was reached."""
    return ["load", "contestant", "relative to", "reached", "goal", ""], [
        [(r["case"], ""), (r["lane"], ""), (reference, ""), ("%.2f" % ratio, ""),
         ("%s %.2f" % ("≤" if r["unit"] == "us" else "≥", goal), ""),
         ("" if met else "missed", "")]
        for r, reference, ratio, goal, met in common.goals_of(rows)]


def tables_of(group, rows):
    """Returns [(title, heads, body)] of a group."""
    found = [("", *comparison(part)) for part in same_lanes(by_case(rows))]
    if group == "transport":
        some = [r for r in rows if r["x"]["depth"] == 8 and
                r["x"]["size"] in (4096, 65536, 1 << 20)]
        found.append(("Costs per operation at depth 8", *costs(some)))
    if group == "latency":
        found.append(("Latencies", *tails(rows)))
    found.append(("Goals", *goals(rows)))
    return [t for t in found if t[2]]


# ---- Markdown ----

def markdown_table(heads, body):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(text for text, _ in cells) + " |" for cells in body]


def describe(results):
    """Returns sentences about the machine and the run."""
    m = results["machine"]
    pins = "" if m["server_cpu"] is None else \
        "Servers run on CPU %s, clients on CPU %s. " % (m["server_cpu"], m["client_cpu"])
    rounds = [len(r["figures"]) for r in results["rows"]] or [0]
    disturbed = sum(r["disturbed"] for r in results["rows"])
    pins += "Two programs of the lowest class keep these CPUs awake. " if m.get("awake") else ""
    return ("%s: %s run of commit %s on %s, %d CPUs, Linux %s, loopback, TCP %s. %s"
            "%d figures of %d to %d rounds, %g s each; %d repetitions count although other "
            "processes used the CPUs%s." % (
                results["date"], "full" if results["full"] else "short",
                m["versions"].get("commit", "?"), m["cpu"] or "unknown CPU", m["cpus"],
                m["kernel"], m["congestion_control"], pins, len(rounds), min(rounds),
                max(rounds), results["seconds_per_repetition"], disturbed,
                "" if results["complete"] else "; the run was interrupted")) + (
                    " Measured later: %s." % "; ".join(results["later"])
                    if results.get("later") else "")


def markdown(results):
    """Returns all tables."""
    lines = [describe(results), "",
             "Figures are medians; in parentheses the median of the ratios of single rounds "
             "to the first contestant of the table.", ""]
    for g in results["groups"]:
        rows = [r for r in results["rows"] if r["group"] == g["name"]]
        if not rows:
            continue
        lines += ["### " + g["title"], ""]
        for title, heads, body in tables_of(g["name"], rows):
            lines += ([title + ":", ""] if title else []) + markdown_table(heads, body) + [""]
    return "\n".join(lines).rstrip() + "\n"


# ---- HTML ----

STYLE = """
:root { color-scheme: light dark; --fg:#1c1e21; --bg:#fff; --dim:#5b6168; --line:#d9dce0;
 --box:#f5f6f8; --c0:#0b62c4; --c1:#d1495b; --c2:#2e8b57; --c3:#e08e1a; --c4:#7a4fbf;
 --c5:#008b9a; --c6:#8c5a3c; --c7:#6b7280; }
@media (prefers-color-scheme: dark) { :root { --fg:#e6e8eb; --bg:#15181c; --dim:#9aa3ad;
 --line:#333a42; --box:#1d2126; --c0:#6db1ff; --c1:#ff8a9a; --c2:#6fd49a; --c3:#ffc061;
 --c4:#bf9cff; --c5:#57d3e0; --c6:#d8a07c; --c7:#aab2bd; } }
body { font:15px/1.5 system-ui,sans-serif; color:var(--fg); background:var(--bg);
 max-width:1240px; margin:2em auto; padding:0 1.2em; }
h1 { font-size:1.7em } h2 { font-size:1.3em; margin-top:2.2em; border-bottom:1px solid
 var(--line); padding-bottom:.2em } h3 { font-size:1.05em; margin:1.4em 0 .3em }
p { max-width:75ch } .dim { color:var(--dim) } nav a { display:inline-block; margin-right:1em }
a { color:var(--c0) }
.plots { display:grid; grid-template-columns:repeat(auto-fit,minmax(480px,1fr)); gap:1.2em }
.head { grid-template-columns:repeat(auto-fit,minmax(340px,1fr)) }
figure { margin:0; background:var(--box); border:1px solid var(--line); border-radius:6px;
 padding:.8em } figcaption { font-weight:600; margin-bottom:.4em } svg { width:100%;
 height:auto; display:block } figure p { margin:.3em 0 0; color:var(--dim); font-size:.9em }
.wide { overflow-x:auto } table { border-collapse:collapse; font-size:.86em; margin:.8em 0 }
th,td { border-bottom:1px solid var(--line); padding:.25em .7em; text-align:right;
 vertical-align:top } th { font-weight:600; vertical-align:bottom } th:first-child,
 td:first-child, .two td:nth-child(2), .two th:nth-child(2) { text-align:left }
td small { display:block; color:var(--dim); font-size:.82em }
details summary { cursor:pointer; color:var(--c0); margin:.6em 0 }
text { font:11px system-ui,sans-serif; fill:var(--dim) } text.l { fill:var(--fg) }
.g { stroke:var(--line); stroke-width:1 } .a { stroke:var(--dim); fill:none }
.s { fill:none; stroke-width:1.8 } .w { stroke-width:1; opacity:.75 } .m { stroke:none }
""" + "".join(".s%d{stroke:var(--c%d)}.m%d{fill:var(--c%d)}" % (n, n, n, n)
              for n in range(8)) + "polyline.s{fill:none}.b{opacity:.85}"


def html_table(heads, body):
    two = len(heads) > 1 and heads[1] == "contestant"
    out = ['<div class="wide"><table%s><tr>' % (' class="two"' if two else "")]
    out += ["<th>%s</th>" % html.escape(h) for h in heads] + ["</tr>"]
    for cells in body:
        out.append("<tr>" + "".join(
            "<td>%s%s</td>" % (html.escape(text), "<small>%s</small>" % html.escape(more)
                               if more else "") for text, more in cells) + "</tr>")
    return "\n".join(out + ["</table></div>"])


def html_group(g, rows):
    out = ['<h2 id="%s">%s</h2>' % (g["name"], html.escape(g["title"]))]
    for note in [g.get("note", "")] + pages.notes(g["name"], rows):
        if note:
            out.append("<p>%s</p>" % html.escape(" ".join(note.split())))
    drawn = plots.of_group(g["name"], rows)
    if drawn:
        out.append('<div class="plots">')
        out += ["<figure><figcaption>%s</figcaption>%s%s</figure>" % (
            html.escape(title), svg, "<p>%s</p>" % html.escape(text) if text else "")
            for title, svg, text in drawn]
        out.append("</div>")
    tables = tables_of(g["name"], rows)
    lines = sum(len(body) for _, _, body in tables)
    out.append("<details%s><summary>Tables (%d lines)</summary>" % (
        " open" if lines <= 14 else "", lines))
    for title, heads, body in tables:
        out += (["<h3>%s</h3>" % html.escape(title)] if title else []) + [
            html_table(heads, body)]
    return out + ["</details>"]


def html_head(rows):
    """Three plots and three sentences, for a reader with a minute."""
    cases = pages.head_cases(rows)
    out = ["<p>%s</p>" % html.escape(text) for text in pages.head_sentences(rows)] + ['<div class="plots head">']
    for title, svg, _ in plots.bars_of_cases([r for some in cases for r in some]):
        out.append("<figure><figcaption>%s</figcaption>%s<p>Group peers.</p></figure>" % (html.escape(title), svg))
    out.append("</div>")
    return out + ['<p class="dim">%s</p>' % html.escape(pages.HEAD_NOTE)]


def page(results):
    groups = [(g, [r for r in results["rows"] if r["group"] == g["name"]])
              for g in results["groups"]]
    groups = [(g, rows) for g, rows in groups if rows]
    out = ["<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
           '<meta name="viewport" content="width=device-width, initial-scale=1">',
           "<title>openiser: evaluation</title><style>%s</style></head><body>" % STYLE,
           "<h1>openiser: iSCSI and iSER, measured</h1>"]
    out += html_head(results["rows"])
    out += ["<p>%s</p>" % html.escape(describe(results)),
           "<p>Lines and bars are medians over the rounds, whiskers the lowest and the highest "
           "round. Contestants of a case take turns within a round; a ratio (×) is the median "
           "of the ratios of single rounds. Versions: %s.</p>" % html.escape(", ".join(
               "%s %s" % (k, re.sub(r"^%s (version )?" % re.escape(k), "", v))
               for k, v in results["machine"]["versions"].items() if k != "commit"))]
    out.append("<nav>" + "".join('<a href="#%s">%s</a>' % (g["name"], html.escape(g["title"]))
                                 for g, _ in groups) +
               '<a href="#questions">Questions and answers</a></nav>')
    out += pages.questions_html(results["rows"])
    for g, rows in groups:
        out += html_group(g, rows)
    for f in results["failures"]:
        out.append("<p>%s failed: %s</p>" % (html.escape(f["group"]), html.escape(f["reason"])))
    return "\n".join(out + ["</body></html>"]) + "\n"


# ---- files ----

def write(results, folder):
    """Writes the report of results into folder."""
    with open(os.path.join(folder, "report.html"), "w") as f:
        f.write(page(results))
    with open(os.path.join(folder, "tables.md"), "w") as f:
        f.write(pages.questions_markdown(results["rows"]) + "\n" + markdown(results))


def load(folder):
    with open(os.path.join(folder, "results.json")) as f:
        return json.load(f)


def merge(results, later):
    """Takes the groups of a later run into results, which say so."""
    new = {g["name"]: g for g in later["groups"]}
    results["later"] = results.get("later", []) + ["%s (%s, commit %s)" % (
        ", ".join(new), later["date"], later["machine"]["versions"].get("commit", "?"))]
    for kind in ("rows", "failures"):
        results[kind] = [r for r in results[kind] if r["group"] not in new] + later[kind]
    results["groups"] = [new.pop(g["name"], g) for g in results["groups"]] + list(new.values())


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("folder", metavar="FOLDER")
    p.add_argument("--merge", metavar="LATER", action="append", default=[])
    args = p.parse_args()
    results = load(args.folder)
    for later in args.merge:
        merge(results, load(later))
    if args.merge:
        common.write_json(os.path.join(args.folder, "results.json"), results)
    write(results, args.folder)


if __name__ == "__main__":
    main()
