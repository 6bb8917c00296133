"""Our messages to ``fpmsyncd`` are zebra's for the same routes, but for named differences.

zebra's module ``dplane_fpm_nl`` sends what zebra finds in the kernel: routes of others, with
weights. zebra has the number of the kernel's main table, a weight less one, and in 8.4 no flag for
the replacement of IPv6 routes. ``nlmsg_pid`` is a random number. Nothing else differs.
"""

from __future__ import annotations

import ipaddress
import json
import secrets
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.extensions.lab.namespaces import Netns
from fared.fpm.encode import FpmEncoder, InlineHop
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers]

METRIC, KERNEL = 20, 2
"""zebra calls every route that it finds one of the kernel."""
LINKS = ("Ethernet0", "Ethernet4")
ADDRESSES = {"Ethernet0": ("10.0.0.0/31", "fd00::/127"), "Ethernet4": ("10.0.0.2/31", "fd01::/127")}
WAIT = 30.0
_NEW, _DELETE, _REPLACE = 24, 25, 0x100
_MAIN = 254
_MULTIPATH, _TABLE_AT = 9, 20


class Zebra:
    """zebra in a namespace, and who hears what it sends by FPM."""

    def __init__(self, directory: Path) -> None:
        for parent in (directory, directory.parent):
            parent.chmod(0o755)
        self.home = directory / "zebra"
        self.home.mkdir()
        self.home.chmod(0o777)  # FRR's daemons are not root
        self.netns = Netns.create(f"fpm{secrets.token_hex(3)}")
        self.netns.batch("ip", ["link set lo up", *self._links()])
        listed = json.loads(self.netns.ip("-j", "link", "show"))
        self.ifindex = {link["ifname"]: link["ifindex"] for link in listed}
        self._listening = self.netns.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listening.bind(("127.0.0.1", 2620))
        self._listening.listen()
        self._heard = b""
        self._thread = threading.Thread(target=self._hear)
        self._thread.start()
        self.process = self._start()

    @staticmethod
    def _links() -> Iterator[str]:
        for name in LINKS:
            yield f"link add {name} type veth peer name far{name}"
            yield f"link set far{name} up"
            yield f"link set {name} up"
            yield from (f"addr add {one} dev {name}" for one in ADDRESSES[name])

    def _start(self) -> subprocess.Popen[bytes]:
        config = "hostname zebra\nno fpm use-next-hop-groups\nfpm address 127.0.0.1\n"
        (self.home / "zebra.conf").write_text(config)
        files = ("-f", str(self.home / "zebra.conf"), "-i", str(self.home / "zebra.pid"))
        sockets = ("-z", str(self.home / "zserv"), "--vty_socket", str(self.home), "-P", "0")
        program = ["/usr/lib/frr/zebra", "-M", "dplane_fpm_nl", *files, *sockets]
        return self.netns.start(program, self.home / "zebra.log")

    def _hear(self) -> None:
        try:
            client, _ = self._listening.accept()
        except OSError:
            return
        with client:
            while data := client.recv(1 << 16):
                self._heard += data

    def messages(self, network: str) -> list[bytes]:
        """What was sent of a route, without the random ``nlmsg_pid``."""
        found, heard = [], self._heard
        while len(heard) >= 4 and len(heard) >= (length := struct.unpack_from(">H", heard, 2)[0]):
            found.append(heard[4:length])
            heard = heard[length:]
        address = ipaddress.ip_network(network).network_address.packed
        destination = struct.pack("=HH", 4 + len(address), 1) + address
        length = ipaddress.ip_network(network).prefixlen
        return [
            one[:12] + bytes(4) + one[16:]
            for one in found
            if struct.unpack_from("=H", one, 4)[0] in (_NEW, _DELETE)
            and one[17] == length
            and one[28 : 28 + len(destination)] == destination
        ]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        self.netns.delete()


@pytest.fixture
def zebra(tmp_path) -> Iterator[Zebra]:
    made = Zebra(tmp_path)
    yield made
    made.close()


def as_zebra(message: bytes) -> bytes:
    """Change our message by the differences that have names."""
    changed = bytearray(message)
    changed[_TABLE_AT] = _MAIN
    kind, flags = struct.unpack_from("=HH", message, 4)
    if message[16] == socket.AF_INET6 and kind == _NEW:
        struct.pack_into("=H", changed, 6, flags & ~_REPLACE)
    at = 28
    while at < len(message):
        length, attribute = struct.unpack_from("=HH", message, at)
        if attribute & 0x3FFF == _MULTIPATH:
            member = at + 4
            while member < at + length:
                changed[member + 3] -= 1
                member += struct.unpack_from("=H", message, member)[0]
        at += length + 3 & ~3
    return bytes(changed)


ROUTES = {
    "10.1.0.0/16": {"Ethernet0 10.0.0.1": 1, "Ethernet4 10.0.0.3": 2},
    "10.2.0.0/16": {"Ethernet0 10.0.0.1": 254, "Ethernet4 10.0.0.3": 255},
    "10.3.0.0/16": {"Ethernet0 10.0.0.1": 1},
    "10.255.0.1/32": {"Ethernet0 10.0.0.1": 1, "Ethernet4 10.0.0.3": 1},
    "2001:db8:1::/48": {"Ethernet0 fd00::1": 3, "Ethernet4 fd01::1": 7},
    "2001:db8:2::/48": {"Ethernet4 fd01::1": 1},
}


def command(verb: str, network: str, hops: dict[str, int]) -> str:
    words = [f"route {verb} {network} metric {METRIC}"]
    for place, weight in hops.items():
        name, gateway = place.split()
        many = len(hops) > 1
        words += ["nexthop"] * many + [f"via {gateway} dev {name}"] + [f"weight {weight}"] * many
    return " ".join(words)


def ours(here: Zebra, network: str, hops: dict[str, int]) -> tuple[bytes, bytes]:
    """Return our messages that put and delete a route."""
    encoder = FpmEncoder(KERNEL, {FAMILY_IPV4: METRIC, FAMILY_IPV6: METRIC})
    parsed = ipaddress.ip_network(network)
    prefix = Prefix(parsed.version, int(parsed.network_address), parsed.prefixlen)
    inline = []
    for place, weight in hops.items():
        name, gateway = place.split()
        key = (here.ifindex[name], parsed.version, int(ipaddress.ip_address(gateway)), False)
        inline.append(InlineHop(key, weight))
    return encoder.put(prefix, inline), encoder.delete(prefix)


def test_messages_of_weighted_routes_are_zebras_but_for_the_named_differences(zebra):
    wait_for(lambda: zebra.messages("10.0.0.0/31"), WAIT, "zebra sends connected routes")
    zebra.netns.batch("ip", [command("add", *route) for route in ROUTES.items()])
    wait_for(lambda: all(map(zebra.messages, ROUTES)), WAIT, "zebra sends all routes")
    for network, hops in ROUTES.items():
        put, _ = ours(zebra, network, hops)
        assert [one.hex() for one in zebra.messages(network)] == [as_zebra(put).hex()]
    zebra.netns.batch("ip", [command("del", *route) for route in ROUTES.items()])
    wait_for(lambda: all(len(zebra.messages(n)) > 1 for n in ROUTES), WAIT, "and deletes them")
    for network, hops in ROUTES.items():
        _, delete = ours(zebra, network, hops)
        assert [one.hex() for one in zebra.messages(network)[1:]] == [as_zebra(delete).hex()]
