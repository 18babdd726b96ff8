# SPDX-License-Identifier: GPL-2.0-only
"""One boot: QEMU, virtiofsd, the ports between guest and host, and what the console says."""

import contextlib
import os
import re
import selectors
import shutil
import socket
import subprocess
import time

from .common import HarnessError, die_with_parent, note
from .frozen import describe
from .share import BEAT_S

BOOT_LIMIT_S, BOOT_LIMIT_PER_CPU_S = 120, 10
CONSOLE_LOOK_S = 0.5
PANIC_GRACE_S = 3  # for the rest of the trace
POWEROFF_LIMIT_S = 5
# A guest that gives no sign of life for so long is frozen.  One that lives gives one every BEAT_S and a little, even
# if TCG runs all its vCPUs on one thread of a busy host; the rest is for hosts that are slower still.
FROZEN_S = 120
SPLAT_LINES, TRACE_LINES = 25, 80

# A splat's own words, as the kernel prints them at the start of a line.  sched_ext's reports
# ("sched_ext: ..") are about a scheduler and are no breakage.
SPLAT = re.compile(rb"^(?:\[[ .\d]+\])?(?:\[[ TC\d]+\])? ?(?:"
                   rb"(?P<warning>WARNING: .*\bat )|BUG: |Oops\b|Kernel panic|INFO: rcu_|rcu: INFO: |"
                   rb"watchdog: BUG: |kernel BUG at |general protection fault|divide error|"
                   rb"list_(?:add|del) corruption)",
                   re.M)
POWER_OFF = b"sysrq: Power Off"
PANIC = re.compile(rb"Kernel panic - not syncing")
INT3_OOPS = re.compile(rb"Oops: int3: ")
# Bits 22 and up are always 0.  Seen set in a double fault at cmpxchg16b.
EFLAGS, EFLAGS_BITS = re.compile(rb"EFLAGS: ([0-9a-f]+)"), 22
# The byte before the instruction pointer, where the int3 was: another CPU has put the new instruction there.
NO_INT3_THERE = re.compile(rb"Code: (?:\w\w )*(?!cc)\w\w <")
CODE = re.compile(rb"\bCode: ")
IN_SCHEDULE = re.compile(rb"RIP: \S*__schedule\+|(?:^|\])\s+__schedule\+")  # not "? __schedule", a guess

KERNEL_ARGS = [
    "console=ttyS0", "loglevel=5",  # warnings, not what each driver has to say
    "root=rootfs", "rootfstype=virtiofs", "ro", "panic=-1", "oops=panic", "mitigations=off",
    # A vCPU of a busy host may be off for long: that is no lockup of this kernel.
    "nowatchdog", "workqueue.watchdog_thresh=0", "rcupdate.rcu_cpu_stall_timeout=300",
]
# TCG's TSC is the host's, the same on all vCPUs; without "reliable" the guest may leave it for the far slower HPET.
TCG_ARGS = ["tsc=reliable", "no_timer_check", "random.trust_cpu=on"]


