"""Start-up of the Python process: lazy and hidden packages, the allocator, the collector."""

import os
import platform
import subprocess
import sys

import pytest


def answer(code: str) -> str:
    command = [sys.executable, "-c", code]
    # a Dask worker that another test starts sets options of the allocator for all of its parent
    env = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=env)
    return done.stdout.strip()


def test_only_the_needed_modules_of_pyroute2_are_imported():
    """pyroute2's databases, conntrack, WireGuard, queues and ethtool would double the cost."""
    code = "import sys, fared.kernel.monitor; print(*sys.modules)"
    loaded = answer(code).split()
    assert "pyroute2.netlink.rtnl.ifaddrmsg" in loaded
    costly = ("ndb", "ipdb", "conntrack", "netlink.generic", "netlink.rtnl.tcmsg", "requests")
    assert not {f"pyroute2.{name}" for name in costly} & set(loaded)


def test_names_of_a_lazy_package_are_available():
    code = (
        "import fared.kernel.monitor, pyroute2; from pyroute2 import IPRoute, netns;"
        "print(IPRoute.__name__, netns.__name__, pyroute2.NDB.__name__, hasattr(pyroute2, 'nil'))"
    )
    assert answer(code) == "IPRoute pyroute2.netns NDB False"


def test_a_module_is_executed_when_a_name_of_it_is_used():
    code = (
        "import sys; from fared.runtime.startup import import_when_needed\n"
        "import_when_needed('hashlib', 'hmac')\n"
        "import hashlib, hmac; print('_hashlib' in sys.modules, end=' ')\n"
        "print(hmac.new(b'k', b'm', 'md5').digest_size, '_hashlib' in sys.modules)"
    )
    assert answer(code) == "False 16 True"


def test_a_function_imported_by_name_executes_its_module_when_it_is_called():
    """NumPy imports four functions of its linear algebra, msgspec two, which nobody calls."""
    code = (
        "import sys, fared.daemon, numpy, msgspec.json; from numpy.linalg import inv\n"
        "schemas = vars(sys.modules['msgspec._json_schema'])\n"
        "def loaded(): return 'numpy.linalg._linalg' in sys.modules\n"
        "before, one, after = loaded(), inv([[1.0]])[0, 0], loaded()\n"
        "print(before, one, after, numpy.linalg.det([[2.0]]), numpy.linalg.inv is inv)\n"
        "print('_type_repr' in schemas, msgspec.json.schema(int), '_type_repr' in schemas)"
    )
    assert answer(code) == "False 1.0 True 2.0 False\nFalse {'type': 'integer'} True"


def test_numpy_reads_files_and_skips_nan_when_that_is_called():
    """Until then its modules are not executed; what they export is known before."""
    code = (
        "import io, sys, fared.daemon, numpy\n"
        "skipping = vars(sys.modules['numpy.lib._nanfunctions_impl'])\n"
        "def loaded(): return '_nan_mask' in skipping, 'numpy.lib._iotools' in sys.modules\n"
        "before, most = loaded(), numpy.nanmax([1.0, numpy.nan])\n"
        "print(before, most, numpy.loadtxt(io.StringIO('3.0')), loaded())\n"
        "print({'nanmax', 'loadtxt', 'pad', 'histogram'} <= set(numpy.__all__), end=' ')\n"
        "print(set(skipping['__all__']) <= set(numpy.__all__), numpy.pad([1], 1).sum())"
    )
    assert answer(code) == "(False, False) 1.0 3.0 (True, True)\nTrue True 1"


def test_the_texts_of_argparse_are_not_looked_up_by_locale():
    code = (
        "import sys, fared.daemon, argparse\n"
        "print('options:' in argparse.ArgumentParser().format_help(), end=' ')\n"
        "print('locale' in sys.modules, end=' ')\n"
        "import gettext, locale; print(gettext.ngettext('a', 'b', 2), end=' ')\n"
        "print(gettext.NullTranslations.__name__, locale.normalize('de'))"
    )
    assert answer(code) == "True False b NullTranslations de_DE.ISO8859-1"


def test_numpy_is_loaded_without_the_signatures_that_help_shows():
    """inspect makes them; it is executed when somebody else asks it."""
    code = (
        "import sys, fared.daemon.main as main; main.load_daemon()\n"
        "import asyncio, functools, numpy, platform; inspect = sys.modules['inspect']\n"
        "async def serve(): pass\n"
        "for known in (serve, functools.partial(serve), answer := lambda: None, print):\n"
        "    print(asyncio.iscoroutinefunction(known), end=' ')\n"
        "print(numpy.where.__signature__, 'isclass' in vars(inspect), 'uname' in vars(platform))\n"
        "print(platform.system(), inspect.signature(lambda a, b=1: a), 'isclass' in vars(inspect))"
    )
    before, after = answer(code).splitlines()
    assert before == "True True False False None False False"
    assert after == "Linux (a, b=1) True"


