# SPDX-License-Identifier: GPL-2.0-only
"""The machine that a guest runs on: its shape, its kernel, its accelerator."""

import hashlib
import os
import shutil
import struct
import subprocess
from pathlib import Path

from .common import PROJECT, HarnessError, cache_dir, die_with_parent

KVM_LIMIT_S = 10  # a kernel gets to its missing root in less than two


def ranges(numbers):
    """[0, 1, 2, 5] -> '0-2,5', as sysfs writes lists."""
    parts = []
    for n in numbers:
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


class Machine:
    """NODES x LLCS x CORES x THREADS: one socket per node, one die with its own L3 per LLC."""

    def __init__(self, args):
        self.nodes, self.llcs, self.cores, self.threads = args.topology
        self.per_llc = self.cores * self.threads
        self.per_node = self.llcs * self.per_llc
        self.cpus = self.nodes * self.per_node
        self.possible = args.possible or self.cpus
        if self.possible < self.cpus or self.possible % self.per_node:
            raise ValueError(f"--possible must be a multiple of {self.per_node} (one node's CPUs), {self.cpus} or more")
        self.all_nodes = self.nodes + args.cpuless_node
        self.node_mb = args.memory // self.all_nodes
        self.pairs = [(a, b) for b in range(self.all_nodes) for a in range(b)]
        self.pairs.sort()
        self.distances = args.distance * (len(self.pairs) if len(args.distance) == 1 else 1)
        if self.distances and len(self.distances) != len(self.pairs):
            raise ValueError(f"--distance: say one number, or {len(self.pairs)} for the node pairs "
                             + " ".join(f"{a}-{b}" for a, b in self.pairs))

    def __str__(self):
        def count(n, word):
            return f"{n} {word}{'s' if n != 1 else ''}"
        text = (f"{count(self.nodes, 'node')} x {count(self.llcs, 'LLC')} x {count(self.cores, 'core')} x "
                f"{count(self.threads, 'thread')} = {count(self.cpus, 'CPU')}")
        if self.possible > self.cpus:
            text += f" of {self.possible} possible"
        return text + (", 1 node without CPUs" if self.all_nodes > self.nodes else "")

    def qemu_args(self):
        args = ["-smp", f"{self.cpus},maxcpus={self.possible},sockets={self.possible // self.per_node},"
                        f"dies={self.llcs},cores={self.cores},threads={self.threads}",
                "-m", f"{self.node_mb * self.all_nodes}M"]
        for node in range(self.all_nodes):
            # virtiofsd maps the guest's memory, hence shared.
            args += ["-object", f"memory-backend-memfd,id=m{node},size={self.node_mb}M,share=on"]
            first, last = node * self.per_node, (node + 1) * self.per_node - 1
            if node == self.nodes - 1:
                last = self.possible - 1
            cpus = f"cpus={first}-{last}," if node < self.nodes else ""
            args += ["-numa", f"node,nodeid={node},{cpus}memdev=m{node}"]
        for (a, b), value in zip(self.pairs, self.distances):
            args += ["-numa", f"dist,src={a},dst={b},val={value}"]
        return args

    def expected(self):
        """What the guest has to report."""
        cpus = range(self.cpus)

        def group(cpu, size):
            return ranges(range(cpu // size * size, cpu // size * size + size))
        lines = [f"online {ranges(cpus)}", f"possible {ranges(range(self.possible))}"]
        values = dict(zip(self.pairs, self.distances or [20] * len(self.pairs)))
        for node in range(self.all_nodes):
            mine = ranges(c for c in cpus if c // self.per_node == node)
            row = [10 if n == node else values[min(n, node), max(n, node)] for n in range(self.all_nodes)]
            lines.append(f"node{node} {mine} distance {' '.join(map(str, row))}")
        return lines + [f"cpu{c} threads {group(c, self.threads)} l3 {group(c, self.per_llc)}" for c in cpus]

    def check(self, report):
        wanted, seen = self.expected(), seen_topology(report)
        if sorted(wanted) != sorted(seen):
            lines = [f"  asked for: {line}" for line in wanted if line not in seen]
            lines += [f"  seen:      {line}" for line in seen if line not in wanted]
            raise HarnessError("the guest's topology is not what was asked for\n" + "\n".join(lines))


def seen_topology(report):
    """The guest's files, as Machine.expected() says it.  A report's line is "cpu/cpu0/...:content"."""
    files = dict(line.split(":", 1) for line in report if ":" in line)
    seen = [f"{name} {files.get('cpu/' + name)}" for name in ("online", "possible")]
    for path, text in files.items():
        parts = path.split("/")
        if parts[-1] == "cpulist":
            seen.append(f"{parts[1]} {text} distance {files.get(f'node/{parts[1]}/distance')}")
        elif parts[-1] == "thread_siblings_list":
            l3 = [files.get(p[:-len("level")] + "shared_cpu_list") for p, level in files.items()
                  if p.startswith(f"cpu/{parts[1]}/cache/") and p.endswith("/level") and level == "3"]
            seen.append(f"{parts[1]} threads {text} l3 {' '.join(map(str, l3)) or 'none'}")
    return seen


class Kernel:
    def __init__(self, series):
        done = subprocess.run([PROJECT / "scripts/kernel", series], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise HarnessError(f"no kernel '{series}'")
        self.folder = Path(done.stdout.strip())
        self.packed, unpacked = self.folder / "vmlinuz", self.folder / "vmlinux"
        # Nothing to decompress: two seconds less under TCG.
        self.image = unpacked if unpacked.exists() else self.packed
        with open(self.packed, "rb") as image:
            head = image.read(0x10000)
        if head[0x202:0x206] != b"HdrS":
            raise HarnessError(f"{self.packed} is no x86 kernel image")
        # The boot protocol's kernel_version: where the version text is, less 0x200.
        start = struct.unpack_from("<H", head, 0x20e)[0] + 0x200
        self.release = head[start:head.index(b"\0", start)].split()[0].decode()


def find_program(name, *more):
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *more]))
    if not path:
        raise HarnessError(f"{name} is missing: scripts/deps vm installs it")
    return path


def choose_accelerator(wanted, qemu, kernel):
    """("kvm" or "tcg", why)"""
    if wanted != "auto":
        return wanted, "as asked for"
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg", "no access to /dev/kvm" if os.path.exists("/dev/kvm") else "no /dev/kvm"
    version = subprocess.run([qemu, "--version"], capture_output=True, text=True).stdout
    key = hashlib.sha256(f"{os.uname().release} {version}".encode()).hexdigest()[:16]
    answer = cache_dir() / "vm" / f"kvm-{key}"
    if answer.exists():
        why = answer.read_text().strip()
    else:
        why = try_kvm(qemu, kernel)
        answer.parent.mkdir(parents=True, exist_ok=True)
        fresh = answer.with_suffix(f".{os.getpid()}")
        fresh.write_text(why + "\n")
        fresh.rename(answer)
    return ("kvm" if why == "boots" else "tcg"), f"KVM: {why}"


def try_kvm(qemu, kernel):
    """'boots', or why not.  Opening /dev/kvm may work where no guest does, so boot to the missing root."""
    argv = [qemu, "-M", "q35", "-nodefaults", "-no-user-config", "-accel", "kvm", "-cpu", "host", "-smp", "2",
            "-m", "512M", "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", str(kernel.packed),
            "-append", "console=ttyS0 panic=-1"]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=KVM_LIMIT_S, preexec_fn=die_with_parent)
    except subprocess.TimeoutExpired:
        return f"a test boot did not end in {KVM_LIMIT_S} s"
    if b"Unable to mount root" in done.stdout:
        return "boots"
    words = done.stdout.decode(errors="replace").split("\n")[0].removeprefix("qemu-system-x86_64: error: ").strip()
    return f"a test boot failed ({words[:80]})" if words else "a test boot failed"
