"""The desired state of the kernel's FIB, and the smallest safe list of operations to reach it.

``model`` has the kernel's objects and the operations on them, ``settings`` ids and limits.
``planner`` owns the rules of identity: which next hop, group and route is which object.
``installed`` is a copy of the kernel's state, ``desired`` what routes want, ``merged`` with which
weights where groups are few; ``plan`` orders the operations between them, make before break.
``answers`` corrects the copy by the kernel's answers and retries, ``disputes`` limits repairs that
another program undoes.

``spray`` and ``spray_planner`` do the same for sprayed packets, in the order of ``round_robin``;
``bier`` for BIER. ``simulated`` is a kernel in memory, for simulations and tests,
``unwritten`` none: routes go elsewhere.
"""
