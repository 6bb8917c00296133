"""One daemon beside FRR and BIRD: the same database, the same events."""
