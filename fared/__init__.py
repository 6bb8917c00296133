"""fared: link-state routing for AI fabrics; equal-cost paths are weighted by their capacity."""

__version__ = "0.2.0"
