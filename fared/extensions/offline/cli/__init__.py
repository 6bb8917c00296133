"""Commands of ``fared-cli`` that need no daemon: files in, answers out."""
