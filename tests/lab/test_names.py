"""Names of namespaces live beside those that ip(8) makes."""

import subprocess
from pathlib import Path

import pytest

from fared.extensions.lab.namespaces import Netns


@pytest.mark.netns
def test_a_name_made_before_the_first_ip_netns_add_can_still_be_removed():
    """The first ``ip netns add`` binds the directory over itself unless that is done already."""
    made = Netns.create("lab-names-a")
    try:
        subprocess.run(["ip", "netns", "add", "lab-names-b"], check=True)
        subprocess.run(["ip", "netns", "delete", "lab-names-b"], check=True)
    finally:
        made.delete()
    assert not Path("/run/netns/lab-names-a").exists()
