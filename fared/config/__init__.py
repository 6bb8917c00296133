"""The configuration file: model, loading with line numbers, defaults, differences.

``load`` returns a ``Config`` or raises ``ConfigErrors`` with all errors of the file;
``fared.daemon.change.settings`` converts a ``Config`` to engine settings.
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
