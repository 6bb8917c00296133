"""Without capabilities, errors name the missing one and its use."""

import subprocess
import sys

import pytest

WITHOUT = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c"]
WRITE_A_ROUTE = """
from fared.paths.fib.model import PutNextHop
from fared.paths.fib.settings import ID_BASE
from fared.kernel.errors import PrivilegeError
from fared.kernel.fib import KernelFib
fib = KernelFib()
fib.dump()
try:
    fib.apply([PutNextHop(ID_BASE, (1, 4, 0x0A000001, False))])
except PrivilegeError as error:
    print(error.missing, error)
"""
OPEN_A_SOCKET = """
import asyncio
from fared.kernel.errors import PrivilegeError
from fared.kernel.ospf_socket import OspfSockets
async def main():
    try:
        OspfSockets(print).open(1)
    except PrivilegeError as error:
        print(error.missing, error)
asyncio.run(main())
"""


@pytest.mark.netns
@pytest.mark.parametrize(
    ("program", "missing"), [(WRITE_A_ROUTE, "CAP_NET_ADMIN"), (OPEN_A_SOCKET, "CAP_NET_RAW")]
)
def test_a_missing_capability_is_named(namespaces, program, missing):
    command = ["ip", "netns", "exec", namespaces.add(), *WITHOUT, program]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    assert done.stdout.startswith(f"{missing} no permission to"), done.stderr
