"""An HTTP server over a router that no daemon runs, for clients that watch the fabric."""

import asyncio
import json
import random
import time
from collections.abc import Callable
from contextlib import asynccontextmanager

import numpy as np
from msgspec.structs import replace

from bench.router import fabrics
from fared.config import Config
from fared.core.ids import BACKBONE, NodeId, RouterId
from fared.daemon.loop.runtime import Runtime
from fared.management.api.durations import Observed
from fared.management.api.http import App
from fared.management.api.metrics import Metrics
from fared.management.api.respond import Responder
from fared.management.documents.context import ViewContext
from fared.management.documents.dispatch import begin_view
from fared.management.documents.log_ring import LogRing
from fared.management.documents.registry import by_command
from fared.paths.fib.model import FibState
from fared.paths.ted.events import LocalLinksChanged
from fared.protocols.ospf.settings import AreaSettings, OspfSettings
from fared.router.router import Router
from fared.router.settings import RouterSettings
from fared.router.stages import Stage
from tests.api.served import served


@asynccontextmanager
async def serving(context):
    """Serve the documents and events of what ``context`` returns; yield the port."""
    responder = Responder(lambda command, args: begin_view(context(), by_command(command), args))
    app = App(responder, Metrics(list, "0.2.0", Observed()), lambda: True, lambda: (), context)
    async with served(app) as port:
        yield port


@asynccontextmanager
async def watching(port, address="127.0.0.1"):
    """Watch events from an address: yield a function that returns the next, its name and data."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
    assert head.startswith(b"HTTP/1.1 200")
    assert b"content-type: text/event-stream" in head

    async def following(seconds=10.0):
        name = None
        async with asyncio.timeout(seconds):
            while True:
                line = (await reader.readline()).decode().strip()
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    return name, json.loads(line.removeprefix("data: "))

    try:
        yield following
    finally:
        writer.transport.abort()


class TedRouter:
    """A router without neighbors of its own: the database is put into its TED."""

    def __init__(self, blocks: fabrics.Blocks, root: NodeId, name: Callable[[NodeId], str]) -> None:
        area = AreaSettings(BACKBONE)
        settings = OspfSettings(router_id=RouterId(root), areas=(area,), hostname=name(root))
        self.router = Router(
            RouterSettings({"ospf": settings}), random.Random(1), 0.0, time.perf_counter
        )
        (self.instance,) = self.router.instances.values()
        self.blocks = {
            node: replace(block, hostname=name(node), availables=block.capacities * 0.7)
            for node, block in blocks.items()
        }
        for block in self.blocks.values():
            self.instance.solver.put_block(BACKBONE, block.node, block)
        links = fabrics.local_links(self.blocks[root])
        self.instance.local_links_changed(LocalLinksChanged(BACKBONE, links, "adjacency", 0.0))
        for stage in Stage:
            self.router.startup.reach(stage, 0.0)
        self.solve()

    def solve(self) -> None:
        """Compute the routes."""
        changed, _ = self.instance.solve()
        self.router.table.take(changed)

    def load(self, node: NodeId, end: NodeId, available: float, capacity: float) -> None:
        """A router advertises other bandwidths of a link."""
        block = self.blocks[node]
        chosen = block.neighbors == end
        self.blocks[node] = replace(
            block,
            capacities=np.where(chosen, capacity, block.capacities),
            availables=np.where(chosen, available, block.availables),
        )
        self.instance.solver.put_block(BACKBONE, node, self.blocks[node])

    def context(self) -> ViewContext:
        return ViewContext(
            router=self.router,
            config=Config(),
            runtime=Runtime(time.time(), 1, "test.yaml", 0.0),
            now=asyncio.get_running_loop().time(),
            wall=time.time(),
            log=LogRing(10),
            dump=FibState,
            links={},
            counters=dict,
        )


class Large(TedRouter):
    """Leaf 0 of a large fabric."""

    def __init__(self, spines: int, leaves: int) -> None:
        super().__init__(fabrics.fabric(spines, leaves), fabrics.leaf(0), self.name)

    @staticmethod
    def name(node: NodeId) -> str:
        return f"{'L' if node >> 16 & 255 == 254 else 'S'}{node & 0xFFFF}"
