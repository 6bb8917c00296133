"""The machines of in-network aggregation: exactly-once sums over packets that get lost.

``packet`` is the codec, ``setup`` describes a job's trees in one epoch, ``numbers`` turns floats
into integers whose sum is the same in any order. ``aggregator`` is a router, the root too, with a
``slot`` for each sum and ``alike`` for packets that need one test together; ``worker`` is one end:
``chunks`` has what it sends, ``calls`` where its calls end, and ``window`` when packets go again.
``ring`` sums without routers. Machines get packets and the time, and call one of ``ports`` to send;
they are told of everything by vertex (``ina.plan.model``), so whoever moves packets checks
addresses.

Exactly once: a bit enters the seen bits of a slot together with its value, once in an epoch; a sum
leaves only when these equal the A-BM; A-BMs of children are disjoint. A slot is reused after 2 S
sequences, when nobody needs it: who sends sequence c + 2 S has the result of c + S, so all workers
sent c + S, hence all had the result of c. Only workers repeat packets.
"""
