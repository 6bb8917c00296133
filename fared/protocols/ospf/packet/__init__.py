"""OSPFv2 packets and LSAs: bytes to frozen structs and back (RFC 2328 appendix A)."""
