"""fared: link-state routing for AI fabrics, weighing every path by what it can carry."""

__version__ = "0.1.0"
