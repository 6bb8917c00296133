"""What importing the kernel room costs, and that others find pyroute2 as they know it."""

import subprocess
import sys


def answer(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_of_pyroute2_only_what_is_needed_is_imported():
    """Its databases, conntrack and WireGuard would double the cost."""
    code = "import sys, fared.kernel.monitor; print(*sys.modules)"
    loaded = answer(code).split()
    assert "pyroute2.netlink.rtnl.ifinfmsg" in loaded
    assert not {"pyroute2.ndb", "pyroute2.ipdb", "pyroute2.conntrack", "sqlite3"} & set(loaded)


def test_names_of_the_package_itself_are_there_when_asked_for():
    code = (
        "import fared.kernel.monitor, pyroute2; from pyroute2 import IPRoute, netns;"
        "print(IPRoute.__name__, netns.__name__, pyroute2.NDB.__name__, hasattr(pyroute2, 'nil'))"
    )
    assert answer(code) == "IPRoute pyroute2.netns NDB False"


def test_a_package_that_was_imported_before_is_left_alone():
    code = (
        "import pyroute2; whole = pyroute2; import fared.kernel.monitor, pyroute2;"
        "print(pyroute2 is whole)"
    )
    assert answer(code) == "True"


def test_a_package_that_does_not_exist_fails_when_it_is_imported():
    code = (
        "from fared.kernel.lazy import import_when_needed; import_when_needed('no_such_package')\n"
        "try: import no_such_package\n"
        "except ModuleNotFoundError: print('missing')"
    )
    assert answer(code) == "missing"
