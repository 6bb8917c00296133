"""The configuration file: model, loading with line numbers, defaults, differences.

``load`` gives a ``Config`` or raises ``ConfigErrors`` with every error of the file at once;
``fared.config.convert`` turns a ``Config`` into engine settings.
"""

from fared.config.changes import Action, Change, diff
from fared.config.load import ConfigError, ConfigErrors, load, load_runnable, load_text
from fared.config.model import Config, json_schema

__all__ = [
    "Action",
    "Change",
    "Config",
    "ConfigError",
    "ConfigErrors",
    "diff",
    "json_schema",
    "load",
    "load_runnable",
    "load_text",
]
