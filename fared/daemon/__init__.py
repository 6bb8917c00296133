"""The daemon: one router on sockets, the kernel, and a clock.

``main`` is the command, ``process`` runs until a signal or a restart, under a ``lock``. ``daemon``
starts and stops in order what ``parts`` makes; ``kernel`` is the kernel's side of it, and
``platform`` what a switch knows beside it.

- ``loop/``: packets, links and the kernel's notifications come in, timers run, outputs leave
- ``change/``: from the configuration to settings, and their changes while the daemon runs
- ``people/``: what people and programs ask: commands, views, metrics, logs
- ``services/``: what runs only where it is wanted: BFD, BIER, spraying, link health, recordings
"""

from fared.runtime.startup import (
    import_when_needed,
    leave_empty,
    leave_uninspected,
    leave_untranslated,
    load_msgspec,
    relax_collector,
    skip_last_collection,
)

relax_collector()
skip_last_collection()
leave_untranslated()
leave_uninspected()
import_when_needed(
    *("hashlib", "hmac", "difflib", "tokenize", "shutil", "locale", "yaml"),
    *("structlog", "structlog.dev", "numpy.lib.npyio"),
    functions={
        "urllib.parse": ("quote_from_bytes",),
        "pickle": ("PicklingError",),
        "yaml.reader": ("ReaderError",),
        "yaml.scanner": ("ScannerError",),
        "yaml.parser": ("ParserError",),
        "yaml.composer": ("ComposerError",),
        "yaml.emitter": ("EmitterError",),
        "yaml.serializer": ("SerializerError",),
        "yaml.representer": ("RepresenterError",),
        "numpy._core.einsumfunc": ("__all__", "einsum", "einsum_path"),
        "numpy.lib._utils_impl": (
            *("__all__", "drop_metadata", "get_include", "info", "show_runtime"),
        ),
        "numpy.lib._polynomial_impl": (
            *("__all__", "poly", "poly1d", "polyadd", "polyder", "polydiv", "polyfit", "polyint"),
            *("polymul", "polysub", "polyval", "roots"),
        ),
        "numpy.linalg": ("eigvals", "inv", "lstsq", "matrix_power"),
        "numpy.lib._arraypad_impl": ("__all__", "pad"),
        "numpy.lib._histograms_impl": (
            *("__all__", "histogram", "histogramdd", "histogram_bin_edges"),
        ),
        "numpy.lib._nanfunctions_impl": (
            *("__all__", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean"),
            *("nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum"),
            "nanvar",
        ),
        "numpy.lib._npyio_impl": (
            *("__all__", "fromregex", "genfromtxt", "load", "loadtxt", "packbits", "save"),
            *("savetxt", "savez", "savez_compressed", "unpackbits"),
        ),
    },
    instead={"structlog.tracebacks": {"ExceptionDictTransformer": object}},
)
leave_empty("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars", "asyncio.sslproto")
load_msgspec()
