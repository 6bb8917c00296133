"""Bringing up adjacencies (RFC 2328 §9.4, §9.5, §10).

``hello`` sends and receives hellos (§9.5, §10.5) and feeds the neighbor state machine, whose table
is ``ospf.neighbor`` (§10.1 to §10.3) and whose actions are in ``fsm``. ``detection`` ends an
adjacency by BFD (RFC 5882), ``helper`` keeps one while the neighbor restarts (RFC 3623 §3).
``admission`` limits how many adjacencies form at once (RFC 4222), ``progress`` tells how far they
are. ``exchange`` describes databases (§10.6, §10.8), and ``requests`` requests LSAs until a
neighbor is Full (§10.9). On broadcast networks ``broadcast`` decides which neighbors become
adjacent (§10.4) and runs the ``election`` of the designated router (§9.4). ``subnets`` chooses the
address of an interface, ``mtu`` follows MTUs that change, ``problems`` says why a neighbor is not
used.
"""
