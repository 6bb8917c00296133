"""Links with a delay, as between sites: in namespaces by a process, in containers by netem.

In a lab one process holds the devices of all delayed links and delays their frames
(``delay_process``), so that no kernel needs netem, which many do not have. containerlab makes the
links of containers; there the delay is netem's, below the shaper, if the kernel has it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.kinds.base import Command
from fared.extensions.lab.namespaces import CurrentNetns, Netns
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.processes import NodeProcess, end, start_in_turn

_DEVICE: Final = Path("/dev/net/tun")
_PROCESS: Final = "fared.extensions.lab.delay_process"
_START_DEADLINE: Final = 60.0
_LEAST_PACKETS: Final = 1000


@dataclass
class DelayedLinks:
    """The delayed links of a lab, and the process that holds them. Files go to ``directory``."""

    directory: Path
    netns: Netns = field(default_factory=lambda: CurrentNetns("delay"))
    processes: list[NodeProcess] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name in messages."""
        return "delayed links"

    def start(self, links: Iterable[tuple[PortAddresses, PortAddresses]]) -> None:
        """Make the devices of links, which are down. Raises LabError."""
        plan = [
            {
                "delay": ends[0].delay,
                "ends": [
                    {"netns": port.node, "name": port.name, "index": port.index} for port in ends
                ],
            }
            for ends in links
        ]
        if not plan:
            return
        if not _DEVICE.exists():
            raise LabError(f"links with a delay need {_DEVICE}: a kernel with tun")
        self.directory.mkdir(parents=True, exist_ok=True)
        told, ready = self.directory / "delay.json", self.directory / "delay.ready"
        told.write_text(json.dumps(plan), "utf-8")
        arguments = (sys.executable, "-m", _PROCESS, str(told), str(ready))
        command = Command("delay", arguments, ready)
        start_in_turn([(self, command)], time.monotonic() + _START_DEADLINE)

    def stop(self) -> None:
        """End the process: the devices go with it."""
        end(self.processes)
        self.processes.clear()


def set_netem(netns: Netns, ports: Iterable[PortAddresses]) -> str | None:
    """Delay what leaves ports in a container; return what cannot be done, None: nothing."""
    for port in ports:
        if not port.delay:
            continue
        parent = "root" if port.rate is None else "parent 1:1"
        packets = max(_LEAST_PACKETS, round(2 * (port.rate or 0) * port.delay / port.mtu))
        words = f"qdisc replace dev {port.name} {parent} netem delay {port.delay * 1e6:.0f}us"
        done = netns.run(["tc", *words.split(), "limit", str(packets)], check=False)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            return f"{port.name}: no delay: this kernel has no netem ({' '.join(said[:1])})"
    return None
