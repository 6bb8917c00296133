"""``docs/rules.md`` is what ``rules.py`` generates, and reads citations as they are meant."""

import pytest

from tests.docs.rules import PAGE, Reader, Rule, page, rule, rules_of_code, rules_of_tests


def test_the_page_is_current():
    told = "make rules writes it"
    assert PAGE.read_text("utf-8") == page(), told


@pytest.mark.parametrize(
    ("path", "text", "rules"),
    [
        ("", "RFC 2328 §13 (1): the LS checksum", [("RFC 2328", "13 (1)")]),
        ("", "RFC 2328 §8.2, §10.5; ISO 10589 §8.4", "RFC 2328 8.2,RFC 2328 10.5,ISO 10589 8.4"),
        ("", "RFC 8706 §3.3, §3.4.1, which obsoletes RFC 5306; §3.1", "RFC 8706 3.1"),
        ("fared/protocols/ospf/x.py", "RFC 5250 §3; §13.3 (1)(b)", "RFC 2328 13.3 (1)(b)"),
        ("fared/protocols/ospf/x.py", "RFC 3623 §2.1; §2.2", "RFC 3623 2.2"),
        ("fared/protocols/isis/x.py", "RFC 5303 §3.2; §8.2.5.2", "ISO 10589 8.2.5.2"),
        ("", "§13 of nothing", []),
    ],
)
def test_a_section_belongs_to_the_document_that_is_meant(path: str, text: str, rules: object):
    found = list(Reader(path).rules(text))
    if isinstance(rules, str):
        wanted = rules.split(",")
        assert [" ".join(one) for one in found][-len(wanted) :] == wanted
    else:
        assert found == rules


def test_markers_name_sections_or_documents():
    assert rule("RFC 2328 §D.3") == Rule("RFC 2328", "D.3")
    assert rule("RFC 2439") == Rule("RFC 2439", "")
    documents = {one.document for one in (*rules_of_code(), *rules_of_tests())}
    assert all(one.startswith("RFC ") or one == "ISO 10589" for one in documents)
