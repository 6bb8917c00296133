"""Whether the process may do what it is for, asked of the kernel before anything is begun.

Without CAP_NET_ADMIN a router would form adjacencies, attract traffic and fail at its first
route; so both capabilities are tried for real, which also holds in user namespaces.
"""

from __future__ import annotations

import errno
import socket

from fared.kernel.errors import PrivilegeError
from fared.kernel.netlink import RequestSocket
from fared.kernel.ospf_socket import IPPROTO_OSPF

_RTM_DELNEXTHOP = 105
_NHMSG_SIZE = 8


def check_privileges() -> None:
    """Raises PrivilegeError, naming the capability that is missing."""
    netlink = RequestSocket()
    try:
        # Deletes nothing: a request without an id is refused, but privileges are looked at first.
        failures = netlink.batch([(_RTM_DELNEXTHOP, 0, bytes(_NHMSG_SIZE))])
    finally:
        netlink.close()
    if any(failure.error == errno.EPERM for failure in failures.values()):
        raise PrivilegeError("CAP_NET_ADMIN", "write routes")
    try:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, IPPROTO_OSPF).close()
    except PermissionError as error:
        raise PrivilegeError("CAP_NET_RAW", "open raw sockets for OSPF") from error
