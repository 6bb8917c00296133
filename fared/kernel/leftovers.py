"""Whether a former process left its table of BIER, asked in one message, without ``nft``."""

from __future__ import annotations

import struct

from fared.kernel.netlink import (
    HEADER,
    NLM_F_REQUEST,
    NLMSG_ERROR,
    attribute,
    messages,
    open_socket,
)

BIER_TABLE = "fared_bier"
_NETLINK_NETFILTER = 12
_GET_TABLE = 10 << 8 | 1
"""NFT_MSG_GETTABLE of the subsystem nftables (linux/netfilter/nf_tables.h)."""
_NFPROTO_NETDEV = 5
_NFGENMSG = struct.Struct("=BBH")
_NFTA_TABLE_NAME = 1
_TIMEOUT = 0.5
_MOST = 1 << 16


def has_bier_table() -> bool:
    """Whether the namespace has the table; False as well where nftables cannot be asked."""
    name = attribute(_NFTA_TABLE_NAME, BIER_TABLE.encode() + b"\0")
    body = _NFGENMSG.pack(_NFPROTO_NETDEV, 0, 0) + name
    request = HEADER.pack(HEADER.size + len(body), _GET_TABLE, NLM_F_REQUEST, 1, 0) + body
    try:
        with open_socket(_NETLINK_NETFILTER, _MOST) as sock:
            sock.settimeout(_TIMEOUT)
            sock.send(request)
            answer = sock.recv(_MOST)
    except OSError:
        return False
    return any(kind != NLMSG_ERROR for kind, *_ in messages(answer))
