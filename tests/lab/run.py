#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The laboratory: jobs in a guest with the iSCSI and iSER of the Linux kernel.

Each job (a shell script of tests/lab/jobs) has its own guest, which boots under
emulation in some seconds and shuts down at the end of the job; at the job's limit
this program kills the guest. The program prints a matrix and ends with "N passed,
N failed, N skipped". The output of a guest (results, logs, captures, the kernel's
messages) is in CACHE/run/JOB/out.
"""
import argparse
import concurrent.futures
import contextlib
import fcntl
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import host

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
JOBS = os.path.join(HERE, "jobs")
PROGRAMS = ("src/daemon/iserd", "src/tools/iser", "src/tools/iserctl")
LIBS = "usr/lib/x86_64-linux-gnu"
# the steps that have a column of their own in the matrix
COLUMNS = ("discovery", "login", "compare", "fsck", "abort", "reset",
           "reconnect", "logout", "dmesg")
SMOKE = ("siw-linux-to-iserd", "tcp-iser-to-lio")
ROM = "/usr/lib/ipxe/qemu/pxe-e1000.rom"
# the tools that make and run the guest, in addition to those of make test
TOOLS = ("qemu-system-x86_64", "busybox", "cpio", "depmod", "zstd", "xz",
         "make", "gcc-12")
# each program of a job writes the reports of a sanitizer to separate files
SANITIZERS = """export ASAN_OPTIONS=log_path=/lab/out/sanitizer
export UBSAN_OPTIONS=print_stacktrace=1:log_path=/lab/out/sanitizer
"""
# the networks of the guest in which gateways on the host have the address 10
HOST_NETS = ("192.0.2", "198.51.100")
# set: all guests must end now
STOP = threading.Event()
DOC_BEGIN = "<!-- written by tests/lab/run.py --doc: begin -->\n"
DOC_END = "<!-- written by tests/lab/run.py --doc: end -->\n"


class Job:
    """A script and the values of its comments: pair, limit, memory, machines."""

    def __init__(self, name, text=None):
        self.name = name
        if text is None:
            with open(os.path.join(JOBS, name)) as f:
                text = f.read()
        self.text = text
        self.pair = [p.strip() for p in self.comment("pair", name).split("|")]
        self.limit = int(self.comment("limit", "120"))
        self.memory = int(self.comment("memory", "1024"))
        # the number of guests on one cable; each runs the script, with $MACHINE = 1 or 2
        self.machines = int(self.comment("machines", "1"))
        # the second machine has no disk, kernel or script, but boots over the cable whenever
        # the job asks for that
        self.boots = self.comment("second", "") == "boots"
        # "rbd": two gateways on the host (host.py), which the guest reaches by two network cards
        self.host = self.comment("host", "")

    def comment(self, key, otherwise):
        found = re.search(r"^# %s: (.*)$" % key, self.text, re.M)
        return found.group(1) if found else otherwise


class Results:
    """The result lines of one guest."""

    def __init__(self):
        self.steps = []         # (name, "ok" | "not ok" | "skip", why)
        self.figures = []       # (name, value, unit, pair or None)
        self.pair = None        # the pair of the figures that follow, if not the job's
        self.kill = False       # the job requests that the second machine is killed now
        self.boot = None        # the job requests that it boots now: the name of its console
        self.asks = []          # lines for the gateways on the host
        self.ended = False
        self.seconds = 0.0

    def add(self, line):
        """Adds a line of out/results; returns True if the line should be printed."""
        found = re.match(r"(ok|not ok|skip) (\S+) ?(.*)", line)
        if found:
            self.steps.append((found.group(2), found.group(1), found.group(3)))
        elif re.match(r"figure \S+ \S+ \S+$", line):
            self.figures.append(tuple(line.split()[1:]) + (self.pair,))
        elif line.startswith("pair "):
            self.pair = tuple(x.strip() for x in line[5:].split("|"))
        elif line == "kill":
            self.kill = True
            return False
        elif line.startswith("boot "):
            self.boot = line[5:]
            return False
        elif line.startswith("host "):
            self.asks.append(line)
            return False
        elif line.startswith("end "):
            self.ended = True
            return False
        return True

    def count(self, word):
        return sum(1 for s in self.steps if s[1] == word)

    def word(self, name):
        """The cell of the matrix for a step."""
        words = {s[1] for s in self.steps if s[0] == name}
        if "not ok" in words:
            return "FAIL"
        return ", ".join(w for w in ("ok", "skip") if w in words) or "-"

    def others(self):
        return [s[0] if s[1] == "ok" else "%s (%s)" % (s[0], s[1])
                for s in self.steps if s[0] not in COLUMNS]


# ---- the guest ----

def libraries_of(program):
    text = subprocess.run(["ldd", program], stdout=subprocess.PIPE,
                          check=True).stdout.decode()
    missing = re.findall(r"(\S+) => not found", text)
    if missing:
        sys.exit("lab: %s: library %s is missing" % (program, missing[0]))
    return re.findall(r"=> (/\S+)", text)


def compile_program(build, work):
    """Compiles the program of the laboratory that uses libiser as applications do. Returns its path, or None:
    with a sanitizer in the library alone it cannot start."""
    library = os.path.join(build, "src/lib/libiser.so.1")
    program = os.path.join(work, "change_connections")
    if not os.path.exists(library):
        sys.exit("lab: %s: not built; run make" % library)
    if any("asan" in lib for lib in libraries_of(library)):
        return None
    subprocess.run(["gcc", "-O1", "-I", os.path.join(TREE, "include"), os.path.join(HERE, "change_connections.c"),
                    "-o", program, library, "-Wl,-rpath," + os.path.dirname(os.path.abspath(library))], check=True)
    return program


def pack(folder, out):
    """Packs the folder into an archive that the kernel can unpack at boot."""
    names = subprocess.run(["find", "."], cwd=folder, check=True,
                           stdout=subprocess.PIPE).stdout
    archive = subprocess.run(["cpio", "-o", "-H", "newc", "-R", "0:0",
                              "--quiet"], cwd=folder, input=names, check=True,
                             stdout=subprocess.PIPE).stdout
    with open(out, "wb") as f:
        subprocess.run(["zstd", "-q", "-1", "-c"], input=archive, stdout=f,
                       check=True)


def bring_programs(build, cache, work):
    """Makes the guest's root tree, with this project's programs in /opt/openiser,
    as a file in the folder work. Returns its path, and whether the programs were
    built with a sanitizer."""
    stage = os.path.join(work, "project")
    os.makedirs(os.path.join(stage, LIBS))
    os.makedirs(os.path.join(stage, "opt/openiser"))
    sanitized = False
    modules = glob.glob(os.path.join(build, "src/**/rcap-*.so"), recursive=True)
    compiled = compile_program(build, work)
    for program in [os.path.join(build, p) for p in PROGRAMS] + modules + [compiled] * bool(compiled):
        if not os.path.exists(program):
            sys.exit("lab: %s: not built; run make" % program)
        shutil.copy2(program, os.path.join(stage, "opt/openiser"))
        for lib in libraries_of(program):
            here = os.path.join(LIBS, os.path.basename(lib))
            sanitized |= os.path.basename(lib).startswith(("libasan", "libubsan"))
            if not os.path.exists(os.path.join(cache, "tree", here)):
                shutil.copy2(lib, os.path.join(stage, here))
    project = os.path.join(work, "project.cpio")
    pack(stage, project)
    whole = os.path.join(work, "whole.cpio")
    with open(whole, "wb") as out:
        for part in (os.path.join(cache, "guest.cpio"), project):
            with open(part, "rb") as f:
                shutil.copyfileobj(f, out)
            out.write(b"\0" * (-out.tell() % 4))
    return whole, sanitized


def cable(job, number, card="virtio-net-pci", more=""):
    """The options for one end of the cable between two guests: datagrams of UNIX
    sockets in the job's folder. A guest that is killed sends nothing more, and the
    link of the other guest stays up."""
    if job.machines == 1:
        return []
    return ["-netdev", "dgram,id=cable,local.type=unix,local.path=cable.%d,"
            "remote.type=unix,remote.path=cable.%d" % (number, 3 - number),
            "-device", "%s,netdev=cable,mac=52:54:00:00:00:%02x%s" %
            (card, number, more)]


def host_cards(job):
    """Two network cards; behind each, an address is that of the host's 127.0.0.1."""
    if not job.host:
        return []
    return [word for i, net in enumerate(HOST_NETS) for word in
            ("-netdev", "user,id=host%d,ipv6=off,net=%s.0/24,host=%s.10,dns=%s.3" % (i, net, net, net),
             "-device", "virtio-net-pci,netdev=host%d,mac=52:54:00:00:01:%02x,romfile=" % (i, i))]


