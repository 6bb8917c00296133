"""Computation from files, without a daemon: saved databases (``fared-lsdb/1``), captures, packets.

``fared-cli`` parses arguments and prints (``cli``). This package computes the output with the
codecs, TED builders, solver and views of the daemon, so that a file gives the same answer as the
router on which it was saved. It needs no daemon, root privileges or network. The daemon does not
import it.

- ``file`` reads a document of either protocol, ``pcap`` the frames of a capture; ``world`` is the
  interface that databases of both protocols have. ``changes`` are the assumptions of a "what if".
- ``ospf`` and ``isis`` have the same parts: ``ospf.file`` (the LSAs or LSPs of a document),
  ``ospf.database`` (which of them are used, and their TED blocks), ``ospf.whatif`` (the LSAs or
  LSPs after some changes), ``ospf.capture`` and ``ospf.gather`` (a database from a capture),
  ``ospf.decode`` (one packet, as a document of ``decoded``). IS-IS also has ``isis.leaking``: the
  prefixes that level-1-2 routers would leak.
- ``bgp`` decodes messages: ``bgp.capture`` puts TCP streams together, ``bgp.decode``.
- ``solve`` computes the routes of any router of a database; ``difference`` compares two results,
  ``documents`` has both. ``path`` walks from one router to another. ``ignored`` lists the parts
  that are not used, with the reason.
- ``plan`` sweeps failures, ``ina`` plans aggregation.
"""
