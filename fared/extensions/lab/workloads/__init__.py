"""Workloads of AI training and inference between the hosts of a lab, and their bounds.

``collectives`` are schedules of sends, ``jobs`` assigns hosts to their ranks, ``run`` runs jobs
over the TCP connections of ``flows``, and ``bounds`` says how fast the fabric could be; ``meter``
reads the use of links. The results are a ``report``, shown by ``tables`` and ``plots``.
"""
