"""One daemon with all neighbors of a large fabric; large fabrics on the virtual clock."""
