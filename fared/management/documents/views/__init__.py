"""Functions that make documents from the live router, read-only."""
