"""Configurations and databases of FRR and BIRD, as fared's.

A reader knows its router's file and what of it fared has; it does no I/O, and names each line that
it does not take. ``frr.lines`` is for those who want addresses and nothing else.

- ``command`` is ``fared-cli config import``.
- ``frr.database`` and ``frr.lsps`` make ``fared-lsdb/1`` of what FRR prints of OSPF and IS-IS.
- ``frr`` and ``bird`` read files: ``frr.read`` and ``bird.read`` make a ``draft`` of one, which
  ``write`` writes as a file of fared. ``machine`` is what they ask of the kernel, ``rules`` the
  form of their tables of statements, ``filters`` makes one filter of several lists.
"""
