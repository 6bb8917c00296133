"""The views of a simulated router."""

import time
from collections import Counter
from types import SimpleNamespace

from fared.config import load_text
from fared.daemon.loop.runtime import Runtime
from fared.daemon.people.counters import counters_of
from fared.daemon.people.metrics import families
from fared.extensions.sim.fabric import Fabric
from fared.management.documents.config import ConfigDocument
from fared.management.documents.context import ViewContext
from fared.management.documents.log_ring import LogRing

CONFIG = """
router-id: 10.255.0.1
ospf: {areas: {0.0.0.0: {interfaces: {'*': {}}}}}
isis: {net: 49.0001.0102.5500.0001.00, interfaces: {'*': {}}}
"""


def seen_from(fabric: Fabric, name: str) -> ViewContext:
    """The state of router ``name`` at this moment."""
    node = fabric.network.nodes[name]
    router = node.running
    return ViewContext(
        router=router,
        config=load_text(CONFIG),
        runtime=Runtime(0.0, 1, "test.yaml", 0.0),
        now=fabric.network.now,
        wall=time.time(),
        log=LogRing(10),
        dump=node.kernel.dump,
        links={
            port.ifindex: SimpleNamespace(
                ifindex=port.ifindex,
                name=port.name,
                up=port.up,
                shaped=None,
                capacity=port.capacity,
                loopback=False,
                enabled=True,
            )
            for port in node.ports.values()
        },
        counters=lambda: counters_of(router, sockets={}, operations={}, loads=Counter(), edge={}),
        shown_config=lambda saved: ConfigDocument(
            file="test.yaml", loaded_at=0.0, config=load_text(CONFIG).document(), saved=saved
        ),
    )


def scraped(context: ViewContext) -> dict[str, dict[tuple[str, ...], float]]:
    """The metrics that Prometheus receives: values by family name and labels."""
    return {
        family.name.removeprefix("fared_"): {
            tuple(sample.labels.values()): sample.value for sample in family.samples
        }
        for family in families(context, operations={})
        if family is not None
    }