def accelerator(args):
    if args.accel == "kvm":     # QEMU itself falls back to the second one
        return ["-accel", "kvm", "-accel", "tcg", "-cpu", "max"]
    return ["-accel", "tcg,thread=multi", "-cpu", "max"]


def boot_command(args, job, folder, console):
    """A PC that has only a network card, with iPXE in its ROM. The console of BIOS,
    boot loader and kernel is the serial port."""
    return ["nice", "-n", "10", "qemu-system-x86_64"] + accelerator(args) + [
        "-M", "pc,graphics=off", "-m", "512", "-nodefaults", "-no-user-config",
        "-display", "none", "-no-reboot", "-boot", "n",
        "-serial", "file:" + os.path.join(out_of(folder, 2), console)] + \
        cable(job, 2, "e1000", ",romfile=" + ROM)


def qemu_command(args, job, folder, number):
    out = out_of(folder, number)
    memory = args.memory or job.memory + (1024 if args.sanitized else 0)
    return ["nice", "-n", "10", "qemu-system-x86_64"] + accelerator(args) + [
        "-m", str(memory), "-smp", str(args.cpus),
        "-nodefaults", "-no-user-config", "-nographic", "-no-reboot",
        "-serial", "file:" + os.path.join(out, "console.txt"),
        "-kernel", os.path.join(args.cache, "vmlinux"),
        "-initrd", args.initrd,
        "-append", "console=ttyS0 quiet loglevel=4 panic=-1 nokaslr no5lvl "
                   "mitigations=off no_timer_check random.trust_cpu=on net.ifnames=0 "
                   "lab.machine=%d" % number,
        "-device", "virtio-rng-pci",
        "-virtfs", "local,path=%s,mount_tag=lab,security_model=none" % folder,
        # the unpacked packages: programs that need too many files for the initramfs
        "-virtfs", "local,path=%s,mount_tag=packages,security_model=none,readonly=on" %
        os.path.join(args.cache, "root")] + \
        cable(job, number) + host_cards(job)


