"""New jobs with workers in other areas: the head asks, and border routers tell who has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from fared.extensions.ina.control.exchange import CreateJob
from fared.extensions.ina.control.wide import WideJobs

_SETTLED: Final = 0.5
"""Seconds without another answer after which a job is created with what is known."""
_LONGEST: Final = 5.0
_LOOK_EVERY: Final = 0.1
_AFTER: Final = 10.0
"""Seconds for which a wish goes on, so that the job's advert takes its place everywhere."""


class AskedJobs:
    """Requests for such jobs. ``create`` gets them with routers where some were found.

    ``changed`` is called when this router asks for other workers than before, and ``knows_tree``
    tells whether the routers of a request's tree are known.
    """

    def __init__(
        self,
        wide: WideJobs,
        create: Callable[[CreateJob], None],
        changed: Callable[[], None],
        knows_tree: Callable[[CreateJob], bool],
    ) -> None:
        self._wide, self._create, self._changed = wide, create, changed
        self._knows_tree = knows_tree
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, request: CreateJob) -> None:
        """Ask for the workers of a job, and create it when they are known, or not in time."""
        task = asyncio.create_task(self._asking(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _asking(self, request: CreateJob) -> None:
        wishes = self._wide.border.wishes
        if request.name not in wishes:
            wishes[request.name] = tuple(place.address for place in request.places)
            self._changed()
        now = asyncio.get_running_loop().time
        end, since, known = now() + _LONGEST, now(), self._wide.areas.capabilities()
        while now() < end:
            await asyncio.sleep(_LOOK_EVERY)
            if known != (known := self._wide.areas.capabilities()):
                since = now()
            if now() - since >= _SETTLED and self._is_known(request):
                break
        self._create(self._routers(request) or request)
        await asyncio.sleep(_AFTER)
        wishes.pop(request.name, None)
        self._changed()

    def _is_known(self, request: CreateJob) -> bool:
        """Whether the routers of all workers are known, and those of a given tree."""
        return self._routers(request) is not None and self._knows_tree(request)

    def _routers(self, request: CreateJob) -> CreateJob | None:
        """Return a request with the routers of all workers; None: some are not known."""
        places = [
            place
            if place.leaf is not None
            else msgspec.structs.replace(place, leaf=self._wide.router_of(place.address))
            for place in request.places
        ]
        if any(place.leaf is None for place in places):
            return None
        return msgspec.structs.replace(request, places=places)
