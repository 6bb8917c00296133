"""Commands of ``fared-cli`` about jobs of aggregation."""
