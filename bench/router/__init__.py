"""One router without sockets and kernel: computation, changes, memory, fast paths, recordings."""
