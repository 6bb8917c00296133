"""The routing tables of BGP (RFC 4271 §3.2), without I/O: one ``BgpRib`` (``tables``) for a family.

Prefixes to which all neighbors announce equal paths (``paths``) form a group (``adj_in``). For each
group, not each prefix, ``decision`` chooses paths, ``bandwidth`` says what they carry, with limits
that several neighbors share (``shared``, on LANs ``lans``), by links to next hops or beyond them
(``exits``), and ``graph`` describes it to the route solver. ``telling`` says what neighbors are
told of it, ``hosts`` a share, and ``adj_out`` when. ``origins``: which protocol a route was
redistributed from.
"""
