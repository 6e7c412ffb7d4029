# SPDX-License-Identifier: BSD-2-Clause
"""The texts of the report: answers that the figures of the run give."""
import html
import statistics

import common


class Figures:
    """Finds figures and ratios of a run; a missing one is a dash in the texts."""

    def __init__(self, rows):
        self.rows = {(r["group"], r["case"], r["lane"]): r for r in rows}
        self.used = []

    def answer(self, question, text):
        """Returns both, with the groups of the figures that were found for them."""
        groups, self.used = list(dict.fromkeys(self.used)), []
        return question, "%s (Group%s %s.)" % (text, "s" if len(groups) > 1 else "",
                                               ", ".join(groups))

    def ratio(self, group, case, upper, lower):
        """Returns the median ratio of single rounds as text."""
        self.used.append(group)
        a, b = self.rows.get((group, case, upper)), self.rows.get((group, case, lower))
        v = common.paired_ratio(a, b) if a and b else None
        return "%.2f" % v if v is not None else "–"

    def value(self, group, case, lane, metric=None, factor=1.0, form="%.0f"):
        self.used.append(group)
        r = self.rows.get((group, case, lane))
        v = (r["metrics"].get(metric, []) if metric else r["figures"]) if r else []
        v = [x for x in v if x is not None]
        return form % (statistics.median(v) * factor) if v else "–"

    def transport(self, case, upper="iSER", lower="iSCSI, both digests"):
        return self.ratio("transport", case, upper, lower)


def small_and_large(f, upper="iSER", lower="iSCSI, both digests"):
    return ("4K reads %s and writes %s, 64K reads %s and writes %s, 1M reads %s and writes %s "
            "at depth 8") % tuple(f.transport(case, upper, lower) for case in (
                "4K randread QD8", "4K randwrite QD8", "64K read QD8", "64K write QD8",
                "1M read QD8", "1M write QD8"))


