"""Versioned documents of the daemon: their views, control socket and HTTP server."""
