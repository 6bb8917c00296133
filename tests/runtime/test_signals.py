"""No signal ends a program before it has handlers: neither at its start nor across exec."""

import signal
import subprocess
import sys

import pytest

WAITS = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
IGNORED = (signal.SIGUSR1, signal.SIGUSR2)


def answer(code: str) -> str:
    """What a program prints; it must end well."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.parametrize("number", [*WAITS, *IGNORED])
def test_a_signal_does_not_end_a_daemon_that_is_being_loaded(number: signal.Signals):
    code = (
        "import os, sys; from fared.__main__ import main\n"
        "class Finder:\n"
        "    def find_spec(name, path, target=None):\n"
        f"        if name == 'fared.daemon': os.kill(os.getpid(), {number.value})\n"
        "sys.meta_path.insert(0, Finder)\n"
        "sys.argv = ['fared', '--version']; main()"
    )
    assert answer(code).startswith("fared, version")


@pytest.mark.parametrize("number", WAITS)
def test_a_signal_waits_for_the_next_program_in_the_same_process(number: signal.Signals):
    code = (
        "import os, sys; from fared.runtime.signals import hold\n"
        f"hold(); os.kill(os.getpid(), {number.value})\n"
        "os.execv(sys.executable, [sys.executable, '-c',"
        "'import signal; print(*map(int, signal.sigpending()))'])"
    )
    assert answer(code) == str(number.value)


def test_a_check_of_a_file_can_be_interrupted():
    code = (
        "import signal, sys; from fared.daemon import main\n"
        "def held(*_, **__): sys.exit(bool(signal.pthread_sigmask(signal.SIG_BLOCK, ())))\n"
        "main.load_runnable = held\n"
        "sys.argv = ['fared', '--check']; main.main()"
    )
    answer(code)


def test_a_program_may_have_handlers_of_its_own():
    code = (
        "import os, signal; from fared.runtime.signals import hold\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('mine')); hold()\n"
        "os.kill(os.getpid(), signal.SIGUSR1)"
    )
    assert answer(code) == "mine"
