"""Rewrites of the committed models: each change that a rewrite tells of is a difference."""

from __future__ import annotations

from pathlib import Path

import pytest
from exported_models import one_of_each

import splitgraph
from splitgraph import api, open_models
from splitgraph.formats import LoadedModel, open_model

MODELS = Path(__file__).parents[2] / "models"
OLDEST, NEWEST = 7, 21


def rewrites(loaded: LoadedModel) -> list[splitgraph.Rewrite]:
    """The model at the oldest opset that it can have, at the newest one, and with its splits in other forms."""
    made = []
    for opset in (*range(OLDEST, loaded.model.opset_import[0].version), NEWEST):
        try:
            made.append(api.convert(loaded, opset=opset))
            break
        except splitgraph.ConversionError:
            continue
    for form in ("slice", "variadic-split"):
        try:
            made.append(api.convert(loaded, form))
        except splitgraph.ConversionError:
            continue
    return made


@pytest.mark.parametrize("path", one_of_each(sorted(MODELS.glob("*.onnx"))), ids=lambda path: path.name)
@pytest.mark.sample(10)
def test_every_change_is_a_difference(path: Path) -> None:
    loaded = open_model(path, weights="leave")
    changes = 0
    for rewrite in rewrites(loaded):
        found = open_models.diff_rewrite(loaded, rewrite)
        forms = [form for node in found.nodes for form in (node.before, node.after) if form is not None]
        locations = {form.location for form in forms}
        assert {change.location for change in rewrite.changes} <= locations
        # A split is told of as it was.
        splits = {(form.location, form.operator) for form in forms if form.is_split}
        told = {(change.location, change.before) for change in rewrite.changes}
        assert {each for each in told if each[1].startswith(("Split-", "StringSplit-", "SplitToSequence-"))} <= splits
        changes += len(rewrite.changes)
        back = splitgraph.diff(rewrite.model, loaded.content)
        assert (len(back.nodes), len(back.values), len(back.parts)) == (
            len(found.nodes),
            len(found.values),
            len(found.parts),
        )
        assert not splitgraph.diff(rewrite.model, rewrite.model)
    # Nothing older or otherwise formed exists of these.
    assert changes or path.name in ("string_split20.onnx", "split_to_sequence24_bfloat16.onnx")
