"""Finds the pairs of models in two folders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePosixPath

from splitgraph.batch.sources import Source


def find_pairs(before: Sequence[Source], after: Sequence[Source]) -> list[tuple[str, str | None]]:
    """For each first model the second one, None where there is none: the model at the same path, or else the only one
    beside that path whose name is the first one's with a tag: model.opset18.onnx for model.onnx. A second model belongs
    to the first model with the longest such name.
    """
    exact = {source.relative: source.name for source in after}
    names = {key: source.relative for source in before if source.relative is not None for key in _keys(source.relative)}
    tagged: dict[PurePosixPath, list[str]] = defaultdict(list)
    for source in after:
        untagged = [] if source.relative is None else _without_tags(source.relative)
        owner = next((names[name] for name in reversed(untagged) if name in names), None)
        if owner is not None:
            tagged[owner].append(source.name)
    pairs: list[tuple[str, str | None]] = []
    for source in before:
        found = exact.get(source.relative)
        if found is None and source.relative is not None:
            candidates = [name for name in tagged[source.relative] if name != source.name]
            found = candidates[0] if len(candidates) == 1 else None
        pairs.append((source.name, found))
    return pairs


def _without_tags(path: PurePosixPath) -> list[PurePosixPath]:
    """The names that a name may be a tagged form of: model.opset18 and model, for model.opset18.onnx."""
    parts = path.stem.split(".")
    return [path.with_name(".".join(parts[:length])) for length in range(1, len(parts))]


def _keys(path: PurePosixPath) -> list[PurePosixPath]:
    """What a tagged name without its tags is: the name without its ending, and without the tag of an opset that a
    conversion replaces.
    """
    stem = path.stem
    head, _, tag = stem.rpartition(".")
    known = [stem, head] if head and tag.startswith("opset") else [stem]
    return [path.with_name(name) for name in known]
