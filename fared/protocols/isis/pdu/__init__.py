"""Codecs of IS-IS PDUs and TLVs (ISO 10589 §9)."""
