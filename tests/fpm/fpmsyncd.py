"""A double of SONiC's ``fpmsyncd``: frames in, rows of APPL_DB and acknowledgements out.

Written from measurements of the real one, with its faults, and independent of the encoder under
test: a row keeps the fields that its successor does not set, a hop count of 0 is weight 1, a table
is the ifindex of a VRF, a bad frame deafens a connection, and nobody reads while acknowledgements
are not read. Groups are served as far as members, group and route arrive in this order.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

MANAGEMENT = ("eth0", "docker0", "eth1-midplane")
_OFFLOAD = 0x4000
_NEW, _DELETE = 24, 25
_TYPES = {1: "unicast", 6: "blackhole"}
_NEW_NEXTHOP, _DELETE_NEXTHOP = 104, 105


@dataclass
class Connection:
    """One client: what it sent and is not parsed yet, and acknowledgements it has not read."""

    incoming: bytes = b""
    unread: bytes = b""
    deaf: bool = False

    def read(self, size: int | None = None) -> bytes:
        """Read acknowledgements as the client; the server goes on at its next ``run``."""
        data, self.unread = self.unread[:size], self.unread[len(self.unread[:size]) :]
        return data


@dataclass
class Fpmsyncd:
    """``names`` are interfaces by ifindex, ``protocols`` those that the container's file names.

    ``buffer`` is how many bytes of acknowledgements fit into the sockets of a client.
    """

    names: dict[int, str]
    protocols: dict[int, str] = field(default_factory=dict)
    suppress: bool = False
    buffer: int = 1 << 17
    rows: dict[str, dict[str, str]] = field(default_factory=dict)
    nexthops: dict[int, dict[int, bytes]] = field(default_factory=dict)
    groups: dict[int, dict[str, str]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)

    def connect(self) -> Connection:
        """Accept a client; it is served only while it is the first."""
        self.connections.append(Connection())
        return self.connections[-1]

    def close(self, connection: Connection) -> None:
        """Lose a client. Rows stay; clients behind the first one are reset."""
        first = self.connections[0] is connection
        self.connections = [] if first else [c for c in self.connections if c is not connection]

    def send(self, connection: Connection, data: bytes) -> None:
        """Take bytes of a client."""
        connection.incoming += data
        self.run()

    def run(self) -> None:
        """Parse what the first client sent, until its acknowledgements fill the buffer."""
        if not self.connections:
            return
        client = self.connections[0]
        while not client.deaf and len(client.unread) < self.buffer and len(client.incoming) >= 4:
            _, kind, length = struct.unpack_from(">BBH", client.incoming)
            if kind == 0 or length < 4 or length % 4:
                client.deaf = True
                self.log.append("bad frame")
            elif len(client.incoming) < length:
                return
            else:
                frame, client.incoming = client.incoming[4:length], client.incoming[length:]
                for message in _messages(frame):
                    self._message(client, message)

    def succeed(self, protocol: int, prefix: str) -> None:
        """Publish orchagent's success of a route, which suppression waits for."""
        network = ipaddress.ip_network(prefix)
        family, address = 2 if network.version == 4 else 10, network.network_address.packed
        body = struct.pack(
            "=8BI", family, network.prefixlen, 0, 0, 0, protocol, 253, 1, _OFFLOAD
        ) + _u32(15, 0)
        body += struct.pack("=HH", 4 + len(address), 1) + address
        self.connections[0].unread += _frame(_NEW, 0x401, body)

    def _message(self, client: Connection, message: bytes) -> None:
        kind, body = struct.unpack_from("=H", message, 4)[0], message[16:]
        if kind in (_NEW_NEXTHOP, _DELETE_NEXTHOP):
            self._nexthop(kind, body[0], dict(_attributes(body[8:])))
            return
        family, length, _, _, table, protocol, _, form, _ = struct.unpack_from("=8BI", body)
        found = dict(_attributes(body[12:]))
        table = struct.unpack("=I", found[15])[0] if 15 in found else table
        vrf = self.names.get(table, "") if table else ""
        if table and not vrf.startswith("Vrf"):
            self.log.append(f"table {table} is no VRF")
            return
        key = f"{vrf}:" * bool(vrf) + _key(family, length, found.get(1, b""))
        if kind == _DELETE:
            self.rows.pop(key, None)
            return
        if form not in _TYPES:
            return
        self._route(key, protocol, self._row(family, found) if form == 1 else {"blackhole": "true"})
        if not self.suppress:
            client.unread += _echo(body)

    def _route(self, key: str, protocol: int, fields: dict[str, str]) -> None:
        if fields.get("ifname") in MANAGEMENT:
            self.rows.pop(key, None)
        elif fields:
            name = self.protocols.get(protocol, f"0x{protocol:x}")
            # The library ignores the deletion in front: fields of the other form stay.
            self.rows.setdefault(key, {}).update(fields, protocol=name)

    def _nexthop(self, kind: int, family: int, found: dict[int, bytes]) -> None:
        number = _number(found[1])
        if kind == _DELETE_NEXTHOP:
            self.groups.pop(number, None)
            self.nexthops.pop(number, None)
        elif 2 in found:
            members = [struct.unpack_from("=IB", found[2], at) for at in range(0, len(found[2]), 8)]
            known = [
                (self.nexthops[i], field + 1 & 0xFF) for i, field in members if i in self.nexthops
            ]
            self.groups[number] = self._hops(known)
        else:  # a second next hop of the same id is ignored
            gateway = found.get(6, bytes(4 if family == 2 else 16))
            self.nexthops.setdefault(number, {4: found[5], 5: gateway})

    def _row(self, family: int, found: dict[int, bytes]) -> dict[str, str]:
        """Return the fields of a route, none if it has a group that is unknown."""
        if 30 not in found:
            return self._fields(family, found)
        number = _number(found[30])
        if number in self.groups:
            return {"nexthop_group": str(number)}
        return self._hops([(self.nexthops[number], 1)]) if number in self.nexthops else {}

    def _fields(self, family: int, found: dict[int, bytes]) -> dict[str, str]:
        hops = list(_members(found[9])) if 9 in found else [(found, 1)]
        none = {5: bytes(4 if family == 2 else 16)}
        return self._hops([({**none, **hop}, weight) for hop, weight in hops])

    def _hops(self, hops: list[tuple[dict[int, bytes], int]]) -> dict[str, str]:
        return {
            "nexthop": ",".join([_gateway(hop) for hop, _ in hops]),
            "ifname": ",".join([self.names.get(_number(hop[4]), "unknown") for hop, _ in hops]),
            "weight": ",".join([str(weight) for _, weight in hops]),
        }


