"""Forming adjacencies (ISO 10589 §8.2, §8.4).

``hello`` starts and ends hellos on circuits. ``p2p`` receives those of point-to-point circuits
(§8.2.5, RFC 5303), ``lan`` those of LANs (§8.4.2); ``processing`` has the steps of both,
``repetitions`` recognizes a hello that changes nothing, ``checks`` decides whether their sender may
be a neighbor, and for which levels, and ``problems`` what else keeps it from being used. ``fsm`` is
the state machine of adjacencies and their holding timers, which ``detection`` ends by BFD.
``restart`` helps neighbors that restart, ``reacquirer`` keeps adjacencies while this router does
(RFC 8706). ``hello_timer`` decides when hellos are sent, ``iih`` builds and pads them.
``dis_election`` elects the designated IS (§8.4.5).

Clauses are those of the second edition (ISO/IEC 10589:2002). RFC 5303 numbers §8.2.5.2 as §8.2.4.2.
"""
