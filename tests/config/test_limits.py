"""Files that are too much: too large, endless, with too many errors, or written to be slow."""

import json
import os
import random
import time

import pytest

from fared.config import ConfigErrors, diff, globs, load, load_runnable, load_text
from tests.work import counting_calls, grows_in_proportion

MD5 = "algorithm: md5, key-id: 1"


def refusal(text: str) -> ConfigErrors:
    with pytest.raises(ConfigErrors) as caught:
        load_text(text, file="fared.yaml")
    return caught.value


def many_interfaces(count: int, areas: int = 2) -> str:
    """A file in block style, its interfaces dealt out to areas."""
    lines = ["ospf:", "  areas:"]
    for area in range(areas):
        lines += [f"    {area}:", "      interfaces:"]
        for number in range(area, count, areas):
            lines += [f"        eth{number}:", f"          cost: {number % 100 + 1}"]
    return "\n".join(lines) + "\n"


def test_exponential_yaml_merges_are_refused_at_once():
    """A merge counts what it brings in, as an alias does."""
    lines = [f"a{i}: &a{i} {{<<: *a{i - 1}, k{i}: {{<<: *a{i - 1}}}}}" for i in range(1, 60)]
    error = refusal("\n".join(["a0: &a0 {k: 1}", *lines])).errors[0]
    assert error.expected == "at most 500,000 entries"
    assert error.hint == "each use of an alias or merge counts its whole content"


def test_repeated_yaml_merges_add_no_keys():
    lines = [
        f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}], k{i}: 1}}" for i in range(1, 30)
    ]
    refused = refusal("\n".join(["a0: &a0 {k: 1}", *lines]))
    assert refused.total == 30
    assert refused.errors[0].got == 'the unknown key "a0"'


def test_a_list_over_its_limit_is_refused_with_its_place():
    error = refusal("ospf: [" + "a," * 600_000 + "]").errors[0]
    assert (error.path, error.expected) == ("ospf", "at most 500,000 entries")
    assert error.column == len("ospf: [") + 2 * (500_000 - 3) + 1


def test_a_file_over_4_mb_is_refused_unread(tmp_path):
    file = tmp_path / "fared.yaml"
    file.write_text("# nothing\n" * 420_000)
    with pytest.raises(ConfigErrors, match="expected a file of at most 4 MB, got a larger one"):
        load(file)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (os.mkfifo, "a FIFO"),
        (os.mkdir, "a directory"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
    ],
)
def test_only_regular_files_are_read(tmp_path, make, kind):
    """Opening a FIFO would wait for its writer, and a device never ends."""
    path = tmp_path / "there"
    make(path)
    with pytest.raises(ConfigErrors, match=f"there:1:1: expected a regular file, got {kind}"):
        load(path)
    authentication = f"{{{MD5}, key-file: {path}}}"
    text = f"ospf: {{areas: {{0: {{interfaces: {{a: {{authentication: {authentication}}}}}}}}}}}"
    error = refusal(text).errors[0]
    assert (error.expected, error.hint) == ("a regular file", f"it is {kind}")


def test_an_empty_key_file_is_refused(tmp_path):
    (tmp_path / "key").touch()
    authentication = f"{{{MD5}, key-file: {tmp_path}/key}}"
    text = f"ospf: {{areas: {{0: {{interfaces: {{a: {{authentication: {authentication}}}}}}}}}}}"
    assert refusal(text).errors[0].hint == "its first line is empty"


def test_of_many_errors_the_first_20_are_shown_and_all_are_counted():
    """A list of thousands helps nobody; the same mistake everywhere is seen in twenty."""
    wrong = "".join(f"        eth{n}: {{cosst: 1}}\n" for n in range(8000))
    refused = refusal(f"ospf:\n  areas:\n    0:\n      interfaces:\n{wrong}")
    assert [error.line for error in refused.errors] == list(range(5, 25))
    assert {error.nearest for error in refused.errors} == {"cost"}
    assert refused.total == 8000
    assert str(refused).splitlines()[20:] == ["and 7,980 more"]


def test_overlapping_globs_of_two_areas_are_one_error_for_each_glob():
    """Not one for each pair of them."""
    globs = {area: {"interfaces": {f"*{area}{n}*": {} for n in range(800)}} for area in ("0", "1")}
    refused = refusal(json.dumps({"ospf": {"areas": globs}}))
    assert refused.total == 800
    assert len(str(refused)) < 5000


@pytest.mark.parametrize("pattern", ["swp{}x*", "*swp{}x", "?{}x*", "*{}[!a]b", "[a-c]{}?"])
def test_many_globs_are_compared_in_time(pattern):
    """Thousands that meet in no name: each is looked up once, not compared with all others."""

    def calls(count: int) -> int:
        keys = [[f'"{pattern.format(n)}": {{}}' for n in range(area, count, 2)] for area in (0, 1)]
        areas = "".join(
            f"    {area}: {{interfaces: {{{', '.join(half)}}}}}\n" for area, half in enumerate(keys)
        )
        with counting_calls() as counted:
            config = load_text(f"ospf:\n  areas:\n{areas}")
        assert len(config.ospf.areas[1].interfaces) == count // 2
        return counted.count

    assert calls(2000) < 5 * calls(500)