def test_a_daemon_handles_signals_without_asking_inspect():
    """Python makes a text of a handler that is replaced: of asyncio's own, with the whole task."""
    code = (
        "import fared.daemon.main as main, asyncio, signal, sys; process = main.load_daemon()\n"
        "class Daemon:\n"
        "    leaving, stderr = False, type('Output', (), {'file': sys.stderr})\n"
        "    def __init__(self, *_): pass\n"
        "    async def serve(self):\n"
        "        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, print)\n"
        "process.Daemon = Daemon; process.run('', None)\n"
        "print('isclass' in vars(sys.modules['inspect']))"
    )
    assert answer(code) == "False"


def test_of_yaml_only_what_reads_files_by_libyaml_is_loaded():
    """Its errors and the rest of the package are there when they are needed."""
    code = (
        "import sys, fared.daemon.main; from fared.config.document import YamlError, parse\n"
        "late = [vars(sys.modules[f'yaml.{name}']) for name in ('reader', 'parser', 'emitter')]\n"
        "print(parse('a: 1')[0], ['YAMLError' in names for names in late], end=' ')\n"
        "for text in ('a: [', 'a: \\0', 'a: \\ud800'):\n"
        "    try: parse(text)\n"
        "    except YamlError as error: print(error.got, end=', ')\n"
        "import yaml; print(yaml.safe_dump({'a': 1}).strip(), yaml.safe_load('b'))"
    )
    assert answer(code) == (
        "{'a': 1} [False, False, False] broken YAML, other characters, other characters, a: 1 b"
    )


def test_a_submodule_is_executed_when_a_name_of_it_is_used():
    """numpy.linalg is an attribute of numpy, and imports by name work before and after."""
    code = (
        "import fared.daemon, numpy, msgspec; from numpy.linalg import LinAlgError, norm\n"
        "print(numpy.linalg.norm is norm, issubclass(LinAlgError, Exception), end=' ')\n"
        "print('decode' in vars(msgspec.toml), msgspec.toml.decode('a=1'), msgspec.toml.__loader__)"
    )
    assert answer(code).startswith("True True False {'a': 1} <_frozen_importlib_external.Source")


def test_a_package_imported_before_is_not_replaced():
    code = (
        "import pyroute2; whole = pyroute2; import fared.kernel.monitor, pyroute2;"
        "print(pyroute2 is whole)"
    )
    assert answer(code) == "True"


def test_a_package_that_does_not_exist_fails_when_it_is_imported():
    code = (
        "from fared.runtime.startup import import_when_needed\n"
        "import_when_needed('no_such_package')\n"
        "try: import no_such_package\n"
        "except ModuleNotFoundError: print('missing')"
    )
    assert answer(code) == "missing"


def test_a_module_whose_execution_failed_is_executed_again(tmp_path):
    """Out of memory, its error is that of memory each time: half a module would have others."""
    (tmp_path / "halfway.py").write_text(
        "import os\nif os.environ.pop('SHORT', None): raise MemoryError\nvalue = 7\n"
        "def called(): return value\n"
    )
    code = (
        "import os, sys; from fared.runtime.startup import import_when_needed\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import_when_needed(functions={'halfway': ('called',)})\n"
        "import halfway; from halfway import called\n"
        "for use in (lambda: halfway.value, called):\n"
        "    os.environ['SHORT'] = 'yes'\n"
        "    try: use()\n"
        "    except MemoryError: print('memory', end=' ')\n"
        "print(called(), halfway.value)"
    )
    assert answer(code) == "memory memory 7 7"


def test_a_hidden_package_is_hidden_only_within_the_block():
    code = (
        "import sys; from fared.runtime.startup import without\n"
        "with without('json'):\n"
        "    try: import json\n"
        "    except ImportError: print('hidden', end=' ')\n"
        "import json; print(json.__name__)"
    )
    assert answer(code) == "hidden json"


def test_a_package_that_is_loaded_is_not_hidden():
    code = (
        "import json; from fared.runtime.startup import without\n"
        "with without('json'): import json; print(1)"
    )
    assert answer(code) == "1"


def test_the_daemon_loads_no_help_texts_of_numpy():
    code = (
        "import fared.daemon.main, fared.daemon.process, numpy;"
        "print(numpy.ndarray.__doc__, numpy.arange(3).sum())"
    )
    assert answer(code) == "None 3"


