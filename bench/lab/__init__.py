"""What benchmarks on live fabrics share, and a comparison of fabrics."""
