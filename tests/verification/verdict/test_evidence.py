"""Equal outputs of models that only run as a whole, which OpenVINO IR does: outputs that show nothing are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from splitgraph.verification.comparison import Comparison
from splitgraph.verification.verdict.evidence import find_silence

F = np.float32
X, OTHER = F([[1, 2]]), F([[3, -4]])
LONGER = F([[1, 2], [5, 6]])
NAN = F([[np.nan, np.inf]])
EMPTY = np.zeros((0, 2), F)


def silence(
    *outputs: Any, inputs: Any = (X, OTHER), varying: set[int] | None = None, **options: Any
) -> tuple[str, str]:
    """Return the code and the text of what is found; each of the outputs holds the values of two cases."""
    places = set(range(len(outputs)))
    cases = [({"x": each}, list(values)) for each, values in zip(inputs, zip(*outputs, strict=True), strict=True)]
    tolerances = {"rtol": 1e-5, "atol": 1e-6, **options}
    found = find_silence(
        "yvw"[: len(outputs)], cases, places if varying is None else varying, places, Comparison(**tolerances)
    )
    return ("", "") if found is None else (found.code, found.message)


TWO_SHAPES = (X, LONGER)
SHOWN: dict[str, tuple[tuple[Any, ...], Any]] = {
    "other numbers": ((X, OTHER), (X, OTHER)),
    "a number beside NaN": ((F([[np.nan, 1]]), F([[np.nan, 2]])), (X, OTHER)),
    "empty in one case, of inputs alike": ((EMPTY, X), (X, OTHER)),
    "another shape of inputs alike": ((X, LONGER), (X, OTHER)),
    "a part that both have": ((X, F([[9, 2], [5, 6]])), TWO_SHAPES),
    "integers": ((np.array([1]), np.array([2])), (X, OTHER)),
    "texts": ((np.array("a", object), np.array("b", object)), (X, OTHER)),
    "sequences of other lengths": (([X], [X, X]), (X, OTHER)),
    "other keys": (({"a": F(1)}, {"b": F(1)}), (X, OTHER)),
}


@pytest.mark.parametrize("name", SHOWN)
def test_outputs_that_show_something(name: str) -> None:
    values, inputs = SHOWN[name]
    assert silence(values, inputs=inputs) == ("", "")


SILENT: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "NaN and infinities": ((NAN, NAN), (X, OTHER), "y holds only NaN or infinity"),
    "empty": ((EMPTY, EMPTY), (X, OTHER), "y is empty"),
    "a number in one case alone": ((NAN, X), (X, OTHER), "y does not change with the inputs"),
    "the same": ((X, X), (X, OTHER), "y does not change with the inputs"),
    "less than the tolerances": ((X, X + F(1e-7)), (X, OTHER), "y does not change with the inputs"),
    "the same but for its shape": ((X, LONGER), TWO_SHAPES, "y does not change with the inputs"),
    "texts": ((np.array("a", object), np.array("a", object)), (X, OTHER), "y does not change with the inputs"),
}


@pytest.mark.parametrize("name", SILENT)
def test_outputs_that_show_nothing(name: str) -> None:
    values, inputs, reason = SILENT[name]
    code, text = silence(values, inputs=inputs)
    assert code == "SG506"
    assert (
        text == f"not verified: all outputs are equal, but on the inputs that were tried they prove nothing: {reason}"
    )


SEVERAL: dict[str, tuple[list[tuple[Any, ...]], str, str]] = {
    "one that does not change": ([(X, OTHER), (X, X)], "SG507", "v does not change with the inputs"),
    "one that is empty": ([(X, OTHER), (EMPTY, EMPTY)], "SG507", "v is empty"),
    "one that is NaN": ([(X, OTHER), (NAN, NAN)], "SG506", "v holds only NaN or infinity"),
    "all": ([(X, X), (X, X)], "SG506", "y, v do not change with the inputs"),
    "two kinds": ([(X, OTHER), (EMPTY, EMPTY), (X, X)], "SG507", "v is empty; w does not change with the inputs"),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_outputs(name: str) -> None:
    outputs, code, reason = SEVERAL[name]
    found, text = silence(*outputs)
    assert found == code
    assert text.endswith(f": {reason}")


def test_what_does_not_depend_on_drawn_inputs_need_not_change() -> None:
    assert silence((X, X), varying=set()) == ("", "")
    assert silence((NAN, NAN), varying=set())[0] == "SG506"


def test_a_tolerance_that_hides_all_shows_nothing() -> None:
    assert silence((X, OTHER), atol=1e30)[0] == "SG506"


def test_names_are_listed_up_to_a_number() -> None:
    names = [f"y{number}" for number in range(7)]
    cases = [({"x": each}, [X] * 7) for each in (X, OTHER)]
    found = find_silence(names, cases, range(7), range(7), Comparison(1e-5, 1e-6))
    assert found is not None
    assert found.message.endswith("y0, y1, y2, y3, y4 and 2 more do not change with the inputs")
