"""Services that run where they are wanted: BFD, BIER, FPM, spraying, recordings, link health.

``running`` loads and starts them. ``bfd`` keeps the sessions that protocols want, in the process of
``bfd_process``; ``bfd_report`` shows them. ``spraying`` starts ``spray_writer``, and ``bier`` is
the same for BIER; both write tables of nftables (``table_work``). ``link_health`` watches errors
and flaps of links. ``fpm`` connects the session of a switch chip, which ``switch_start`` begins on
SONiC. ``recorder`` records the router, and ``lost_links`` keeps the links that the fabric has lost.
"""
