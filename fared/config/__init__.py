"""The configuration file: model, loading with line numbers, defaults, differences.

``load`` returns a ``Config`` or raises ``ConfigErrors`` with all errors of the file;
``fared.daemon.change.settings`` converts a ``Config`` to engine settings.

- Sections: ``model`` is the whole file, with ``ospf``, ``isis`` and ``bgp``, and what they share:
  ``igp``, ``authentication``, ``bfd``, ``filters``; ``bgp_neighbor``, and ``bgp_instead`` with what
  BGP of fared has not; ``bier``, ``fpm``, ``link_health``, ``platform``. ``section`` is the base
  of all: fields, defaults, and the effect of a reload.
- Values: ``shapes`` reads them by the annotations of a field; ``values`` and ``quantities`` are
  their types, ``globs`` the keys that name interfaces, ``secrets`` the keys of authentication.
- Reading: ``document`` keeps lines and columns of YAML, ``files`` opens files with limits,
  ``reading`` collects ``errors``, ``checks`` compares entries with each other,
  ``traps`` warns of what is probably not meant, ``here`` of what this machine does not have;
  ``hints`` explains errors.
- ``changes`` are the differences of two configurations; ``template`` writes a first one; ``saved``
  is the process that reads a file for a running daemon.
"""

from fared.config.changes import Change, diff, merged
from fared.config.errors import ConfigError, ConfigErrors, ConfigWarning
from fared.config.load import Loaded, load, load_runnable, load_text
from fared.config.model import Config, json_schema
from fared.config.section import Reload

__all__ = [
    "Change",
    "Config",
    "ConfigError",
    "ConfigErrors",
    "ConfigWarning",
    "Loaded",
    "Reload",
    "diff",
    "json_schema",
    "load",
    "load_runnable",
    "load_text",
    "merged",
]
