"""Requests: what their fields must be, and that each is declared whole."""

import click
import pytest

from fared.daemon.people import requests as performed
from fared.extensions.ina.service import requests as of_jobs
from fared.management.api.requests import (
    REQUESTS,
    ConfigApplyRequest,
    DaemonRequest,
    DrainRequest,
    fields_of,
    read,
)
from fared.management.cli.request import given_of, parameters
from fared.management.documents.errors import CommandError

ALL = {**REQUESTS, **of_jobs.REQUESTS}


@pytest.mark.parametrize(
    ("command", "args", "error"),
    [
        ("drain", {"share": 0.5}, "share is for an interface"),
        ("drain", {"interface": "eth0", "share": 1}, "share must be 0 to less than 1"),
        ("drain", {"interface": "eth0", "share": True}, "share must be 0 to less than 1"),
        ("drain", {"interface": "eth0", "share": "0.5"}, "share must be 0 to less than 1"),
        ("drain", {"interface": ""}, "interface must be the name of an interface"),
        ("drain", {"interface": "a" * 16}, "interface must be the name of an interface"),
        ("drain", {"reason": "two\nlines"}, "reason must be one line of at most 200 printable"),
        ("drain", {"reason": "x" * 201}, "reason must be one line of at most 200 printable"),
        ("config-apply", {}, "text must be text"),
        ("config-apply", {"text": "", "confirm": 0.5}, "confirm must be 1 to 86400 seconds"),
        ("config-apply", {"text": "", "confirm": False}, "confirm must be 1 to 86400 seconds"),
        ("config-apply", {"text": "", "confirm": 1e9}, "confirm must be 1 to 86400 seconds"),
        ("config-apply", {"text": "", "confirm": "5m"}, "confirm must be 1 to 86400 seconds"),
        ("config-apply", {"text": 5}, "text must be text"),
        ("config-apply", {"text": "", "comment": "\x1b[2J"}, "comment must be one line"),
        ("config-apply", {"text": "", "comment": 5}, "comment must be one line"),
        ("config-rollback", {"back": 1.5}, "back must be a number"),
        ("record-start", {"directory": "tmp"}, "directory must be an absolute path"),
        ("record-start", {"directory": "/" * 1025}, "directory must be an absolute path"),
        ("record-start", {"size": 1 << 19}, "size must be 1 MiB to 1 TiB, in bytes"),
        ("ina-create", {"name": "a b", "workers": []}, "name must be letters, digits"),
        ("ina-create", {"name": "job", "workers": "10.0.0.1"}, "workers must be a list"),
        ("ina-create", {"name": "job", "workers": ["10.0.0.1"], "mtu": 60}, "mtu must be 576 to"),
        ("ina-delete", {}, "name must be letters, digits"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_it_must_be(command, args, error):
    with pytest.raises(CommandError, match="^" + error) as refused:
        read(ALL[command], args)
    assert refused.value.code == "bad-argument"


def test_arguments_are_read_and_null_is_none():
    asked = read(
        DrainRequest, {"interface": "eth0", "share": 0, "reason": None, "of a later version": 1}
    )
    assert asked == DrainRequest(interface="eth0", share=0.0)
    assert read(ConfigApplyRequest, {"text": "x", "confirm": 60}).confirm == 60.0


@pytest.mark.parametrize("cls", ALL.values(), ids=list(ALL))
def test_each_request_is_performed_and_each_field_says_what_it_must_be(cls: type[DaemonRequest]):
    assert cls.command in performed._PERFORM or cls.command in of_jobs.REQUESTS
    assert cls.__doc__
    assert all(field.value.expected for field in fields_of(cls))


@pytest.mark.parametrize("cls", ALL.values(), ids=list(ALL))
def test_every_field_is_an_option_and_its_text_is_read(cls: type[DaemonRequest]):
    """Flags alone have no text."""
    made = parameters(cls)
    assert [found.name for found in made] == [field.name for field in fields_of(cls)]
    texts = {"PERCENT": "20%", "TIME": "5m", "MIB": "64", "[N]": "2", "INTEGER": "9000"}
    for field, option in zip(fields_of(cls), made, strict=True):
        if field.type is not bool:
            text = texts.get(field.value.metavar, "1.0" if field.value.metavar == "FLOAT" else "x")
            value = option.callback(click.Context(click.Command("x")), option, text)
            assert value is not None


def test_a_share_of_nothing_is_given():
    assert given_of({"share": 0.0, "reason": None}) == {"share": 0.0}


@pytest.mark.parametrize("text", ["20", "100%", "-1%", "x%", "%", "1e1%"])
def test_a_percentage_that_is_none_is_refused(text):
    (share,) = (option for option in parameters(DrainRequest) if option.name == "share")
    with pytest.raises(click.BadParameter, match="is not 0% to 99%"):
        share.callback(click.Context(click.Command("x")), share, text)
