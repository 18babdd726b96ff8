# SPDX-License-Identifier: GPL-2.0-only
"""What a guest sees of the host: the root that virtiofs shares, and the init that arranges it."""

import os
import shlex
import shutil

from .common import PROJECT, cache_dir

BEAT_S = 10  # between two signs of life of the guest; each costs it a fork
HIDDEN = ("/tmp", "/var/tmp", "/run", "/root", "/dev/shm")  # a tmpfs in the guest

INIT = r"""#!/bin/sh
# Made by scripts/vm.  Every fork costs tens of milliseconds under TCG: few of them.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -a -T @RUN@/fstab
echo 8 >/proc/sys/kernel/printk
echo kin-vm >/proc/sys/kernel/hostname
@FILES@
host=/run/.host
mount -a -T $host@RUN@/fstab.visible &
cp -a $host@RUN@/dev/. /dev/ &
ip link set lo up &
while set -- /dev/vport*p3; [ ! -e "$1" ]; do sleep 0.02; done
port=${1%3}
exec 7<>${port}3

# Nothing that needs the root, which is gone before the power is.
power_off() {
	echo o >/proc/sysrq-trigger
	while :; do read -r answer <&7; done
}

# One program, and none that reads byte by byte: some of these files answer that with nothing.
cd /sys/devices/system
grep -H "" cpu/online cpu/possible node/node*/cpulist node/node*/distance cpu/cpu*/topology/thread_siblings_list \
	cpu/cpu*/cache/index*/level cpu/cpu*/cache/index*/shared_cpu_list >&7
wait
echo ready >&7
read -r answer <&7
[ "$answer" = go ] || power_off

# Signs of life, as long as timers tick and tasks run: SCHED_FIFO, which no sched_ext scheduler can hold up.
while echo alive >&7; do sleep @BEAT_S@; done & beat=$!
chrt -f -p 99 $beat

ulimit -n 65536
ulimit -l unlimited
command_line() {
	cd @CWD@ || exit 126
	export HOME=/root
	unset host port answer beat out err pid
	@ENV@
	exec @COMMAND@
}
@RUNNER@
echo exit $status >&7
power_off
"""

# Pipes, since a port can be opened only once and "echo >/dev/stderr" opens it again.
RUN_COMMAND = r"""
mkfifo /run/.out /run/.err
cat </run/.out >${port}1 & out=$!
cat </run/.err >${port}2 & err=$!
exec 5>/run/.out 6>/run/.err
rm /run/.out /run/.err
(command_line) </dev/null >&5 2>&6 5>&- 6>&- 7>&-
status=$?
exec 5>&- 6>&-
# What the command left running would keep the pipes open.
for pid in /proc/[0-9]*; do
	pid=${pid#/proc/}
	case $pid in 1 | $out | $err | $beat) ;; *) kill -9 $pid 2>/dev/null ;; esac
done
wait $out $err
"""

RUN_SHELL = r"""
exec 8<>/dev/hvc0  # held open: a tty forgets its size when the last user closes it
stty rows @ROWS@ cols @COLUMNS@ <&8
(command_line) <&8 >&8 2>&1 7>&- 8>&-
status=$?
"""


def visible_paths(command):
    """What lies below a folder that a tmpfs hides and has to be seen all the same."""
    first = [str(PROJECT), os.getcwd(), *os.environ.get("PATH", "").split(os.pathsep)]
    first += [word for word in command if word.startswith("/") and os.path.exists(word)]
    found = set()
    for path in {p for word in first if word.startswith("/") for p in (os.path.normpath(word), os.path.realpath(word))}:
        for hidden in HIDDEN:
            if path.startswith(hidden + "/"):
                # All of /tmp/clone for /tmp/clone/target/debug: programs find their neighbours.
                found.add(hidden + "/" + path[len(hidden) + 1:].split("/")[0])
    cache = str(cache_dir())
    if cache.startswith(tuple(h + "/" for h in HIDDEN)):
        found.add(cache)
    return sorted(p for p in found if os.path.exists(p)
                  and not any(p.startswith(other + "/") for other in found))


