"""Functions that make the documents of ``fared.api.schema`` from the live router, read-only."""