def answers(rows):
    """Returns [(question, answer)]."""
    f = Figures(rows)
    return [
        f.answer("Is iSER faster than iSCSI?",
                 "In software, over the same TCP, not by itself. Relative to iSCSI with both digests, "
                 "which protect the same bytes as the CRC of MPA: %s. Relative to iSCSI without "
                 "digests: %s. The CPU that an RDMA card would save is spent here by the CPU itself." % (
                     small_and_large(f), small_and_large(f, lower="iSCSI"))),
        f.answer("How does the size of the operations matter?",
                 "For small operations the number of messages counts: a READ over iSER is an RDMA Write "
                 "and a Send where iSCSI has one PDU with data and status. For large ones the bytes "
                 "count, which both copy once at each end: 1M reads cost %s us of CPU at the client and "
                 "%s us at the target over iSER, %s us and %s us over iSCSI with digests." % (
                     f.value("transport", "1M read QD8", "iSER", "client_cpu_us"),
                     f.value("transport", "1M read QD8", "iSER", "target_cpu_us"),
                     f.value("transport", "1M read QD8", "iSCSI, both digests", "client_cpu_us"),
                     f.value("transport", "1M read QD8", "iSCSI, both digests", "target_cpu_us"))),
        f.answer("How many outstanding commands are needed?",
                 "4K reads over iSCSI reach %s k/s at depth 1, %s k/s at 8, %s k/s at 32 and %s k/s at "
                 "128; over iSER %s, %s, %s and %s k/s. Both gain by batching: many commands share one "
                 "system call." % tuple(
                     f.value("transport", "4K randread QD%d" % d, lane, factor=1e-3)
                     for lane in ("iSCSI", "iSER") for d in (1, 8, 32, 128))),
        f.answer("What do several connections add?",
                 "On one core per side, 128 commands over 16 connections reach %s k/s in place "
                 "of %s k/s over one (4K reads, iSCSI), over iSER %s in place of %s k/s: fewer commands "
                 "share a system call. One session of 16 connections (MC/S) reaches %s k/s. More cores, "
                 "more links or a congested path are what connections are for." % (
                     f.value("connections", "4K randread, depth 128 over 16", "iSCSI", factor=1e-3),
                     f.value("connections", "4K randread, depth 128 over 1", "iSCSI", factor=1e-3),
                     f.value("connections", "4K randread, depth 128 over 16", "iSER", factor=1e-3),
                     f.value("connections", "4K randread, depth 128 over 1", "iSER", factor=1e-3),
                     f.value("connections", "4K randread, depth 128 over 16",
                             "iSCSI, one session (MC/S)", factor=1e-3))),
        f.answer("Do immediate and unsolicited data pay?",
                 "Yes: they save the round trip of an R2T. Without any delay, 4K writes at depth 1 with "
                 "all data solicited reach %s of those with immediate data; over a round trip of 10 ms, "
                 "64K writes at depth 1 reach %s (one half in theory: two round trips in place of one). With 16 commands in "
                 "progress they reach %s: depth hides round trips only in part." % (
                     f.ratio("bursts", "4K randwrite QD1", "all solicited", "immediate and unsolicited"),
                     f.ratio("distance", "64K write QD1, 10 ms", "all data solicited",
                             "immediate and unsolicited data"),
                     f.ratio("distance", "64K write QD16, 10 ms", "all data solicited",
                             "immediate and unsolicited data"))),
        f.answer("What does iSER lose by fetching data with RDMA Read?",
                 "The round trip that unsolicited data save: over 10 ms, 64K writes over iSER reach %s "
                 "of iSCSI with unsolicited data at depth 1, and %s of iSCSI with solicited data. iSER "
                 "has immediate data, too; openiser asks for at most 8 KiB of them, for which Linux has "
                 "buffers." % (
                     f.ratio("distance", "64K write QD1, 10 ms", "iSER",
                             "immediate and unsolicited data"),
                     f.ratio("distance", "64K write QD1, 10 ms", "iSER", "all data solicited"))),
        f.answer("Which bursts and how many R2Ts does a long path need?",
                 "As many bytes as the path holds: over 10 ms, 2M writes with one R2T of 64K at a time "
                 "reach %s MB/s, with 8 R2Ts %s MB/s, with one of 1M %s MB/s and with 8 %s MB/s." % tuple(
                     f.value("distance", "2M write QD1, 10 ms, burst %dK" % burst, "%d R2Ts" % n,
                             factor=2.097152) for burst in (64, 1024) for n in (1, 8))),
        f.answer("What do the checksums cost?",
                 "Header and data digest: %s of plain iSCSI; a header digest alone: %s (4K reads at "
                 "depth 32). 1M reads at depth 8 with both: %s. iSER without the CRC of MPA, relative to "
                 "iSER with it: 4K reads %s, 1M reads %s." % (
                     f.transport("4K randread QD32", "iSCSI, both digests", "iSCSI"),
                     f.transport("4K randread QD32", "iSCSI, header digest", "iSCSI"),
                     f.transport("1M read QD8", "iSCSI, both digests", "iSCSI"),
                     f.transport("4K randread QD32", "iSER, no CRC", "iSER"),
                     f.transport("1M read QD8", "iSER, no CRC", "iSER"))),
        f.answer("Does it matter how an iSER connection starts?",
                 "Not after the login: with the login over TCP, 4K reads at depth 32 reach %s and 1M "
                 "reads %s of iSER from the first byte. A client that logs in, reads and logs out takes "
                 "%s ms over iSCSI, %s ms over iSER, and %s ms with the login over TCP." % (
                     f.transport("4K randread QD32", "iSER, login on TCP", "iSER"),
                     f.transport("1M read QD8", "iSER, login on TCP", "iSER"),
                     f.value("login", "login, READ, logout", "iSCSI", form="%.2f"),
                     f.value("login", "login, READ, logout", "iSER", form="%.2f"),
                     f.value("login", "login, READ, logout", "iSER, login on TCP", form="%.2f"))),
        f.answer("What can software RDMA not gain, and where would hardware?",
                 "Software RDMA cannot save the copies between kernel and user space, the system calls "
                 "(iSCSI %s and iSER %s per 4K read at depth 32 at the client) or the checksum, and it "
                 "adds framing: at 4K the CPU of both ends is %s us and %s us per read for iSCSI and "
                 "%s us and %s us for iSER. A card places the data (no copy), computes the CRC and moves "
                 "data without a system call: what it saves is the share of these in the CPU times "
                 "above. What software RDMA gives is reach: initiators and targets that speak only "
                 "iSER, on any machine, without a card; and within a message, data that go to their "
                 "place directly." % (
                     f.value("transport", "4K randread QD32", "iSCSI", "client_calls", form="%.3f"),
                     f.value("transport", "4K randread QD32", "iSER", "client_calls", form="%.3f"),
                     f.value("transport", "4K randread QD32", "iSCSI", "client_cpu_us", form="%.2f"),
                     f.value("transport", "4K randread QD32", "iSCSI", "target_cpu_us", form="%.2f"),
                     f.value("transport", "4K randread QD32", "iSER", "client_cpu_us", form="%.2f"),
                     f.value("transport", "4K randread QD32", "iSER", "target_cpu_us", form="%.2f"))),
    ]


