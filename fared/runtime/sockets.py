"""Where the sockets of the processes are unless the configuration, or an option, names others."""

from __future__ import annotations

from typing import Final

CONTROL_SOCKET: Final = "/run/fared/fared.sock"
"""Of the daemon."""
INA_SOCKET: Final = "/run/fared-ina/ina.sock"
"""Of ``fared-ina``."""
SONIC_DATABASES: Final = "/var/run/redis/sonic-db/database_config.json"
"""The file in which SONiC says which databases there are, and behind which sockets."""