def fstab_line(*fields):
    return " ".join(f.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011") for f in fields) + " 0 0\n"


def write_guest(run, kernel, accelerator, args):
    """The files that the guest boots with: its init, what it mounts, and links in /dev."""
    tables = [
        fstab_line("sysfs", "/sys", "sysfs", "defaults"),
        fstab_line("dev", "/dev", "devtmpfs", "mode=755"),
        fstab_line("devpts", "/dev/pts", "devpts", "mode=620,ptmxmode=666,X-mount.mkdir"),
        fstab_line("shm", "/dev/shm", "tmpfs", "mode=1777,X-mount.mkdir"),
        fstab_line("run", "/run", "tmpfs", "mode=755"),
        # The root without what is mounted on it: where the hidden is found.
        fstab_line("/", "/run/.host", "none", "bind,X-mount.mkdir"),
    ]
    tables += [fstab_line("tmp", path, "tmpfs", f"mode={mode}")
               for path, mode in (("/tmp", "1777"), ("/var/tmp", "1777"), ("/root", "700"),
                                  ("/boot", "755"), ("/usr/lib/modules", "755")) if os.path.isdir(path)]
    later = [
        fstab_line("bpf", "/sys/fs/bpf", "bpf", "mode=700"),
        fstab_line("cgroup2", "/sys/fs/cgroup", "cgroup2", "defaults"),
        fstab_line("debugfs", "/sys/kernel/debug", "debugfs", "defaults"),
        fstab_line("tracefs", "/sys/kernel/tracing", "tracefs", "defaults"),
    ]
    binds = [(path, path) for path in visible_paths(args.command)]
    if os.path.isdir("/boot") and (kernel.folder / "config").exists():
        # libbpf looks here for the CONFIG_ values that an object refers to.
        binds.append((str(kernel.folder / "config"), f"/boot/config-{kernel.release}"))
    if os.path.isdir("/usr/lib/modules") and (kernel.folder / "modules").is_dir():
        binds.append((str(kernel.folder / "modules"), f"/usr/lib/modules/{kernel.release}"))
    later += [fstab_line("/run/.host" + source, target, "none",
                         "bind,X-mount.mkdir" if os.path.isdir(source) else "bind") for source, target in binds]
    (run / "fstab").write_text("".join(tables), errors="surrogateescape")
    (run / "fstab.visible").write_text("".join(later), errors="surrogateescape")
    (run / "dev").mkdir()
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        (run / "dev" / name).symlink_to("/proc/self/fd" + target)
    files = [f": >{shlex.quote(target)}" for source, target in binds if not os.path.isdir(source)]
    init = run / "init"
    init.write_text(init_text(run, accelerator, args, files), errors="surrogateescape")
    init.chmod(0o755)


def init_text(run, accelerator, args, files):
    env = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    env.update(SCX_KIN_CACHE=str(cache_dir()), SCX_KIN_VM=accelerator)
    columns, rows = shutil.get_terminal_size()
    if not args.command:
        env["TERM"] = os.environ.get("TERM", "linux")
    env.update(word.split("=", 1) for word in args.env)
    command = args.command or ["setsid", "-c", "-w", "bash", "-i"]
    text = INIT.replace("@RUNNER@", RUN_COMMAND if args.command else RUN_SHELL)
    for mark, value in {
            "@RUN@": shlex.quote(str(run)), "@FILES@": "\n".join(files), "@CWD@": shlex.quote(os.getcwd()),
            "@BEAT_S@": str(BEAT_S), "@ROWS@": str(rows), "@COLUMNS@": str(columns),
            "@ENV@": "\n\t".join(f"export {k}={shlex.quote(v)}" for k, v in env.items()),
            "@COMMAND@": shlex.join(command)}.items():
        text = text.replace(mark, value)
    return text
