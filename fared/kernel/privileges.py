"""Checks at start that the process has the capabilities it needs.

Without CAP_NET_ADMIN a router would form adjacencies, attract traffic and then fail to install its
first route. Both capabilities are tested by an attempt, which also works in user namespaces.
"""

from __future__ import annotations

import errno
import socket

from fared.kernel.errors import PrivilegeError
from fared.kernel.ospf_socket import IPPROTO_OSPF
from fared.kernel.requests import RequestSocket

_RTM_DELNEXTHOP = 105
_NHMSG_SIZE = 8


def check_privileges() -> None:
    """Check both capabilities. Raises PrivilegeError, which names the missing one."""
    netlink = RequestSocket()
    try:
        # This deletes nothing: the kernel checks privileges (EPERM) before the missing id (EINVAL).
        failures = netlink.batch([(_RTM_DELNEXTHOP, 0, bytes(_NHMSG_SIZE))])
    finally:
        netlink.close()
    if any(failure.error == errno.EPERM for failure in failures.values()):
        raise PrivilegeError("CAP_NET_ADMIN", "write routes")
    try:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, IPPROTO_OSPF).close()
    except PermissionError as error:
        raise PrivilegeError("CAP_NET_RAW", "open raw sockets for OSPF") from error