def _number(data: bytes) -> int:
    return int(struct.unpack("=I", data)[0])


def _key(family: int, length: int, address: bytes) -> str:
    size = 4 if family == 2 else 16
    host = ipaddress.ip_address(address or bytes(size))
    return str(host) if length == 8 * size else f"{host}/{length}"


def _gateway(hop: dict[int, bytes]) -> str:
    return str(ipaddress.ip_address(hop[18][2:] if 18 in hop else hop[5]))


def _messages(frame: bytes) -> Iterator[bytes]:
    while len(frame) >= 16:
        length = struct.unpack_from("=I", frame)[0]
        yield frame[:length]
        frame = frame[(length + 3) & ~3 :]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3 :]


def _members(data: bytes) -> Iterator[tuple[dict[int, bytes], int]]:
    while len(data) >= 8:
        length, _, hops, index = struct.unpack_from("=HBBI", data)
        found = dict(_attributes(data[8:length]))
        yield {4: struct.pack("=I", index), **found}, hops or 1
        data = data[(length + 3) & ~3 :]


def _echo(body: bytes) -> bytes:
    """Return an acknowledgement while parsing: the request with a flag and RTA_TABLE."""
    return _frame(_NEW, 0x401, body[:8] + struct.pack("=I", _OFFLOAD) + _u32(15, 0) + body[12:])


def _u32(kind: int, value: int) -> bytes:
    return struct.pack("=HHI", 8, kind, value)


def _frame(kind: int, flags: int, body: bytes) -> bytes:
    message = struct.pack("=IHHII", 16 + len(body), kind, flags, 0, 0) + body
    return struct.pack(">BBH", 1, 1, 4 + len(message)) + message