def test_globs_that_are_slow_to_compare_are_refused(monkeypatch):
    """Overlapping sets of characters at each place: every beginning goes with many others.

    A tenth of the steps that are made at most, which take some seconds.
    """
    steps = 100_000
    assert 10 * steps >= globs._MAX_STEPS
    monkeypatch.setattr(globs, "_MAX_STEPS", steps)
    rng = random.Random(2)
    sets = ["[ab]", "[bc]", "[cd]", "[ad]", "[ac]", "[bd]", "[abc]", "[bcd]"]
    areas = {
        str(area): {
            "interfaces": {
                "".join(rng.choice(sets) for _ in range(10)) + end: {} for _ in range(1500)
            }
        }
        for area, end in ((0, "x*"), (1, "y*"))
    }
    with counting_calls() as calls:
        (error,) = refusal(json.dumps({"ospf": {"areas": areas}})).errors
    assert error.expected == "globs that are easier to distinguish"
    assert error.got == "too many similar ones"
    assert calls.count < 40 * steps


@pytest.mark.alone
def test_checking_and_comparing_take_time_in_proportion_to_the_interfaces():
    """1,000 and 8,000 interfaces in two areas; CPU seconds, since loops may take them too."""

    def seconds(count: int) -> float:
        text = many_interfaces(count)
        started = time.process_time()
        config, other = load_text(text), load_text(text.replace("cost: 7\n", "cost: 8\n"))
        assert len(diff(config, other)) == count // 100
        return time.process_time() - started

    assert grows_in_proportion(seconds, 1000, 8000)


@pytest.mark.parametrize(
    "name", ["a\x1b[2J", "a\u202eb", "a\x00", "a\nb", "", "x" * 256, "é" * 128]
)
def test_hostnames_that_are_empty_long_or_unprintable_are_refused(name):
    """As a peer's name must be (RFC 5642, RFC 5301), which counts bytes."""
    (error,) = refusal(json.dumps({"hostname": name})).errors
    assert error.path == "hostname"
    assert "a name of" in error.expected


def test_a_key_file_that_others_can_write_gives_a_warning(tmp_path):
    """It is accepted: whose group may write it, the operator knows better."""
    for name, mode in (("mine", 0o600), ("group", 0o620), ("all", 0o602)):
        (tmp_path / name).write_text("secret\n")
        (tmp_path / name).chmod(mode)
    file = tmp_path / "fared.yaml"
    file.write_text(f"""\
ospf:
  areas:
    0:
      interfaces:
        a: {{authentication: {{{MD5}, key-file: {tmp_path}/mine}}}}
        b: {{authentication: {{{MD5}, key-file: {tmp_path}/group}}}}
        c: {{authentication: {{keys: [{{{MD5}, key-file: {tmp_path}/all}}]}}}}
""")
    loaded = load_runnable(file)
    assert loaded.config.ospf is not None
    found = sorted(loaded.warnings, key=lambda warning: warning.line)
    interfaces, what = "ospf.areas[0].interfaces", "is writable by its group or by everybody"
    assert [str(warning) for warning in found] == [
        f"{file}:6:57: {interfaces}.b.authentication.key-file: {tmp_path}/group {what}",
        f"{file}:7:65: {interfaces}.c.authentication.keys[0].key-file: {tmp_path}/all {what}",
    ]


def test_prefix_suppression_of_a_loopback_gives_a_warning(tmp_path):
    """It is: who could reach the router otherwise?"""
    file = tmp_path / "fared.yaml"
    entries = "{lo: {prefix-suppression: true}, swp1: {prefix-suppression: true}}"
    file.write_text(f"ospf: {{areas: {{0: {{interfaces: {entries}}}}}}}\n")
    (warning,) = load_runnable(file).warnings
    assert warning.path == "ospf.areas[0].interfaces.lo.prefix-suppression"
    assert "always advertised" in str(warning)


def test_a_setting_of_isis_that_ospf_overrides_gives_a_warning(tmp_path):
    """Where both run, routes are computed as the section of OSPF says."""
    file = tmp_path / "fared.yaml"
    isis = "isis:\n  net: 49.0001.0102.5500.0001.00\n  max-paths: 2\n"
    isis += "  interfaces: {lo: {}}\n  spf: {holddown: 9s}\n"
    file.write_text(isis)
    assert load_runnable(file).warnings == ()
    file.write_text(isis + "ospf: {max-paths: 4, spf: {holddown: 9s}}\n")
    (warning,) = load_runnable(file).warnings
    assert (warning.line, warning.path) == (3, "isis.max-paths")
    file.write_text(isis + "ospf: {}\n")
    assert [warning.path for warning in load_runnable(file).warnings] == [
        "isis.max-paths",
        "isis.spf",
    ]
    assert "ignored" in str(load_runnable(file).warnings[0])
