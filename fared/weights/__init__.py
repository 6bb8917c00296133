"""Path capacity, quantisation to kernel weights, adaptation."""
