"""A fabric of daemons, and the page of one of its routers in a browser."""

import asyncio
import threading
from contextlib import contextmanager, suppress

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.page import forward, inside, listen


@contextmanager
def forwarded(fabric: Fabric, name: str):
    """Forward to the page of a router, as ``fared-lab page`` does; yield its address."""
    listener = listen(0)
    netns = fabric.node(name).netns
    loop = asyncio.new_event_loop()
    task = loop.create_task(forward(listener, lambda: inside(netns)))

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
