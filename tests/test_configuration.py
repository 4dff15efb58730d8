"""The table [tool.splitgraph] of pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from splitgraph.configuration import accepted_texts
from splitgraph.diagnostics import SplitgraphError

TABLE = "[tool.splitgraph]\n"
WRONG = {
    "no TOML": ("[tool.splitgraph", "the file is not TOML"),
    "no text": (b"[tool.splitgraph]\nx = '\xff'", "the file is not TOML"),
    "an unknown key": (f"{TABLE}acept = []", "unknown key 'acept'; did you mean 'accept'?"),
    "a key like none": (f"{TABLE}zzz = 1", "unknown key 'zzz'; known keys: 'accept'"),
    "a text for a list": (f'{TABLE}accept = "SG302"', "must be a list of texts"),
    "numbers": (f"{TABLE}accept = [302]", "must be a list of texts"),
    "no table": ('[tool]\nsplitgraph = "SG302"', "must be a table"),
    "an unknown code": (f'{TABLE}accept = ["SG3o2"]', "there is no code 'SG3o2'; did you mean SG302?"),
    "a code that blocks": (f'{TABLE}accept = ["SG102"]', "SG102 (cycle) cannot be accepted"),
    "a location": (f'{TABLE}accept = ["SG302@x"]', "did you mean main/x?"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_what_is_refused(text: str | bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SplitgraphError) as raised:
        accepted_texts((), tmp_path)
    assert str(raised.value).startswith(f"{path}: ")
    assert message in str(raised.value)
    assert [found.code for found in raised.value.diagnostics] == ["SG601"]


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").mkdir()
    with pytest.raises(SplitgraphError, match="cannot be read"):
        accepted_texts((), tmp_path)


@pytest.mark.parametrize("text", [None, "", "[tool.other]\naccept = 1", '[project]\nname = "splitgraph"', TABLE])
def test_nothing_is_accepted(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    assert accepted_texts((), tmp_path) == ()
    assert accepted_texts(("SG302",), tmp_path) == ("SG302",)


def test_the_nearest_table_counts(tmp_path: Path) -> None:
    inner = tmp_path / "one" / "two"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(f'{TABLE}accept = ["SG302", "SG207@main/node"]')
    assert accepted_texts(("SG212",), inner) == ("SG302", "SG207@main/node", "SG212")
    # A project without the table is part of what is around it; a project with an empty one is not.
    (inner / "pyproject.toml").write_text("[tool.ruff]\n# splitgraph\n")
    assert accepted_texts((), inner) == ("SG302", "SG207@main/node")
    (inner / "pyproject.toml").write_text(TABLE)
    assert accepted_texts((), inner) == ()


def test_what_the_call_gives_is_checked_too(tmp_path: Path) -> None:
    with pytest.raises(SplitgraphError, match="there is no code"):
        accepted_texts(("SG3",), tmp_path)
