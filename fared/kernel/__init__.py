"""The only package that uses netlink and raw sockets; ``daemon`` alone imports it.

``fpm`` takes layouts and numbers of netlink from it.

- Packets: ``ospf_socket`` and ``isis_socket`` over ``packet_sockets``, which ``readers`` registers
  and ``reopening`` opens again. ``arrived`` and ``frames`` read many at once, ``recent_pdus``
  recognizes copies, ``on_link`` and ``socketfilter`` refuse early, ``closing`` closes many.
- Streams: ``tcp`` has the options of sockets, ``router_advertisements`` find neighbors without a
  configured address.
- Links: ``monitor`` watches interfaces and foreign ``routes`` by a ``subscription``, and makes
  links of them (``linktable``, ``rtnl``, ``present``); ``capacity`` is their speed or shaper.
  ``counters``, ``error_counters`` and ``fec_counters`` count.
- FIB: ``fib`` writes and reads: ``fibencode`` packs, ``fibdump`` decodes, ``claims`` are the places
  of our routes, ``foreign`` notices others' changes, ``neighbor_cache`` keeps gateways resolved.
- Netlink: ``netlink`` has sockets and framing, ``requests`` asks, ``dumps`` reads long tables in
  slices, ``rtnetlink`` has numbers and layouts.
- nftables: ``nft`` runs the program. Sprayed packets have ``spray``, ``spray_table``,
  ``spray_listing`` and ``marks``; BIER has ``bier``, ``bier_table``, ``bier_php``, ``bier_user``
  and ``leftovers``.
- ``sysctl`` has the settings that fared needs, ``netconf`` receives their changes; ``privileges``
  checks capabilities, ``errors`` has the exceptions.
- ``bfdd/`` is the process ``fared-bfd``.

pyroute2's package is entered without executing it (``runtime.startup``).
"""

from fared.runtime.startup import import_when_needed

import_when_needed("pyroute2")
