"""The libraries of the page are those that npm has, and their licences are listed."""

import pytest

from tests.page.vendor import LIBRARIES, ROOT, STATIC, SUMS, checksum

FILES = {name: sum_ for sum_, name in map(str.split, SUMS.read_text().splitlines())}


@pytest.mark.parametrize("name", FILES)
def test_a_library_is_as_it_came_from_npm(name):
    assert checksum(ROOT / name) == FILES[name]


def test_every_file_of_a_library_is_listed_with_its_licence():
    targets = {target for library in LIBRARIES for target in library.files.values()}
    assert {ROOT / name for name in FILES} == targets
    assert {file for file in STATIC.iterdir() if file.is_file()} <= targets
    listed = (STATIC.parent / "licences.txt").read_text()
    for target in targets:
        assert target.parent != STATIC or f"vendor/{target.name}" in listed
