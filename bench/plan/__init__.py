"""Planning: failures of whole fabrics, jobs on shared links."""
