"""IS-IS from files: saved databases, "what if", captures, packets."""
