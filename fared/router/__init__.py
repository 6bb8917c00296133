"""One whole router without I/O: engines, SPF scheduling, RIB and FIB planning, shared by daemon and sim."""