# ---- the head of the report: three plots and three sentences ----

HEAD = ("4K randread QD32", "4K randwrite QD32", "1M read QD8")


def head_cases(rows):
    """Returns the rows of each plot of the head."""
    found = [[r for r in rows if (r["group"], r["case"]) == ("peers", case)] for case in HEAD]
    return [some for some in found if some]


def head_sentences(rows):
    f = Figures(rows)

    def peers(case, what):
        return ("%s: iserd with iser %s k/s, nbdkit with fio %s k/s, tgtd with iser %s k/s. Plain sockets that carry the same "
                "bytes and do nothing else, the floor, reach %s k/s." % ((what,) + tuple(
                    f.value("peers", case, lane, factor=1e-3)
                    for lane in ("iserd + iser", "nbdkit + fio", "tgtd + iser", "floor"))))
    made = [
        f.answer("", peers("4K randread QD32", "Random reads of 4K, 32 at a time, one CPU at each end")),
        f.answer("", peers("4K randwrite QD32", "Random writes of 4K, 32 at a time")),
        f.answer("", "iSER by software RDMA, without a card, has %s of the 4K reads and %s of the 1M reads of iSCSI with digests, which "
                     "protect the same bytes." % (f.transport("4K randread QD32"), f.transport("1M read QD8"))),
    ]
    return [text for _, text in made if "–" not in text]


HEAD_NOTE = ("Groups are measured one after another on a machine that shares its memory with others, and some poll where others "
             "sleep: compare figures of one group only. The same load may have other figures in another group.")

TITLE = "What software RDMA can and cannot gain"
INTRO = ("The questions are those that the first implementers of iSER left open. The answers are "
         "from this run, over loopback or over a relay that delays; nothing here was measured "
         "on RDMA hardware.")


def known(rows):
    """Returns the questions whose answers have all their figures in this run."""
    return [(q, a) for q, a in answers(rows) if "–" not in a]


def questions_html(rows):
    if not known(rows):
        return ['<span id="questions"></span>']
    out = ['<h2 id="questions">%s</h2>' % TITLE, "<p>%s</p>" % INTRO]
    for question, answer in known(rows):
        out.append("<h3>%s</h3><p>%s</p>" % (html.escape(question), html.escape(answer)))
    return out


def questions_markdown(rows):
    if not known(rows):
        return ""
    lines = ["### " + TITLE, "", INTRO, ""]
    for question, answer in known(rows):
        lines += ["**%s** %s" % (question, answer), ""]
    return "\n".join(lines)


NOTES = {
    "peers": ["iscsi-perf only reads, and libiscsi needs a whole core for some 360 k reads per "
              "second. fio runs its nbd engine: against nbdkit, and through iser nbd-serve, "
              "which shares its CPU. iperf3 is one TCP stream."],
    "connections": ["The sum of all depths is 128 in each case."],
    "latency": ["One operation at a time, except in the open loop, where operations begin when "
                "they are due. \"client spins\": iser bench polls for up to 100 us; its p99.9 "
                "of some 4 ms is a time slice of the program that keeps its CPU awake."],
    "mixed": ["Files are on the file system of the build folder."],
}


def notes(group, _rows):
    """Returns the paragraphs above the plots of a group."""
    return NOTES.get(group, [])