def test_a_module_that_is_loaded_is_not_emptied():
    code = (
        "import numpy, sys; from fared.runtime.startup import leave_empty\n"
        "leave_empty('numpy._core._add_newdocs')\n"
        "print(sys.modules['numpy._core._add_newdocs'].__file__ is not None)"
    )
    assert answer(code) == "True"


@pytest.mark.parametrize("program", ["fared.daemon.main", "fared.management.cli.main"])
def test_a_program_relaxes_the_collector_before_it_imports_anything(program):
    code = (
        "import gc, importlib, sys; relaxed = []\n"
        "class Finder:\n"
        "    def find_spec(name, path, target=None):\n"
        "        if name in ('argparse', 'click'): relaxed.append(gc.get_threshold()[0] > 10_000)\n"
        "sys.meta_path.insert(0, Finder)\n"
        f"importlib.import_module('{program}'); print(*relaxed)"
    )
    assert answer(code) == "True"


def test_no_garbage_is_collected_while_the_daemon_is_loaded():
    code = (
        "import gc, fared.daemon.main as main\n"
        "def count(): return sum(generation['collections'] for generation in gc.get_stats())\n"
        "before = count(); main.load_daemon(); import fared.protocols.ospf.engine\n"
        "print(count() - before, gc.isenabled())"
    )
    assert answer(code) == "0 True"


def test_frozen_objects_are_not_examined_again():
    code = (
        "import gc; from fared.runtime import startup; startup.set_aside();"
        "print(len(gc.get_objects()))"
    )
    assert int(answer(code)) < 200


def test_a_running_daemon_collects_the_youngest_in_portions_and_the_rest_as_often_as_before():
    code = (
        "import gc; from fared.runtime import startup\n"
        "startup.relax_collector(); a = gc.get_threshold()\n"
        "startup.set_aside(); startup.set_aside(); b = gc.get_threshold()\n"
        "print(b[0] <= a[0] / 4, a[0] * a[1] == b[0] * b[1], a[2] == b[2])"
    )
    assert answer(code) == "True True True"


def test_the_tool_exits_without_a_last_collection():
    """The collection follows the handlers of atexit, of which the last to run comes first here."""
    code = (
        "import atexit, gc; atexit.register(lambda: print(len(gc.get_objects()) < 200))\n"
        "import fared.management.cli.main"
    )
    assert answer(code) == "True"


def test_no_garbage_is_collected_while_a_large_file_is_read():
    code = (
        "import gc; from fared.runtime import startup\n"
        "with startup.collector_paused(): print(gc.isenabled(), end=' ')\n"
        "print(gc.isenabled())"
    )
    assert answer(code) == "False True"


REUSE = """
import resource, sys
from fared.runtime.startup import keep_freed
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def turn():
    blocks = [b"x" * 100_000 for _ in range(80)]
keep_freed(KEPT)
turn()
before = faults()
for _ in range(20): turn()
print(faults() - before)
"""


@pytest.mark.skipif("glibc" not in platform.libc_ver(), reason="it is a property of glibc")
def test_memory_that_is_freed_stays_with_the_process():
    """Otherwise each new allocation of 8 MB costs 2,000 page faults."""
    given_back, kept = (int(answer(REUSE.replace("KEPT", size))) for size in ("0", "16 << 20"))
    assert given_back > 10_000
    assert kept < 1000


RELEASE = """
import sys
from fared.runtime.startup import keep_freed, release_freed
def resident():
    with open("/proc/self/statm") as file: return int(file.read().split()[1]) * 4096
keep_freed(16 << 20)
blocks = [b"x" * 100_000 for _ in range(80)]
last = b"x" * 100_000
blocks.clear()
before = resident()
release_freed()
print(before - resident())
"""


@pytest.mark.skipif("glibc" not in platform.libc_ver(), reason="it is a property of glibc")
def test_memory_freed_before_is_returned_when_the_daemon_has_started():
    assert int(answer(RELEASE)) > 7_000_000


HEAPS = """
import threading
from fared.runtime.startup import share_heap
SHARE
def sizes():
    for line in open("/proc/self/maps"):
        start, end = line.split()[0].split("-")
        yield int(end, 16) - int(start, 16)
def allocate():
    kept.append(b"x" * 10_000)
kept, before = [], len([size for size in sizes() if size > 50 << 20])
thread = threading.Thread(target=allocate); thread.start(); thread.join()
print(len([size for size in sizes() if size > 50 << 20]) - before)
"""


@pytest.mark.skipif("glibc" not in platform.libc_ver(), reason="it is a property of glibc")
def test_threads_allocate_from_one_heap():
    """A heap of a thread's own reserves 64 MiB of addresses."""
    assert answer(HEAPS.replace("SHARE", "")) == "1"
    assert answer(HEAPS.replace("SHARE", "share_heap()")) == "0"
