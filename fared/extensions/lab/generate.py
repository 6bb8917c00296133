"""Topology files of any size: the text of a five-stage Clos fabric, ready for containerlab too.

The fabric is Figure 2 of draft-xu-lsr-fare: PoDs of leaves and spines, each an OSPF area, and
planes of super-spines in area 0, each joining the spines with one number. The figure has 8 PoDs and
4 super-spines in each plane; ``containerlab/clos5.clab.yml`` has the default size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fared.core.ids import BACKBONE

KINDS = """\
name: {name}

topology:
  kinds:
    linux:
      image: fared
      binds: ["{name}.clab.yml:/fabric.clab.yml:ro"]
      cmd: fared-lab node /fabric.clab.yml
      network-mode: none     # no second path around the fabric
      restart-policy: "no"   # Docker would restart a node without its links
"""
"""The beginning of a generated fabric, which runs in containers too."""
_HEAD = """\
# A five-stage Clos fabric: {pods} PoDs of {spines} spines and {leaves} leaves, {spines} planes of \
{supers} super-spines, one host a
# leaf; every link {rate}bit/s. PoD p is OSPF area p, with the loopbacks of its leaves; the planes,
# and the loopbacks of spines and super-spines, are area 0: the spines are area border routers.
#
#   fared-lab demo {name}.clab.yml           the demo, across areas
#   fared-lab up {name}.clab.yml             the same fabric, left running
#   containerlab deploy -t {name}.clab.yml   with Docker; see containerlab/README.md
#
# p1-S1 is spine 1 of PoD 1, linked to every leaf of its PoD and to the super-spines of plane 1, \
which
# are plane1-SS1 and so on. Interfaces are named after the node at the far end. The labels and vars
# are explained in fared/extensions/lab/topology.py. `fared-lab generate clos5` writes this file \
in other sizes.
"""
_GROUPS = """\
  defaults: {{labels: {{fared-lab.hello-interval: {hello}}}}}   # seconds
  groups:
    super: {{kind: linux, labels: {{fared-lab.kind: fared, fared-lab.rate: {rate}}}}}
    spine: {{kind: linux, labels: {{fared-lab.kind: fared, fared-lab.rate: {rate}}}}}
    leaf: {{kind: linux, labels: {{fared-lab.kind: fared, fared-lab.rate: {rate}}}}}
    host: {{kind: linux}}

  nodes:
"""


@dataclass(frozen=True)
class Clos5:
    """The size of a five-stage fabric: there are as many planes as spines in a PoD."""

    pods: int = 2
    spines: int = 4
    leaves: int = 4
    supers: int = 2
    rate: str = "100M"
    hello: int = 1
    name: str = "clos5"

    def text(self) -> str:
        """Return the topology file."""
        return (_HEAD + KINDS + _GROUPS).format(**vars(self)) + "".join(
            f"{line}\n" for line in (*self._nodes(), "", "  links:", *self._links())
        )

    def _nodes(self) -> Iterator[str]:
        for plane in _count(self.spines):
            yield from (f"    plane{plane}-SS{n}: {{group: super}}" for n in _count(self.supers))
        for pod in _count(self.pods):
            yield from (f"    p{pod}-S{n}: {{group: spine}}" for n in _count(self.spines))
            yield from (f"    p{pod}-L{n}: {{group: leaf}}" for n in _count(self.leaves))
        for pod in _count(self.pods):
            yield from (f"    p{pod}-h{n}: {{group: host}}" for n in _count(self.leaves))

    def _links(self) -> Iterator[str]:
        for plane in _count(self.spines):
            yield f"    # plane {plane}"
            for number in _count(self.supers):
                for pod in _count(self.pods):
                    yield from _link(f"plane{plane}-SS{number}", f"p{pod}-S{plane}", BACKBONE)
        for pod in _count(self.pods):
            yield f"    # PoD {pod}"
            for leaf in _count(self.leaves):
                for spine in _count(self.spines):
                    yield from _link(f"p{pod}-S{spine}", f"p{pod}-L{leaf}", pod)
        yield "    # hosts"
        for pod in _count(self.pods):
            for leaf in _count(self.leaves):
                yield from _link(f"p{pod}-L{leaf}", f"p{pod}-h{leaf}", None)


def _count(number: int) -> range:
    return range(1, number + 1)


def _link(upper: str, lower: str, area: int | None) -> Iterator[str]:
    yield f'    - endpoints: ["{upper}:{lower}", "{lower}:{upper}"]'
    if area is not None:
        yield f"      vars: {{area: {area}}}"
