"""The YAML file: model, loading with line numbers, defaults, diff."""
