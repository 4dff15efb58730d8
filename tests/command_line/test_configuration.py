"""The table [tool.splitgraph] of pyproject.toml."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from splitgraph.commands.configuration import accepted_texts
from splitgraph.findings.diagnostics import SplitgraphError

TABLE = "[tool.splitgraph]\n"
WRONG = {
    "no TOML": ("[tool.splitgraph", "the file is not TOML"),
    "no text": (b"[tool.splitgraph]\nx = '\xff'", "the file is not TOML"),
    "an unknown key": (f"{TABLE}acept = []", "unknown key 'acept'; did you mean 'accept'?"),
    "a key like none": (f"{TABLE}zzz = 1", "unknown key 'zzz'; known keys: 'accept'"),
    "a text for a list": (f'{TABLE}accept = "SG302"', "must be a list of texts"),
    "numbers": (f"{TABLE}accept = [302]", "must be a list of texts"),
    "no table": ('[tool]\nsplitgraph = "SG302"', "must be a table"),
    "an unknown code": (f'{TABLE}accept = ["SG3o2"]', "there is no code 'SG3o2'; did you mean 'SG302'?"),
    "a code that blocks": (f'{TABLE}accept = ["SG102"]', "SG102 (cycle) cannot be accepted"),
    "values in one another": (f"{TABLE}accept = {'[' * 5000}{']' * 5000}", "nested too deeply"),
    "keys in one another": (f"{TABLE}accept{'.a' * 5000} = 1", "must be a list of texts"),
    "a long number": (f"{TABLE}accept = {'9' * 5000}", "the file is not TOML"),
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


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    """In every folder on the way: a project around it may still have the table."""
    (tmp_path / "pyproject.toml").write_text(f'{TABLE}accept = ["SG302"]')
    inner = tmp_path
    for make in (os.mkdir, os.mkfifo, lambda path: os.symlink(path, path), lambda path: os.symlink("/nothing", path)):
        inner = inner / "inner"
        inner.mkdir()
        make(inner / "pyproject.toml")
    assert accepted_texts((), inner / "no folder") == ("SG302",)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").touch()

    def refused(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(SplitgraphError, match="cannot be read: Permission denied"):
        accepted_texts((), tmp_path)


def test_a_folder_that_may_not_be_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text(f'{TABLE}accept = ["SG302"]')

    def refusing(found: Callable[..., Any]) -> Callable[..., Any]:
        def look(path: Path, **options: bool) -> Any:
            if "private" in path.parent.parts:
                raise PermissionError(13, "Permission denied", str(path))
            return found(path, **options)

        return look

    # Root may search every folder.
    for name in ("stat", "read_bytes"):
        monkeypatch.setattr(Path, name, refusing(getattr(Path, name)))
    assert accepted_texts((), tmp_path / "private" / "inner") == ("SG302",)


def test_a_current_folder_that_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert accepted_texts(("SG302",)) == ("SG302",)


def test_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f'{TABLE}accept = ["SG302"]', encoding="utf-8-sig")
    assert accepted_texts((), tmp_path) == ("SG302",)


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
