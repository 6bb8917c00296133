"""Workloads of AI training and inference between the hosts of a lab, and their bounds.

``graph`` is what all of them are: tasks that send, and what each waits for. ``collectives`` are
schedules of sends, ``step`` is a training step of a ``model``, ``federation`` a round between
sites, ``patterns`` are others; ``sizes`` are equal or uneven. All these are pure. ``jobs`` assigns
hosts to ranks, ``run`` runs jobs over the TCP connections of ``flows``, and ``bounds`` says how
fast the fabric could be; ``meter`` reads the use of links. The results are a ``report``, shown by
``tables``, ``plots`` and ``heat``.
"""
