"""What a switch with SONiC knows of its links, read from Redis: the other platform than the kernel.

Loaded only where ``platform`` of the configuration wants it, or the databases are there.

- ``databases`` reads SONiC's own file of them, ``connection`` speaks to Redis (redis-py), and
  ``reader`` polls, is notified, and connects again.
- ``values`` reads single values, ``inventory`` has the names of ports, LAGs and VRFs, ``facts``
  what is known of each link, ``traffic`` loads and errors.
- ``platform`` answers the daemon from all of them. ``warm_restart`` tells SONiC how far the router
  is, and finds the routes of a former process, whose protocol ``protocols`` names.
"""
