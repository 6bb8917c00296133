"""One whole router without I/O, shared by daemon and simulator.

``router`` is its contract: inputs and outputs (``events``), time, one turn. It decides only when
things happen; the rest is in parts:

- ``protocols`` lists the protocols; ``engine`` is the interface of their engines; ``instance`` has
  an engine with the solvers of its routes. ``settings`` gathers those of all packages.
- ``schedule`` decides when routes are computed, ``adapting`` when weights follow load;
  ``computing`` does both, and ``convergence`` records causes and durations. ``ends`` counts the
  links that share the budget of announcements.
- ``redistribution`` passes the routes that are used to the engines of other protocols.
- ``changes`` finds what each computation was about (``compared``, router by router) when somebody
  asks; ``lost`` remembers the links that went.
- ``programming`` passes the planner's operations to the kernel, and the answers back.
- ``stages`` names the steps of start-up, ``starting`` takes them.
- ``spraying`` and ``multicast`` load what few routers need: ``spray_programming``, ``bier``.
"""
