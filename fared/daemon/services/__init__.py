"""Services that run where they are wanted: BFD, BIER, spraying, recordings, link health."""
