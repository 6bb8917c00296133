"""Versioned views, control socket, HTTP."""
