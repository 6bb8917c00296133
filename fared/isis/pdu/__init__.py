"""Codecs of IS-IS PDUs and TLVs."""
