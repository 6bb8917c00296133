"""OSPFv2 wire formats: bytes to frozen dataclasses and back; any bytes decode or DecodeError."""
