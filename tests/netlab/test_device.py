"""fared as a device of netlab: ``netlab create`` renders files that ``fared --check`` accepts.

Each file of ``topologies/`` is of the kind of one of netlab's own integration tests. netlab has a
virtual environment of its own, which ``make test-netlab`` makes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fared.config import load_runnable
from fared.daemon import main
from tests.netlab.netlab import DEVICE, NETLAB, create

TOPOLOGIES = sorted((Path(__file__).parent / "topologies").glob("*.yml"))
needs_netlab = pytest.mark.skipif(NETLAB is None, reason="netlab is missing: make test-netlab")
Json = dict[str, Any]

P2P = {"passive": False, "network-type": "point-to-point"}
SLOW = {"hello-interval": 10, "dead-interval": 40}
EXPECTED: dict[str, dict[str, Json]] = {
    "ospf-network-types": {
        "a": {
            "router-id": "10.0.0.1",
            "ospf": {
                "areas": {
                    "0.0.0.0": {
                        "interfaces": {
                            "lo": {"passive": True},
                            "eth1": {**P2P, **SLOW},
                            "eth2": {"passive": False, "network-type": "broadcast", **SLOW},
                            "eth3": {"passive": True},
                        }
                    }
                }
            },
        }
    },
    "ospf-areas": {
        "border": {
            "ospf": {
                "areas": {
                    "0.0.0.0": {"interfaces": {"lo": {}, "eth1": P2P}},
                    "0.0.0.1": {"interfaces": {"eth2": P2P}},
                    "0.0.0.2": {"interfaces": {"eth3": P2P}},
                }
            }
        },
        "r1": {"ospf": {"areas": {"0.0.0.1": {"interfaces": {"lo": {}, "eth1": P2P}}}}},
    },
    "ospf-cost-passive": {
        "b": {
            "ospf": {
                "areas": {
                    "0.0.0.0": {
                        "interfaces": {
                            "eth1": {"cost": 5},
                            "eth2": {"cost": 50},
                            "eth3": {"passive": True},
                        }
                    }
                }
            }
        }
    },
    "ospf-unnumbered": {
        "a": {"ospf": {"areas": {"0.0.0.0": {"interfaces": {"lo": {}, "eth1": P2P}}}}}
    },
    "ospf-timers-password": {
        "a": {
            "ospf": {
                "areas": {
                    "0.0.0.0": {
                        "interfaces": {
                            "eth1": {"priority": 0, "hello-interval": 3, "dead-interval": 12},
                            "eth2": {
                                "hello-interval": 1,
                                "dead-interval": 3,
                                "authentication": {"algorithm": "cleartext", "key": 'a"b'},
                            },
                        }
                    }
                }
            }
        }
    },
    "ospf-import": {
        "exit": {
            "ospf": {
                "redistribute": {
                    "connected": {"prefixes": ["198.51.100.0/24"]},
                    "static": {},
                    "default": {"always": True, "metric": 7, "metric-type": 1},
                }
            }
        }
    },
    "ospf-stub-area": {
        "border": {
            "ospf": {
                "areas": {
                    "0.0.0.11": {
                        "type": "stub",
                        "summary": False,
                        "default-cost": 15,
                        "ranges": {
                            "10.17.0.0/16": {"advertise": True},
                            "10.18.0.0/16": {"advertise": False},
                        },
                    }
                }
            }
        },
        "leaf": {"ospf": {"areas": {"0.0.0.11": {"type": "stub"}}}},
    },
    "ospf-bfd-restart": {
        "a": {
            "ospf": {
                "graceful-restart": {"enabled": True, "helper": True, "grace-period": 90},
                "areas": {
                    "0.0.0.0": {
                        "interfaces": {
                            "eth1": {
                                "bfd": {
                                    "enabled": True,
                                    "min-tx": "200ms",
                                    "min-rx": "300ms",
                                    "multiplier": 4,
                                    "strict": True,
                                    "hold-time": "2s",
                                }
                            },
                            "eth2": {"bfd": {"min-tx": "50ms", "min-rx": "50ms"}},
                        }
                    }
                },
            }
        },
        "b": {"ospf": {"graceful-restart": {"enabled": False, "helper": True}}},
    },
    "isis-dual-stack": {
        "a": {
            "isis": {
                "net": "49.0001.0000.0000.0001.00",
                "level": "level-1-2",
                "address-families": ["ipv4", "ipv6"],
                "multi-topology": True,
                "interfaces": {
                    "lo": {"passive": True},
                    "eth1": {**P2P, "level": "level-1", "metric": 30},
                    "eth2": {"network-type": "broadcast"},
                    "eth3": {"passive": True},
                },
            }
        }
    },
    "isis-bfd-import": {
        "exit": {
            "router-id": "0.0.0.1",
            "isis": {
                "address-families": ["ipv6"],
                "multi-topology": False,
                "redistribute": {"connected": {"prefixes": ["2001:db8:51::/64"]}, "static": {}},
                "interfaces": {"eth1": {**P2P, "bfd": {"enabled": True, "min-tx": "500ms"}}},
            },
        }
    },
}
"""What the files of some nodes have, with the values of netlab's topology."""


