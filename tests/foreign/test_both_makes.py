"""One router's configuration for FRR and for BIRD becomes one and the same of fared."""

from __future__ import annotations

from pathlib import Path

from fared.config import load_text
from fared.config.model import Config
from fared.extensions.foreign.bird.read import read_bird
from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.frr.read import read_frr
from fared.extensions.foreign.write import write_draft
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kinds import bird, frr
from fared.extensions.lab.shipped import files


def loaded(draft: Draft) -> Config:
    return load_text(draft.settle(lambda: write_draft(draft, "x", "X")))


def test_routers_of_a_fabric_of_five_stages(tmp_path: Path):
    """Areas, costs, timers and passive interfaces; the lab sets another retransmission."""
    plan = Fabric.from_file(files()["clos5"], directory=tmp_path).plan
    for router in plan.routers[::4]:
        of_frr = loaded(read_frr("\n".join(frr._ospfd(router)), {}))
        text = "\n".join(bird._config(router)).replace("retransmit 2", "retransmit 1")
        of_bird = loaded(read_bird(text, Path("bird.conf"), lambda _: ""))
        assert of_frr.router_id == of_bird.router_id
        assert of_frr.ospf.max_paths == of_bird.ospf.max_paths == 64
        assert {area: found.interfaces for area, found in of_frr.ospf.areas.items()} == {
            area: found.interfaces for area, found in of_bird.ospf.areas.items()
        }
