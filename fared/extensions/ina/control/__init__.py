"""Who runs which job: what routers flood, who plans, and who takes over.

Each router with ``fared-ina`` floods its capability; the head of a job floods the job with its
trees. The head is the router that created it, at first that of the worker of rank 0. ``advert``
encodes both, ``adverts`` keeps those that are flooded. ``manager`` decides: pure, driven by what is
flooded, by changes of the network, and by time. ``creation`` checks a new job (``errors``),
``planning`` makes its trees from the ``network``, within the ``places`` of routers, with
``reasons``; ``leading`` begins epochs, ``membership`` follows the workers of elastic jobs.
``exchange`` has the messages between ``fared-jobs`` and the daemon.

``wide`` has the jobs of several areas: ``areas`` keeps what is flooded in each, ``border`` decides
what this router passes on, and ``passing`` encodes it.
"""
