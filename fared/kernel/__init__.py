"""The only room that speaks netlink and raw sockets.

pyroute2's package imports everything it has (conntrack, WireGuard, an SQL database of
interfaces) when any part of it is imported: twice the time and three times the memory of the
message classes that are used here. So the package itself is entered unexecuted, and executed only
when somebody asks for a name that is none of its modules.
"""

from fared.kernel.lazy import import_when_needed

import_when_needed("pyroute2")
