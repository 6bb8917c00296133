"""Link state requests (RFC 2328 §10.9).

Neighbors of a fabric describe the same LSAs at the same time. Each LSA is requested from one of
them at first: requested from all, it would come as many times.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Neighbor
from fared.protocols.ospf.neighbor import NeighborEvent, NeighborState
from fared.protocols.ospf.packet.lsa import LsaKey, key_of, name_of
from fared.protocols.ospf.packet.packets import LsRequest
from fared.protocols.ospf.processing.transmit import Transmitter, body_space

_REQUEST_SIZE = 12
_NONE = b""


class Requests:
    """Sends the link state request list of each neighbor."""

    def __init__(self, instance: Instance, transmitter: Transmitter) -> None:
        self._instance = instance
        self._process = instance.process
        self._transmitter = transmitter

    def served(self, neighbor: Neighbor) -> None:
        """Send the next request when the last one is served; Loading ends with the list."""
        neighbor.progress_at = self._process.now
        # RFC 2328 §10.9: the next request when the last is served
        if neighbor.requests:
            if not neighbor.outstanding:
                self.send(neighbor)
            return
        self._process.timers.cancel(neighbor.request_timer)
        # §10.9: LoadingDone when the list is empty
        if neighbor.state is NeighborState.LOADING:
            neighbor.fire(NeighborEvent.LOADING_DONE)

    def send(self, neighbor: Neighbor) -> None:
        """Send the beginning of the request list in one packet (§10.9).

        What has been requested from another neighbor is requested from this one after
        RxmtInterval, if it has not come by then.
        """
        room = body_space(neighbor.interface) // _REQUEST_SIZE
        elsewhere = [
            other.outstanding
            for other in self._instance.exchanging
            if other.outstanding and other is not neighbor
        ]
        wanted = (
            header
            for name, header in neighbor.requests.items()
            if not any(names.get(name, _NONE)[2:] == header[2:] for names in elsewhere)
        )
        headers = list(itertools.islice(wanted, room))
        if headers:
            self._transmitter.queue(neighbor, LsRequest((*map(key_of, headers),)))
        else:
            headers = list(itertools.islice(neighbor.requests.values(), room))
        self._await(neighbor, headers)

    def send_again(self, neighbor: Neighbor, keys: Sequence[LsaKey]) -> None:
        """Request LSAs of a full neighbor, once; it answers as during the exchange (§10.7)."""
        room = body_space(neighbor.interface) // _REQUEST_SIZE
        for at in range(0, len(keys), room):
            self._transmitter.queue(neighbor, LsRequest(tuple(keys[at : at + room])))

    def _repeat_request(self, neighbor: Neighbor) -> None:
        """Request the beginning of the request list, each RxmtInterval (§10.9)."""
        room = body_space(neighbor.interface) // _REQUEST_SIZE
        headers = list(itertools.islice(neighbor.requests.values(), room))
        self._transmitter.queue(neighbor, LsRequest((*map(key_of, headers),)))
        self._await(neighbor, headers)

    def _await(self, neighbor: Neighbor, headers: list[bytes]) -> None:
        neighbor.outstanding = {name_of(header): header for header in headers}
        timers = self._process.timers
        timers.cancel(neighbor.request_timer)
        due = self._process.now + neighbor.interface.settings.rxmt_interval
        neighbor.request_timer = timers.arm(due, partial(self._repeat_request, neighbor))
