"""The only room that uses netlink and raw sockets.

Only ``daemon`` imports it. pyroute2's package is entered without executing it
(``startup.import_when_needed``).
"""

from fared.runtime.startup import import_when_needed

import_when_needed("pyroute2")
