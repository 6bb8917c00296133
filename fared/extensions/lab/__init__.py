"""fared-lab: real fabrics in network namespaces."""
