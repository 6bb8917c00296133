"""fared-cli, the operator's tool."""

from fared.startup import relax_collector

relax_collector()
