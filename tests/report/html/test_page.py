"""Pages are one file that requests nothing, and take every name as text."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable

import pytest

import splitgraph
from splitgraph.reports.html.changes_page import changes_page
from splitgraph.reports.html.model_page import model_page
from splitgraph.reports.html.page import IndexRow, index_page, json_in_html

from .pages import HOSTILE, page_data, policy, read_page, split_model


def _model() -> str:
    return model_page(splitgraph.infer(split_model(HOSTILE, (HOSTILE, "b"))), HOSTILE, title=HOSTILE)


def _changes() -> str:
    before, after = split_model(HOSTILE), split_model(HOSTILE, axis=0)
    found = splitgraph.diff(before, after)
    return changes_page(splitgraph.infer(before), splitgraph.infer(after), found, (HOSTILE, HOSTILE), title=HOSTILE)


def _index() -> str:
    row = IndexRow(HOSTILE, "failed", link=f"javascript:{HOSTILE}", before=HOSTILE, after=HOSTILE, message=HOSTILE)
    return index_page([row], title=HOSTILE)


PAGES = {"model": _model, "changes": _changes, "index": _index}
pages = pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
# Tags and attributes that load something, and those that run something.
LOADING = {"src", "srcset", "data", "action", "formaction", "poster", "background", "manifest"}


@pages
def test_the_policy_allows_nothing_but_the_page_itself(make: Callable[[], str]) -> None:
    found = policy(make())
    assert found["default-src"] == "'none'"
    assert found["img-src"] == "data:"
    assert found["base-uri"] == found["form-action"] == "'none'"
    assert found["require-trusted-types-for"] == "'script'"
    assert not re.search(r"unsafe|http|\*", " ".join(found.values()))


@pages
def test_the_policy_has_the_hashes_of_script_and_style(make: Callable[[], str]) -> None:
    text = make()
    found = policy(text)
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        [content] = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert found[directive] == f"'sha256-{digest}'"


@pages
def test_no_element_loads_or_runs_anything(make: Callable[[], str]) -> None:
    for tag, attributes in read_page(make()).elements:
        assert tag not in {"img", "iframe", "object", "embed", "base", "b"}
        assert not LOADING.intersection(attributes)
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        if tag == "link":
            assert attributes == {"rel": "icon", "href": "data:,"}


@pages
def test_no_address_of_a_network_is_in_a_page(make: Callable[[], str]) -> None:
    # The namespace of SVG is a name; nothing is requested from there.
    assert set(re.findall(r"\w+://[\w.]+", make())) <= {"http://www.w3.org"}
    assert "sourceMappingURL" not in make()


@pages
def test_a_page_ends_where_it_should(make: Callable[[], str]) -> None:
    text = make()
    assert text.count("</script>") == 2
    assert text.lower().count("<!--") == 0
    assert [tag for tag, _ in read_page(text).elements].count("script") == 2


@pages
def test_the_title_is_text(make: Callable[[], str]) -> None:
    text = make()
    [title] = read_page(text).texts["title#"]
    assert title == page_data(text)["title"]
    assert "</script><img src=x onerror=alert(1)>" in title
    assert title.isprintable()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"a": "</script>"}, '{"a":"\\u003c/script\\u003e"}'),
        (["<!--", "&"], '["\\u003c!--","\\u0026"]'),
        ("é\u2028", '"\\u00e9\\u2028"'),
        ("\ud800", '"\\ud800"'),
        ([1, None, 0.5], "[1,null,0.5]"),
    ],
)
def test_json_in_a_page(data: object, text: str) -> None:
    assert json_in_html(data) == text


def test_json_has_no_numbers_that_browsers_do_not_read() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_in_html(float("nan"))


def test_no_text_in_the_data_turns_the_line_around_or_is_a_control_character() -> None:
    def texts(held: object) -> list[str]:
        if isinstance(held, str):
            return [held]
        if isinstance(held, dict):
            return [text for each in (*held, *held.values()) for text in texts(each)]
        return [text for each in held for text in texts(each)] if isinstance(held, list) else []

    found = texts(page_data(_model()))
    assert any("onerror=alert(1)" in text for text in found)
    assert [text for text in found if not text.isprintable()] == []
