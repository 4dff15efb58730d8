"""The corpus of OpenVINO Split-1 and VariadicSplit-1 cases as IR files: read, and inferred from what they declare.

In the files, the ports of the split itself declare nothing (-1). Right is the tightest sound answer where the corpus
gives one, else what it expects; an interval is compared by its bounds.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from splitgraph.dim import DimLike, Facts
from splitgraph.formats.openvino_ir import load_ir
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.openvino_ir import infer_ir

HERE = Path(__file__).parent
ARCHIVE = HERE.parent / "formats" / "openvino_ir" / "corpus.zip"
CASES: list[dict[str, Any]] = json.loads((HERE / "openvino_cases.json").read_text())["cases"]
# OpenVINO takes no lengths at all for a dimension of 6, and gives no outputs; by the specification, which the case
# quotes, the lengths must sum to the dimension.
INVALID_BY_SPECIFICATION = {"e_vs_lens_zero_count_param"}
INVALID = [case for case in CASES if "outputs" not in case["expected"] or case["id"] in INVALID_BY_SPECIFICATION]
VALID = [case for case in CASES if case not in INVALID]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    return folder


def infer(folder: Path, case: dict[str, Any]) -> Analysis:
    return infer_ir(load_ir(folder / f"{case['id']}.xml"))


def noted(facts: Facts, dim: DimLike | None) -> Any:
    """A dimension as the corpus writes it: a number, [lo, hi], or "?"."""
    if dim is None or isinstance(dim, int):
        return "?" if dim is None else dim
    lowest, most = facts.range_of(dim)
    if lowest == most:
        return lowest
    return "?" if (lowest or 0) <= 0 and most is None else [max(lowest or 0, 0), most]


@pytest.mark.parametrize("case", VALID, ids=lambda case: case["id"])
def test_valid_file(files: Path, case: dict[str, Any]) -> None:
    analysis = infer(files, case)
    assert not analysis.diagnostics
    (split,) = analysis.splits
    facts = Facts(analysis.symbols)
    shapes = [None if known.shape is None else [noted(facts, dim) for dim in known.shape] for _, known in split.outputs]
    assert shapes == (case.get("tightest_sound") or case["expected"]["outputs"])


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case["id"])
def test_invalid_file(files: Path, case: dict[str, Any]) -> None:
    errors = [found for found in infer(files, case).diagnostics if found.severity == "error"]
    assert errors, f"{case['expected']} was not found"
