"""One direction of a link that fails silently: packets are dropped, the carrier stays up."""

from __future__ import annotations

import subprocess
from typing import Self

from fared.extensions.lab.namespaces import Netns

_TABLE = "netdev silence"


class Silence:
    """Drops every packet that arrives on some interfaces, before any socket sees it.

    ``nft`` is started ahead, so that it delays ``begin`` by a few milliseconds only.
    """

    def __init__(self, netns: Netns, *interfaces: str) -> None:
        self._netns = netns
        chains = "".join(
            f'chain c{number} {{ type filter hook ingress device "{name}" priority 0;'
            " policy drop; }\n"
            for number, name in enumerate(interfaces)
        )
        self._rules = f"table {_TABLE} {{\n{chains}}}\n"

    def __enter__(self) -> Self:
        with self._netns.entered():
            self._nft = subprocess.Popen(["nft", "-f", "-"], stdin=subprocess.PIPE, text=True)
        return self

    def begin(self) -> None:
        """Drop from now on."""
        self._nft.communicate(self._rules, timeout=10)
        assert self._nft.returncode == 0

    def end(self) -> None:
        """Let packets pass again."""
        self._netns.run(["nft", "delete", "table", *_TABLE.split()])

    def __exit__(self, *_: object) -> None:
        if self._nft.returncode is None:
            self._nft.kill()
            self._nft.wait()