def out_of(folder, number):
    return os.path.join(folder, "out" if number == 1 else "out/second")


def prepare(args, job):
    folder = os.path.join(args.cache, "run", job.name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(out_of(folder, job.machines))
    if job.boots:
        if not os.path.exists(ROM):
            raise FileNotFoundError(ROM + ": install ipxe-qemu")
        os.link(os.path.join(args.cache, "boot.img"), os.path.join(folder, "boot.img"))
    shutil.copytree(os.path.join(HERE, "guest"), os.path.join(folder, "guest"))
    # the jobs of gateways use the multipath.conf of this page
    shutil.copy2(os.path.join(TREE, "docs/cluster.md"), folder)
    with open(os.path.join(folder, "job"), "w") as f:
        f.write(job.text)
    with open(os.path.join(folder, "settings"), "w") as f:
        f.write("export PATIENCE=%d SMOKE=%s\n" %
                (patience(args), "yes" if args.smoke else ""))
        if args.sanitized:
            f.write(SANITIZERS)
    return folder


def patience(args):
    """The factor of all limits: on a busy machine the guest is slower."""
    return (args.patience or 1 + int(os.getloadavg()[0] / os.cpu_count())) * \
        (3 if args.sanitized else 1)


@contextlib.contextmanager
def one_at_a_time(args, job):
    """Locks the folder of a job: two runs may share the cache, but not that folder."""
    os.makedirs(os.path.join(args.cache, "run"), exist_ok=True)
    with open(os.path.join(args.cache, "run", job.name + ".lock"), "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


class Tail:
    """The complete lines of a file that another process appends to."""

    def __init__(self, path):
        self.path = path
        self.at = 0

    def lines(self):
        try:
            with open(self.path, "rb") as f:
                f.seek(self.at)
                text = f.read()
        except FileNotFoundError:
            return []
        text = text[:text.rfind(b"\n") + 1]
        self.at += len(text)
        return text.decode(errors="replace").splitlines()


def start_guest(command, folder, number):
    with open(os.path.join(out_of(folder, number), "qemu.txt"), "ab") as text:
        return subprocess.Popen(command, cwd=folder, stdout=text,
                                stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL)


def end_guest(guest):
    if guest.poll() is None:
        guest.kill()
        guest.wait()


def start_host(args, job, folder):
    """The gateways on the host, if the job has them; the guest gets their ports."""
    if not job.host:
        return None
    gateways = host.Host(args.build, os.path.join(folder, "out"), HOST_NETS)
    with open(os.path.join(folder, "settings"), "a") as f:
        f.write("export ON_HOST=yes GATEWAY_PORTS='%s'\n" % " ".join(str(p) for p in gateways.ports.values()))
    return gateways


def do_as_asked(args, job, folder, results, guests, gateways):
    """The requests of the first machine about the second one, and about the gateways on the host."""
    for line in results.asks:
        gateways.answer(line)
    results.asks = []
    if results.kill:
        results.kill = False
        for guest in guests[1:]:
            end_guest(guest)
        with open(os.path.join(folder, "out/killed"), "w"):
            pass
    if results.boot:
        for guest in guests[1:]:
            end_guest(guest)
        guests[1:] = [start_guest(boot_command(args, job, folder, results.boot), folder, 2)]
        results.boot = None


def run_guest(args, job, show):
    """Boots the guests of a job, waits for their end and returns the results;
    show(line) prints each result as it arrives. The job ends when the first guest
    ends."""
    folder = prepare(args, job)
    out = os.path.join(folder, "out")
    results, tail = Results(), Tail(os.path.join(out, "results"))
    if job.host and host.missing(args.build):
        results.add("skip host " + host.missing(args.build))
        show("  skip host " + results.steps[-1][2])
        return results
    log = Tail(os.path.join(out, "log")) if args.shell else None
    limit = args.limit or job.limit * patience(args)
    began = time.monotonic()

    def look():
        for line in tail.lines():
            if results.add(line) and not args.shell:
                show("%7.1f s  %s" % (time.monotonic() - began, line))
        for line in log.lines() if log else []:
            show(line)

    gateways = start_host(args, job, folder)
    guests = [start_guest(qemu_command(args, job, folder, number + 1), folder, number + 1)
              for number in range(1 if job.boots else job.machines)]
    try:
        while guests[0].poll() is None and \
                time.monotonic() - began < limit and not STOP.is_set():
            time.sleep(0.2)
            look()
            do_as_asked(args, job, folder, results, guests, gateways)
    finally:
        for guest in guests:
            end_guest(guest)
        if gateways:
            gateways.stop()
    look()
    results.seconds = time.monotonic() - began
    if not results.ended:
        why = "the run was interrupted" if STOP.is_set() else \
            "killed after %d s" % limit if guests[0].returncode < 0 else \
            last_words(out)
        results.add("not ok guest did not shut down: " + why)
        show("  not ok guest " + results.steps[-1][2])
    for path in sorted(glob.glob(os.path.join(out, "sanitizer.*"))):
        results.add("not ok sanitizer %s: %s" % (os.path.basename(path),
                                                 sanitizer_says(path)))
        show("  not ok sanitizer " + results.steps[-1][2])
    if not results.steps and not args.shell:
        results.add("not ok guest the job printed no result")
        show("  not ok guest the job printed no result")
    return results


def sanitizer_says(path):
    with open(path, errors="replace") as f:
        found = re.search(r".*(?:ERROR|runtime error).*", f.read())
    return found.group(0).strip() if found else "see this file"


def last_words(out):
    for name in ("qemu.txt", "console.txt"):
        path = os.path.join(out, name)
        if os.path.exists(path):
            with open(path, errors="replace") as f:
                lines = [x.strip() for x in f if x.strip()]
            if lines:
                return lines[-1]
    return "no message from QEMU or the kernel"


# ---- the matrix ----

def rows_of(done):
    rows = [("initiator", "target", "over") + COLUMNS + ("more",)]
    for job, results in done:
        pair = tuple((job.pair + ["", "", ""])[:3])
        rows.append(pair + tuple(results.word(c) for c in COLUMNS) +
                    (", ".join(results.others()),))
    return rows


def figures_of(done):
    """The rows of the table of figures: one column for each name that occurs."""
    names = list(dict.fromkeys((x[0], x[2]) for _, results in done
                               for x in results.figures))
    rows = [("initiator", "target", "over") +
            tuple("%s %s" % (n.replace("-", " "), unit) for n, unit in names)]
    for job, results in done:
        pairs = {}
        for name, value, _, pair in results.figures:
            pairs.setdefault(pair or tuple(job.pair), {})[name] = value
        for pair, have in pairs.items():
            rows.append((pair + ("", "", ""))[:3] +
                        tuple(have.get(n, "-") for n, _ in names))
    return rows if names else []


def print_table(rows):
    if not rows:
        return
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    print()
    for r in rows:
        print("  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip())
    print()


def markdown_table(rows):
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    return lines + ["| " + " | ".join(r) + " |" for r in rows[1:]]


def markdown(args, done):
    rows = rows_of(done)
    lines = markdown_table(rows)
    why = ["- %s, %s: %s, %s: %s" % (job.name, name, ", ".join(job.pair), word,
                                     text)
           for job, results in done
           for name, word, text in results.steps if word != "ok"]
    figures = figures_of(done)
    with open(os.path.join(args.cache, "kernel-version")) as f:
        lines.insert(0, "Kernel %s, emulated; each row is from "
                     "the last run of its job.\n" % f.read().strip())
    if why:
        lines += ["", "Steps that failed or were skipped:", ""] + why
    if figures:
        lines += ["", "Figures of guests on a machine with other load; "
                  "they vary by a factor of 2 or 3 from run to run.", ""]
        lines += markdown_table(figures)
    return "\n".join(lines) + "\n"


def with_earlier(args, done):
    """The results of this run, and the results of the last run of each other job."""
    now = {job.name for job, _ in done}
    earlier = []
    for name in sorted(os.listdir(JOBS)):
        path = os.path.join(args.cache, "run", name, "out/results")
        if name in now or not os.path.exists(path):
            continue
        results = Results()
        for line in Tail(path).lines():
            results.add(line)
        if results.ended:
            earlier.append((Job(name), results))
    return sorted(done + earlier, key=lambda x: x[0].name)


def write_doc(args, done):
    done = with_earlier(args, done)
    with open(args.doc) as f:
        text = f.read()
    head, mark, rest = text.partition(DOC_BEGIN)
    old, end, tail = rest.partition(DOC_END)
    if not mark or not end:
        sys.exit("lab: %s: no marks that --doc needs: %s" % (args.doc, DOC_BEGIN.strip()))
    with open(args.doc, "w") as f:
        f.write(head + mark + "\n" + markdown(args, done) + "\n" + end + tail)


# ---- main ----

def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--job", action="append", default=[], metavar="NAME",
                   help="run this job only; may be repeated")
    p.add_argument("--shell", metavar="COMMANDS",
                   help="run these in a guest, with the functions of "
                        "guest/lib.sh, and show their output")
    p.add_argument("--smoke", action="store_true",
                   help="only discovery, login, 64 MiB compared and logout of "
                        "Linux over iSER, and a login of iser to LIO; skipped "
                        "if no guest can be made")
    p.add_argument("--list", action="store_true", help="print the names of the jobs")
    p.add_argument("--build", default=os.path.join(TREE, "build"),
                   help="the build folder with the programs (build)")
    p.add_argument("--cache", default=os.path.join(TREE, "build-lab-cache"),
                   help="the folder of the guest (build-lab-cache)")
    p.add_argument("--doc", metavar="FILE", help="write the matrix to this page, with the "
                        "results of the last run of the other jobs")
    p.add_argument("--accel", choices=("tcg", "kvm"), default="tcg")
    p.add_argument("--cpus", type=int, default=1)
    p.add_argument("--guests", type=int, default=1, metavar="N",
                   help="how many guests run at once (1)")
    p.add_argument("--memory", type=int, help="MiB, instead of the job's")
    p.add_argument("--patience", type=int, metavar="N",
                   help="multiply all limits (1, or more on a busy machine)")
    p.add_argument("--limit", type=int, help="seconds, instead of the job's")
    args = p.parse_args()
    args.cache, args.build = map(os.path.abspath, (args.cache, args.build))
    return args


def chosen(args):
    if args.shell:
        return [Job("shell", args.shell + "\n")]
    if args.smoke:
        jobs = [Job(name) for name in SMOKE]
        for job in jobs:
            job.name = "smoke-" + job.name
        return jobs
    names = sorted(os.listdir(JOBS))
    for name in args.job:
        if name not in names:
            sys.exit("lab: %s: no such job; use one of: %s" % (name, " ".join(names)))
    return [Job(n) for n in args.job or names]


def show(line):
    print(line, flush=True)


def main():
    # so that the guests end with this program
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    args = arguments()
    jobs = chosen(args)
    if args.list:
        for job in jobs:
            print("%-24s %s" % (job.name, " | ".join(job.pair)))
        return 0
    missing = [t for t in TOOLS if not shutil.which(t)]
    if missing:
        return no_guest(args, "%s is not installed; run scripts/packages "
                        "packages-lab.txt" % missing[0])
    boot = ["boot"] if any(job.boots for job in jobs) else []
    if subprocess.run(["nice", os.path.join(HERE, "build.sh"), args.cache] + boot).returncode:
        return no_guest(args, "cannot make the guest")
    with tempfile.TemporaryDirectory(prefix="work-", dir=args.cache) as work:
        args.initrd, args.sanitized = bring_programs(args.build, args.cache, work)
        return run_all(args, jobs)


def no_guest(args, why):
    if not args.smoke:
        sys.exit("lab: " + why)
    show("skip lab " + why)
    show("0 passed, 0 failed, 1 skipped")
    return 0


def run_one(args, job):
    """Runs a job and returns its results. An exception becomes a failed step, so
    that the matrix is still printed."""
    show_line = show
    if args.guests > 1:     # name the job of each line
        def show_line(line):
            show("%-28s %s" % (job.name, line))
    if not args.shell:
        show_line("%s: %s" % (job.name, " | ".join(job.pair)))
    results = Results()
    try:
        with one_at_a_time(args, job):
            if not STOP.is_set():
                results = run_guest(args, job, show_line)
    except Exception as e:  # pylint: disable=broad-except
        results.add("not ok guest %s: %s" % (type(e).__name__, e))
        show_line("  not ok guest %s" % results.steps[-1][2])
    if not args.shell:
        show_line("  %.1f s" % results.seconds)
    return results


def run_jobs(args, jobs):
    """Runs the jobs, those with the longest limit first, and returns pairs of job and
    results. After an interruption the jobs that ran are returned."""
    pool = concurrent.futures.ThreadPoolExecutor(args.guests)
    order = sorted(jobs, key=lambda j: -j.limit) if args.guests > 1 else jobs
    runs = [(job, pool.submit(run_one, args, job)) for job in order]
    try:
        concurrent.futures.wait([f for _, f in runs])
    except BaseException:   # SIGTERM, Ctrl-C: show the results so far
        STOP.set()
        for _, f in runs:
            f.cancel()
    pool.shutdown()
    done = [(job, f.result()) for job, f in runs if not f.cancelled()]
    return sorted(done, key=lambda x: jobs.index(x[0]))


def run_all(args, jobs):
    began = time.monotonic()
    done = run_jobs(args, jobs)
    if args.shell:
        return 0 if done and done[0][1].ended else 1
    if not args.smoke:
        print_table([r[:-1] for r in rows_of(done)])
        print_table(figures_of(done))
    if args.doc:
        write_doc(args, done)
    total = [sum(r.count(w) for _, r in done) for w in ("ok", "not ok", "skip")]
    show("%d guests in %.0f s" % (len(done), time.monotonic() - began))
    show("%d passed, %d failed, %d skipped" % tuple(total))
    if len(done) < len(jobs):
        show("%d jobs did not run" % (len(jobs) - len(done)))
    return 1 if total[1] or len(done) < len(jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
