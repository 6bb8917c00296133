"""A namespace with the kernel's FIB, for measuring writes to it."""

from __future__ import annotations

import subprocess
import tempfile
import time

from fared.kernel.fib import KernelFib
from fared.kernel.sysctl import SysctlMode, apply_sysctls, wanted_sysctls
from fared.paths.fib.model import (
    FibOperation,
)
from fared.paths.rib.model import HopKey, NextHop, NextHopSet
from tests.kernel.netns import Namespaces, inside


class Box:
    """A namespace with one link and 64 gateways behind it."""

    def __init__(self, namespaces: Namespaces) -> None:
        self.name, self.far = namespaces.add(), namespaces.add()
        self.ifindex, self.far_ifindex = namespaces.pair(self.name, self.far, "e0", 0)
        with inside(self.name):
            apply_sysctls(SysctlMode.SET, wanted_sysctls(1))
            self.fib = KernelFib()

    def gateway(self, way: int) -> int:
        """Address of a gateway."""
        return 0x0A00_0080 + way

    def hop(self, way: int) -> HopKey:
        """Next hop through a gateway."""
        return (self.ifindex, 4, self.gateway(way), False)

    def hops(self, weights: list[int]) -> NextHopSet:
        """Next hops through as many gateways as there are weights."""
        return NextHopSet(
            tuple(
                NextHop(self.ifindex, "e0", 4, self.gateway(way), 1, None, None, weight)
                for way, weight in enumerate(weights)
            )
        )

    def apply(self, operations: list[FibOperation]) -> None:
        """Execute operations. Raises RuntimeError if the kernel rejects any."""
        failed = [result for result in self.fib.apply(operations) if result.error]
        if failed:
            raise RuntimeError(f"{len(failed)} operations failed: {failed[0]}")

    def ip(self, lines: list[str]) -> float:
        """Run ``ip -batch`` and return its duration."""
        with tempfile.NamedTemporaryFile("w", suffix=".batch") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            command = ["ip", "netns", "exec", self.name, "ip", "-batch", file.name]
            started = time.perf_counter()
            subprocess.run(command, check=True, timeout=120, capture_output=True)
            return time.perf_counter() - started
