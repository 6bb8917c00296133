"""Simulated fabrics: whole routers in one process on a virtual clock.

``network`` runs routers in virtual time, with interfaces of ``port`` on cables of ``wire``;
``streams`` are their TCP connections.
``fabric`` builds fabrics, ``areas`` and ``levels`` those of several areas or levels, ``protocols``
the settings of routers. ``invariants`` check any quiet fabric, ``area_invariants`` and
``level_invariants`` those of several areas or levels. ``load`` is traffic that follows weights,
``watch`` shows what it does to them.
"""
