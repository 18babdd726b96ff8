#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""rounds - hackbench and sysbench under stock, scx_kin, and scx_kin with a switch thrown.

Runs as root on a kernel with sched_ext: scripts/demo starts it, in a virtual
machine or on this one.  A round is stock, then scx_kin, then scx_kin after the
switch, and the next one the same backwards, so that whatever drifts meanwhile
hits all three.  Each figure is the median of the rounds; the counters are what
came during hackbench.

Exit codes: 0 done, 1 something failed, 130 interrupted.
"""

import argparse
import contextlib
import ctypes
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

SWITCH = "NO_RUN_TO_PARITY"
BACK = SWITCH.removeprefix("NO_")
SETTINGS = ("stock", "scx_kin", SWITCH)
STATE = "/sys/kernel/sched_ext/state"
OPS = "/sys/kernel/sched_ext/root/ops"
WIDTH = 79

LOAD_LIMIT_S = 90  # the verifier takes seconds under emulation
RUN_LIMIT_S = 180
SYSBENCH_S = 2
HACKBENCH_LEAST_S = 0.15  # under stock, at most four times that: after the switch it may take 50 times as long
HACKBENCH_FIRST_LOOPS, HACKBENCH_MOST_LOOPS = 25, 6400

# The counters that explain hackbench: a line's text, and what is added up for it.
WHY = (
    ("refused: still protected", ("preempt_protected",)),
    ("wakees that preempted", ("preempt_local", "preempt_kick")),
    ("switches to the next in line", ("dispatch_queue",)),
    ("tasks moved to another node", ("move_node",)),
)

# What the figures of a guest of scripts/vm are worth.
LIMITS = {
    "tcg": """the machine was emulated. There a cache miss or remote memory costs nothing, a switch between tasks far
        more than on hardware, and its CPUs take turns on those of this machine. What scx_kin decided and counted is
        real; the ratios are the emulation's, and say little about speed on hardware.""",
    "kvm": """the machine was virtual, and its nodes and caches are an arrangement: memory is equally near everywhere,
        and its CPUs may have to wait for those of this machine. For figures that count, run it where sched_ext is.""",
}


class Failed(Exception):
    """Ends the program with one line on stderr."""


def die_with_parent():
    """In the child: end when this program does, however it does."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def show(text, end="\n"):
    print(text, end=end, flush=True)


def read(path):
    with contextlib.suppress(OSError), open(path) as file:
        return file.read().strip()
    return ""


def run(argv, limit=RUN_LIMIT_S):
    """A command's standard output; its failure is ours."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=limit, cwd="/tmp", preexec_fn=die_with_parent)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(argv)} did not end in {limit} s") from None
    except OSError as error:
        raise Failed(f"{argv[0]}: {error.strerror}") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no word").split("\n")[-1]
        raise Failed(f"{' '.join(argv)} failed ({done.returncode}): {last}")
    return done.stdout


# -----------------------------------------------------------------------------
# The loads
# -----------------------------------------------------------------------------

