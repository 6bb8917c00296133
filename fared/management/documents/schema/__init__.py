"""TypedDicts of documents that have no module yet."""
