"""Documents of ``fared.api.schema`` made from the live router, read-only, one function each."""
