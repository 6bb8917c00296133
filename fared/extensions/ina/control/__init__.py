"""Who runs which job: what routers flood, who plans, and who takes over.

Each router with ``fared-ina`` floods its capability; the head of a job floods the job with its
trees. The head is the router that created it, at first that of the worker of rank 0. ``advert``
encodes both; ``manager`` decides: pure, driven by what is flooded, by changes of the network, and
by time.
"""
