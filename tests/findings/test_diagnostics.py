"""The table of diagnostic codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import splitgraph
from splitgraph.findings.codes import CODES, SECTIONS


@pytest.mark.parametrize(("number", "section"), list(enumerate(SECTIONS, start=1)))
def test_the_first_digit_of_a_code_says_its_section(number: int, section: str) -> None:
    codes = list(SECTIONS[section])
    assert [code for code in codes if not re.fullmatch(rf"SG{number}\d\d", code)] == []
    assert codes == sorted(codes)


def test_every_code_is_in_one_section() -> None:
    assert len(CODES) == sum(map(len, SECTIONS.values()))


def test_every_code_is_given_somewhere() -> None:
    package = Path(splitgraph.__file__).parent
    sources = [path for path in package.rglob("*.py") if path.parent.name != "code_tables"]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    assert [code for code in CODES if f'"{code}"' not in text] == []
