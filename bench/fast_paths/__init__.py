"""Fast paths, each beside its plain rule, and what it gains."""