class Guest:
    """QEMU, virtiofsd and the ports between the guest and this program."""

    def __init__(self, run, console, args):
        self.run, self.console, self.args = run, console, args
        self.ports, self.processes, self.monitor = {}, [], None
        self.report, self.control = [], b""
        self.status = None
        self.started = self.panicked = False
        self.scan_from = 0
        self.heard, self.console_size, self.silent_s = True, 0, 0

    def start(self, qemu, virtiofsd, kernel, machine, accelerator):
        errors = open(self.run / "errors", "wb")
        share = self.run / "fs"
        self.spawn([virtiofsd, f"--socket-path={share}", "--shared-dir", "/", "--sandbox", "none",
                    "--cache", "always", "--log-level", "error"], errors)
        names = ["out", "err", "control"] if self.args.command else ["tty", "control"]
        # One thread for all vCPUs: with one each, the emulator now and then runs code
        # that the kernel has patched since, and a CPU going offline kills it each time.
        argv = [qemu, "-M", "q35", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                "-name", "debug-threads=on",  # see frozen.py
                *(["-accel", "kvm", "-cpu", "host"] if accelerator == "kvm" else
                  ["-accel", "tcg,thread=single", "-cpu", "Nehalem,+rdrand"]),
                *(["-icount", "shift=0,sleep=off"] if self.args.icount else []),
                *machine.qemu_args(), "-kernel", str(kernel.image),
                "-append", " ".join([*KERNEL_ARGS, *(TCG_ARGS if accelerator == "tcg" else []),
                                     f"init={self.run}/init", *self.args.append]),
                "-chardev", f"file,id=console,path={self.console}", "-serial", "chardev:console",
                "-chardev", f"socket,id=fs,path={share}", "-device", "vhost-user-fs-pci,chardev=fs,tag=rootfs",
                "-device", "virtio-serial-pci"]
        self.monitor, other = socket.socketpair()
        theirs = [other]
        argv += ["-chardev", f"socket,id=monitor,fd={other.fileno()}", "-mon", "chardev=monitor,mode=control"]
        for name in names:
            self.ports[name], other = socket.socketpair()
            theirs.append(other)
            device = "virtconsole,nr=0" if name == "tty" else \
                f"virtserialport,nr={['out', 'err', 'control'].index(name) + 1}"
            argv += ["-chardev", f"socket,id={name},fd={other.fileno()}", "-device", f"{device},chardev={name}"]
        limit = time.monotonic() + 10
        while not share.exists():
            if self.processes[0].poll() is not None or time.monotonic() > limit:
                raise HarnessError(f"virtiofsd did not start: {self.words()}")
            time.sleep(0.01)
        self.spawn(argv, errors, [other.fileno() for other in theirs])
        for other in theirs:
            other.close()

    def spawn(self, argv, errors, fds=()):
        self.processes.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                                               pass_fds=fds, start_new_session=True, preexec_fn=die_with_parent))

    def words(self):
        with contextlib.suppress(OSError):
            return (self.run / "errors").read_text(errors="replace").strip()[-1000:]
        return ""

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
            process.wait()
        for port in self.ports.values():
            port.close()
        if self.monitor:
            self.monitor.close()

    def serve(self, machine):
        """Pass data on until the guest has gone or is frozen, or the time is up."""
        self.deadline = time.monotonic() + BOOT_LIMIT_S + BOOT_LIMIT_PER_CPU_S * machine.cpus
        with selectors.DefaultSelector() as selector:
            for name, port in self.ports.items():
                selector.register(port, selectors.EVENT_READ, name)
            if not self.args.command:
                selector.register(0, selectors.EVENT_READ, "keys")
            left, look, beat = set(self.ports), 0, 0
            while left and not self.frozen() and time.monotonic() < self.deadline:
                for key, _ in selector.select(CONSOLE_LOOK_S):
                    if not self.take(key.data, machine):
                        selector.unregister(key.fileobj)
                        left.discard(key.data)
                if not self.panicked and time.monotonic() > look:
                    look = time.monotonic() + CONSOLE_LOOK_S
                    if PANIC.search(self.console_text()):
                        self.panicked = True
                        self.deadline = time.monotonic() + PANIC_GRACE_S
                if self.started and self.status is None and time.monotonic() > beat:
                    beat = time.monotonic() + BEAT_S
                    self.look_for_life()

    def look_for_life(self):
        """
        Called every BEAT_S: was there a sign of life from the guest since the last time?
        Calls are counted, not time: this program may have been stopped itself.
        """
        size = os.path.getsize(self.console)
        alive = self.heard or size != self.console_size
        self.silent_s = 0 if alive else self.silent_s + BEAT_S
        self.heard, self.console_size = False, size

    def frozen(self):
        return self.silent_s >= FROZEN_S

    def keep_frozen(self):
        """What can be known of a frozen guest, in a file of its own: the next boot begins the console anew."""
        kept = self.console.with_name(self.console.name + ".frozen")
        kept.write_bytes(self.console.read_bytes() + describe(self.processes[-1].pid, self.monitor).encode())
        note(f"the guest froze: no sign of life and nothing on its console for {FROZEN_S} s")
        note(f"its console and the registers of its CPUs: {kept}")

    def take(self, name, machine):
        """Read what one side has to say; False at its end."""
        try:
            data = os.read(0, 4096) if name == "keys" else self.ports[name].recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if name != "keys":
            self.heard = True
        if name == "control":
            self.control += data
            *lines, self.control = self.control.split(b"\n")
            for line in lines:
                self.hear(line.decode(errors="replace").strip(), machine)
        elif name == "keys":
            self.ports["tty"].sendall(data)
        else:
            rest = data
            while rest:
                rest = rest[os.write(2 if name == "err" else 1, rest):]
        return bool(data)

    def hear(self, line, machine):
        if line == "ready":
            machine.check(self.report)
            self.scan_from = os.path.getsize(self.console)
            self.started = True
            self.deadline = time.monotonic() + (self.args.timeout or float("inf"))
            self.ports["control"].sendall(b"go\n")
            # All of it is open or read by now: nothing stays even if this program is killed.
            shutil.rmtree(self.run, ignore_errors=True)
        elif line.startswith("exit "):
            self.status = int(line[5:])
            self.deadline = time.monotonic() + POWEROFF_LIMIT_S
        elif line != "alive":
            self.report.append(line)

    def console_text(self):
        with open(self.console, "rb") as file:
            file.seek(self.scan_from)
            text = file.read().replace(b"\r", b"")
        # What the kernel says while its devices go away is about them.
        return text.rpartition(POWER_OFF)[0] or text if self.status is not None else text

    def splats(self):
        """The console's lines from each splat on, a few of each."""
        text = self.console_text()
        found = [m for m in SPLAT.finditer(text) if not (self.args.allow_warnings and m["warning"])]
        return [text[m.start():].split(b"\n", SPLAT_LINES)[:SPLAT_LINES] for m in found]

    def is_tcg_fault(self):
        """
        Any splat before the command starts: nothing of ours has run, only a stock kernel and the
        emulator.  After that, flags that no processor can have, or an int3 oops where no int3 is
        or in __schedule.
        """
        text = self.console_text()
        first = SPLAT.search(text)
        if not first or not self.started:
            return bool(first)
        trace = text[first.start():].split(b"\n", TRACE_LINES)[:TRACE_LINES]
        flags = next((found for found in map(EFLAGS.search, trace) if found), None)
        if flags and int(flags[1], 16) >> EFLAGS_BITS:
            return True
        if not INT3_OOPS.search(trace[0]):
            return False
        code = next((line for line in trace if CODE.search(line)), b"")
        return (bool(NO_INT3_THERE.search(code))
                or any(IN_SCHEDULE.search(line) for line in trace))
