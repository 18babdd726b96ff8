# SPDX-License-Identifier: GPL-2.0-only
"""What the scripts share: the cache, messages, and how children end."""

import ctypes
import os
import signal
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent


class HarnessError(Exception):
    """The machine could not be had; ends the program with 69."""


def note(text):
    print(f"vm: {text}", file=sys.stderr, flush=True)


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.environ.get("SCX_KIN_CACHE") or os.path.join(base, "scx_kin")).absolute()


def die_with_parent():
    """In the child: end when scripts/vm does, however it does."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
