"""Functions that make the documents of ``api.schema`` from the live router, read-only."""
