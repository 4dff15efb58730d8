"""What to do where no engine compared two models: the help_texts fits the reason."""

from __future__ import annotations

import importlib.util
from importlib import metadata

import pytest
from verifying import verify_models

from splitgraph.verification import help_texts
from splitgraph.verification.engines.engine_process import EngineFailure, EngineRun, Workplace
from splitgraph.verification.help_texts import after_failure, where_engines_fail

from .small_models import model_of, node, split_model, value

REASONS = [
    ("", help_texts.INPUTS),
    ("did not finish within 3 seconds", help_texts.LONGER),
    ("the inputs of 3 cases could not be made in time", help_texts.LONGER),
    ("loading the first model: Failed to construct locale with name:xx_YY", help_texts.LOCALE),
    ("loading the second model: New 'n': No Op registered for New", help_texts.UNKNOWN_OPERATOR),
    ("loading the second model: Fatal error: my:f(-1) is not a registered function/op", help_texts.UNKNOWN_OPERATOR),
    ("loading the first model: Cannot create F layer f id:2 from unsupported opset: x", help_texts.UNKNOWN_OPERATOR),
    ("the library /ops/libfoo.so cannot be loaded: invalid ELF header", help_texts.LIBRARY),
    ("loading the first model: CUDAExecutionProvider does not start here; onnxruntime would", help_texts.PROVIDER),
    (
        "Could not find an implementation for RoiAlign(22) node",
        " lacks RoiAlign-22 for these types: verify at an opset",
    ),
    ("opset 99 is not supported", "Verify at an opset that onnxruntime"),
    ("crashed (SIGSEGV)", " fails on the models: try another version of it."),
]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("not verified: `c` differs at [1], and there was no time to find an input that reads it", help_texts.LONGER),
        ("not verified: `c` differs at [1], and no input was found that reads it", help_texts.INPUTS),
    ],
)
def test_more_time_is_advised_where_time_was_short(reason: str, expected: str) -> None:
    assert help_texts.where_little_shows(reason) == expected


@pytest.mark.parametrize(("reason", "expected"), REASONS)
def test_the_advice_fits_the_reason(reason: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(help_texts, "is_installed", lambda engine: True)
    told = where_engines_fail("onnxruntime", "onnxruntime", reason)
    assert expected in told
    assert "pip install" not in told


@pytest.mark.parametrize("reason", [reason for reason, _ in REASONS])
def test_what_is_not_installed_comes_first(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    told = where_engines_fail("onnxruntime", "reference", reason)
    assert told == "onnxruntime is not installed. Install it: pip install onnxruntime"
    assert "pip install" not in where_engines_fail("reference", "reference", reason)


AFTER_FAILURES = [
    ("onnxruntime", ["reference"], "The next engine was tried."),
    ("openvino", [], "Install it: pip install openvino"),
    ("onnxruntime+openvino", [], "Install it: pip install openvino"),
    ("reference", [], "There was no other engine to try."),
]


@pytest.mark.parametrize(("engine", "others", "told"), AFTER_FAILURES)
def test_only_what_is_true_is_said_of_other_engines(
    engine: str, others: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(help_texts, "is_installed", lambda name: name != "openvino")
    assert after_failure(engine, others) == told


def test_an_engine_under_another_name_goes_without_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(help_texts, "is_installed", lambda engine: True)
    assert where_engines_fail("onnxruntime", "onnxruntime", "aborted").startswith("onnxruntime fails on")


def test_the_engine_that_comes_first_is_what_the_advice_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Workplace, name: str, attempts: object, seconds: float, **options: object) -> EngineRun:
        lacks = "Could not find an implementation for Split(99)" if name == "onnxruntime" else "crashed"
        return EngineRun(failures=[EngineFailure("load", 0, None, True, lacks)])

    monkeypatch.setattr(Workplace, "run", run)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    found = verify_models(split_model(13), split_model(13))
    assert "lacks Split-99" in found.diagnostics[-1].help


WITHOUT_INPUTS = [
    model_of([node("Relu", ["x"], ["y"])], [value("x", (1 << 20, 1 << 20))], ["y"]),
    split_model(13, dims=("N", 4), lengths=[1 << 40, 1 << 40]),
]


@pytest.mark.parametrize("model", WITHOUT_INPUTS)
def test_sizes_that_cannot_be_found_are_to_be_given(model: object) -> None:
    found = verify_models(model, model)
    assert (found.verdict, found.diagnostics[-1].help) == ("not-run", help_texts.INPUTS)
