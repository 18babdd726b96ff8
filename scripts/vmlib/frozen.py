# SPDX-License-Identifier: GPL-2.0-only
"""What can be known of a guest that is frozen: where its vCPUs are, and what QEMU's threads do."""

import json
import time
from pathlib import Path

MONITOR_LIMIT_S = 10  # QEMU may be what hangs
# Two looks tell a CPU that goes round in circles from one that stands still.
LOOKS, BETWEEN_LOOKS_S = 2, 2


def describe(qemu, monitor):
    """Text about the process `qemu`, whose QMP socket is `monitor`."""
    text = "\n"
    for look in range(LOOKS):
        if look:
            time.sleep(BETWEEN_LOOKS_S)
        text += f"\n--- look {look + 1} of {LOOKS}: QEMU's threads, as in /proc/PID/stat, and where they sleep\n"
        text += threads(qemu)
        text += f"\n--- look {look + 1} of {LOOKS}: the vCPUs\n"
        text += ask(monitor, "info status") + ask(monitor, "info registers -a")
    return text


def threads(process):
    text = ""
    for thread in sorted(Path(f"/proc/{process}/task").glob("*")):
        try:
            text += f"{(thread / 'stat').read_text().strip()} {(thread / 'wchan').read_text()}\n"
        except OSError as error:  # it has ended
            text += f"{error}\n"
    return text


def ask(monitor, question):
    """The answer to a command of QEMU's human monitor, or why there is none."""
    asked = {"execute": "human-monitor-command", "arguments": {"command-line": question}}
    try:
        monitor.settimeout(MONITOR_LIMIT_S)
        # The first one opens QMP.  Asked again, it gets an error, which is passed over like events.
        for command in {"execute": "qmp_capabilities"}, asked:
            monitor.sendall(json.dumps(command).encode() + b"\n")
        with monitor.makefile() as answers:
            for line in answers:
                answer = json.loads(line).get("return")
                if isinstance(answer, str):
                    return answer.replace("\r", "")
    except (OSError, ValueError) as error:
        return f"QEMU's monitor does not answer: {error}\n"
    return "QEMU's monitor has closed\n"
