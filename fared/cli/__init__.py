"""fared-cli, the operator's tool."""
