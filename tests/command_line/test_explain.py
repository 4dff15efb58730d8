"""splitgraph explain: what a code means."""

from __future__ import annotations

import json

import pytest

from splitgraph.findings.diagnostics import CODES

from .program import Run


@pytest.mark.parametrize("code", ["SG203", "sg203", " Sg203 "])
def test_explain_a_code(code: str, run: Run) -> None:
    exit_code, out, err = run("explain", code)
    assert (exit_code, err) == (0, "")
    assert out.startswith(f"SG203  {CODES['SG203'].title}\n")
    assert CODES["SG203"].meaning in out
    assert CODES["SG203"].help in out


def test_explain_several_codes(run: Run) -> None:
    code, out, err = run("explain", "203", "SG302", "sg203")
    assert (code, err) == (0, "")
    assert [line[:5] for line in out.splitlines() if line.startswith("SG")] == ["SG203", "SG302"]
    document = json.loads(run("explain", "203", "SG302", "--json")[1])
    assert [(each["code"], each["title"]) for each in document["codes"]] == [
        (code, CODES[code].title) for code in ("SG203", "SG302")
    ]
    assert [each["acceptance"] is None for each in document["codes"]] == [True, False]
    assert len(json.loads(run("explain", "--json")[1])["codes"]) == len(CODES)


def test_explain_lists_all_codes(run: Run) -> None:
    code, out, err = run("explain")
    assert (code, err) == (0, "")
    assert all(code in out for code in CODES)


@pytest.mark.parametrize(
    ("code", "hint"), [("SG299", "did you mean 'SG2"), ("2030", "did you mean 'SG203'"), ("x", "lists all")]
)
def test_explain_an_unknown_code(code: str, hint: str, run: Run) -> None:
    exit_code, out, err = run("explain", code)
    assert (exit_code, out) == (2, "")
    assert err.startswith(f"error: there is no code {code}")
    assert hint in err


@pytest.mark.parametrize("code", ["203", "sg203", " SG203 ", "Sg203"])
def test_explain_a_code_as_people_write_it(code: str, run: Run) -> None:
    assert run("explain", code) == run("explain", "SG203")


@pytest.mark.parametrize("code", ["", " "])
def test_explain_no_code(code: str, run: Run) -> None:
    told = f"error: there is no code {code!r}; 'splitgraph explain' lists all codes [SG601]\n"
    assert run("explain", code) == (2, "", told)