class Loads:
    """What is run, sized for this machine."""

    def __init__(self):
        self.cpus = os.cpu_count() or 1
        self.groups = max(2, self.cpus // 4)
        self.loops = HACKBENCH_FIRST_LOOPS

    def hackbench(self):
        out = run(["hackbench", "-g", str(self.groups), "-f", "10", "-l", str(self.loops)])
        found = re.search(r"Time: ([\d.]+)", out)
        if not found:
            raise Failed(f"hackbench said no time but: {out[:200]}")
        return float(found[1])

    @staticmethod
    def sysbench(test, threads, seconds=SYSBENCH_S):
        out = run(["sysbench", test, f"--threads={threads}", f"--time={seconds}", "run"])
        events = re.search(r"total number of events:\s*(\d+)", out)
        took = re.search(r"total time:\s*([\d.]+)s", out)
        if not events or not took:
            raise Failed(f"sysbench {test} said no events but: {out[-200:]}")
        return int(events[1]) / float(took[1])

    def threads(self):
        return self.sysbench("threads", self.cpus)

    def cpu(self):
        return self.sysbench("cpu", 2 * self.cpus)

    def fit(self):
        """Run each once, unmeasured, and make hackbench long enough to be measured."""
        self.sysbench("threads", self.cpus, 1)
        self.sysbench("cpu", 2 * self.cpus, 1)
        self.hackbench()
        while self.hackbench() < HACKBENCH_LEAST_S and self.loops < HACKBENCH_MOST_LOOPS:
            self.loops *= 4

    def describe(self):
        tasks = self.groups * 20
        return (f"hackbench: {tasks} processes, {self.groups * 100 * self.loops} messages; "
                f"sysbench threads: {self.cpus}; cpu: {2 * self.cpus}")


# name, unit, whether lower is better, how it is measured, format
TABLE = (
    ("hackbench", "seconds", True, Loads.hackbench, "{:.2f}"),
    ("sysbench threads", "events/s", False, Loads.threads, "{:.0f}"),
    ("sysbench cpu", "events/s", False, Loads.cpu, "{:.0f}"),
)


# -----------------------------------------------------------------------------
# The scheduler, as its user has it
# -----------------------------------------------------------------------------

class Kin:
    """scx_kin, running until the end of the with block."""

    def __init__(self, program):
        self.program = program

    def __call__(self, *words):
        return run([self.program, *words], 30)

    def __enter__(self):
        self.log = tempfile.TemporaryFile()
        # A session of its own: Ctrl-C reaches it through this program, once.
        self.child = subprocess.Popen([self.program], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                      start_new_session=True, preexec_fn=die_with_parent)
        try:
            self.wait_until_up()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        status = self.end()
        if status and not isinstance(_[1], KeyboardInterrupt):
            raise Failed(f"scx_kin ended with {status}:\n{self.words()}")

    def wait_until_up(self):
        until = time.monotonic() + LOAD_LIMIT_S
        why = "not attached"
        while self.child.poll() is None:
            if read(STATE) == "enabled":
                try:
                    self("get")
                    return
                except Failed as error:
                    why = error
            if time.monotonic() > until:
                raise Failed(f"scx_kin was not ready after {LOAD_LIMIT_S} s ({why}):\n{self.words()}")
            time.sleep(0.1)
        raise Failed(f"scx_kin did not start:\n{self.words()}")

    def end(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)
        try:
            return self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return self.child.wait()

    def words(self):
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().split("\n")
        return textwrap.indent("\n".join(lines[-15:]), "    ")

    def counters(self):
        return json.loads(self("counters", "--since-start", "--json"))["counters"]


# -----------------------------------------------------------------------------
# Measuring
# -----------------------------------------------------------------------------

class Results:
    def __init__(self, program):
        self.program = os.path.abspath(program)
        self.figures = {}  # (load, setting) -> one figure a round
        self.counts = {}  # (counters' text, setting) -> one count a round
        self.loads = Loads()
        self.start = time.monotonic()

    def line(self, text):
        gone = int(time.monotonic() - self.start)
        show(f"  {gone // 60}:{gone % 60:02} {text}", end="")

    def measure(self, number, setting, kin=None):
        """All loads under one setting, one line of progress."""
        self.line(f"round {number}  {setting:<17}")
        for name, unit, _, load, style in TABLE:
            counted = kin and name == "hackbench"
            before = kin.counters() if counted else None
            figure = load(self.loads)
            self.figures.setdefault((name, setting), []).append(figure)
            if counted:
                self.keep(setting, before, kin.counters())
            short = name.removeprefix("sysbench ")
            show(f" {short} " + style.format(figure) + (" s " if unit == "seconds" else "/s"), end="")
        show("")

    def keep(self, setting, before, after):
        for text, names in WHY:
            moved = sum(after[name] - before[name] for name in names)
            self.counts.setdefault((text, setting), []).append(moved)

    def throw(self, kin, word):
        self.line(f"scx_kin set {word}\n")
        kin("set", word)

    def rounds(self, number):
        """Forth and back: drift cancels out, and each load of the scheduler serves two rounds."""
        for first in range(1, number + 1, 2):
            second = first + 1 if first < number else None
            self.measure(first, "stock")
            with Kin(self.program) as kin:
                self.measure(first, "scx_kin", kin)
                self.throw(kin, SWITCH)
                self.measure(first, SWITCH, kin)
                if second:
                    self.measure(second, SWITCH, kin)
                    self.throw(kin, BACK)
                    self.measure(second, "scx_kin", kin)
            if second:
                self.measure(second, "stock")

    def median(self, name, setting):
        return statistics.median(self.figures[name, setting])

    def count(self, text, setting):
        return int(statistics.median(self.counts[text, setting]))


# -----------------------------------------------------------------------------
# Telling
# -----------------------------------------------------------------------------

def paragraph(text):
    return "\n".join(textwrap.wrap(" ".join(text.split()), WIDTH, break_on_hyphens=False))


def times(ratio):
    return f"{ratio:.2f}x" if ratio < 9.95 else f"{ratio:.0f}x"


def spread(values):
    """How far the rounds lie apart, in percent of the median."""
    return 100 * (max(values) - min(values)) / statistics.median(values)


def table(results):
    lines = [f"{'median of ' + str(len(results.figures['hackbench', 'stock'])) + ' rounds':<29}"
             f"{'stock':>9}{'scx_kin':>19}{'+ ' + SWITCH:>22}", "-" * WIDTH]
    for name, unit, lower, _, style in TABLE:
        stock = results.median(name, "stock")
        head = f"{name}, {unit}"
        line = f"{head:<29}{style.format(stock):>9}"
        for setting, width in (("scx_kin", 11), (SWITCH, 14)):
            mine = results.median(name, setting)
            line += f"{style.format(mine):>{width}}{times(mine / stock):>8}"
        lines.append(line)
    return "\n".join(lines)


def why_table(results):
    head = "counted during hackbench"
    lines = [f"{head:<29}{'':9}{'scx_kin':>19}{'+ ' + SWITCH:>22}", "-" * WIDTH]
    for text, names in WHY:
        counts = [results.count(text, setting) for setting in SETTINGS[1:]]
        lines.append(f"{text:<38}{counts[0]:>11,}{'':8}{counts[1]:>14,}")
        lines.append("    " + " + ".join(names))
    return "\n".join(lines)


def explanation(results):
    """The table in sentences, each only as far as the figures carry it."""
    before, after = (results.median("hackbench", s) for s in SETTINGS[1:])
    protected = [results.count(WHY[0][0], s) for s in SETTINGS[1:]]
    preempted = [results.count(WHY[1][0], s) for s in SETTINGS[1:]]
    switches = [results.count(WHY[2][0], s) for s in SETTINGS[1:]]
    ratio = after / before
    text = f"""{BACK} lets a task run for min_granularity_ns before one that it has woken may take its CPU.
        {protected[0]:,} of hackbench's wakeups were refused for that; with the switch thrown, {protected[1]:,} were."""
    if preempted[1] > 1.5 * preempted[0]:
        text += f" So {preempted[1]:,} instead of {preempted[0]:,} preempted what ran"
        if switches[1] > 1.5 * switches[0]:
            text += (f", a CPU turned to the next task in line {switches[1]:,} instead of {switches[0]:,} times for "
                     f"the same messages")
        text += ". "
    if ratio > 1.25:
        text += f" hackbench took {times(ratio).removesuffix('x')} times as long for it."
    elif ratio < 0.8:
        text += f" hackbench gained by it: {times(1 / ratio).removesuffix('x')} times as fast."
    else:
        text += f""" hackbench hardly cares here: {times(ratio).removesuffix('x')} times the time, and its rounds lie
            {spread(results.figures['hackbench', 'scx_kin']):.0f} % apart anyway."""
    return text


def tell(results):
    show(f"\n{table(results)}\n")
    show(paragraph("""hackbench: lower is better; sysbench: higher is better. The ratio is to stock, the kernel's own
                   scheduler, measured in the same rounds. """ + noise(results)))
    show(f"\n{why_table(results)}\n")
    show(paragraph(explanation(results)))
    if limits := LIMITS.get(os.environ.get("SCX_KIN_VM")):
        show("\n" + paragraph("What this cannot show: " + limits))


def noise(results):
    widest = max(((spread(results.figures[name, "stock"]), name) for name, *_ in TABLE))
    return f"""Stock's own rounds lie up to {widest[0]:.0f} % apart ({widest[1]}): smaller differences are noise."""


def parse():
    parser = argparse.ArgumentParser(prog="rounds", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="SCX_KIN", help="the binary")
    parser.add_argument("--rounds", type=int, default=5, help="how many (5)")
    return parser.parse_args()


def ready():
    if os.geteuid():
        raise Failed("root is needed to load a scheduler")
    if not read(STATE):
        raise Failed(f"kernel {os.uname().release} has no sched_ext")
    if read(STATE) != "disabled":
        raise Failed(f"another sched_ext scheduler runs: {read(OPS) or 'unnamed'}")


def interrupted(*_):
    raise KeyboardInterrupt


def main():
    args = parse()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    try:
        ready()
        results = Results(args.program)
        results.line("trying each load once ...")
        results.loads.fit()
        show("\n       " + results.loads.describe())
        results.rounds(args.rounds)
        tell(results)
    except Failed as error:
        print(f"\ndemo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
