"""One whole router without I/O, shared by daemon and sim: engines, SPF scheduling, RIB, FIB."""