def part(whole: object, wanted: object) -> object:
    """What a document has in the places of another one."""
    if isinstance(whole, dict) and isinstance(wanted, dict):
        return {key: part(whole.get(key), value) for key, value in wanted.items()}
    return whole


def check(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["fared", "--config", str(file), "--check"])
    main.main()


@needs_netlab
@pytest.mark.parametrize("file", TOPOLOGIES, ids=lambda file: file.stem)
def test_fared_accepts_what_netlab_renders(file, tmp_path, monkeypatch, capsys):
    done = create(file.read_text(), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rendered = sorted(tmp_path.glob("node_files/*/fared"))
    assert len(rendered) > 1
    for one in rendered:
        check(one, monkeypatch)
        assert f"{one}: ok" in capsys.readouterr().out
    for node, wanted in EXPECTED[file.stem].items():
        document = yaml.safe_load((tmp_path / "node_files" / node / "fared").read_text())
        assert part(document, wanted) == wanted


def test_each_topology_says_what_is_expected():
    assert {file.stem for file in TOPOLOGIES} == EXPECTED.keys()


@needs_netlab
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("module: [ bgp ]\nbgp.as: 65000\nnodes: [ a, b ]\nlinks: [ a-b ]\n", "bgp"),
        ("module: [ ospf, vrf ]\nvrfs.red: {}\nnodes: [ a, b ]\nlinks: [ a-b ]\n", "vrf"),
    ],
)
def test_netlab_refuses_what_fared_has_not(text, said, tmp_path):
    done = create(text, tmp_path)
    assert done.returncode != 0
    assert said in (done.stdout + done.stderr).lower()


@needs_netlab
def test_a_kind_of_area_that_fared_has_not_is_an_error_of_its_file(tmp_path):
    """netlab knows no way to refuse NSSA alone."""
    text = (
        "plugin: [ ospf.areas ]\nmodule: [ ospf ]\nospf.areas: [ {area: 0.0.0.1, kind: nssa} ]\n"
        "nodes: {a: {ospf.area: 0.0.0.1}, b: {ospf.area: 0.0.0.1}}\nlinks: [ a-b ]\n"
    )
    assert create(text, tmp_path).returncode == 0
    with pytest.raises(Exception, match=r"type: expected 'normal' or 'stub', got \"nssa\""):
        load_runnable(tmp_path / "node_files" / "a" / "fared")


def test_the_definition_names_a_template_for_each_file():
    definition = yaml.safe_load((DEVICE / "fared.yml").read_text())["daemons.fared"]
    for name in definition["daemon_config"]:
        place = "ospf/areas/fared.j2" if "@" in name else f"templates/fared/{name}.j2"
        assert (DEVICE / place).exists(), name
