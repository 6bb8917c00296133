"""Why the daemon cannot run, or cannot go on."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_OUT_OF_MEMORY: Final = (
    b"fared: out of memory; our routes stay in the kernel, a restart adopts them\n"
)


def end_out_of_memory() -> None:
    """End this process at once, as the kernel does when the whole machine is out of memory.

    An exception in the middle of an input leaves a router that may remove routes; packets that
    cannot be read end adjacencies. A clean exit would need memory, too, and so would a log record.
    """
    signal.alarm(1)  # it ends the process if nobody reads what it says
    os.write(2, _OUT_OF_MEMORY)
    os._exit(1)


def handle_unraisable(unraisable: UnraisableHookArgs) -> None:
    """End this process if Python ignores a MemoryError, as in a finalizer (``sys.unraisablehook``).

    What the finalizer or callback was to do has not been done. Other exceptions are only reported.
    """
    if issubclass(unraisable.exc_type, MemoryError):
        end_out_of_memory()
    sys.__unraisablehook__(unraisable)


class DaemonError(Exception):
    """The daemon cannot run; the message is for the operator."""
