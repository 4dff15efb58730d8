"""Writes the result of a command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from splitgraph.formats import DataFile, ExternalData, LoadedModel, write

if TYPE_CHECKING:
    from splitgraph.formats import Model


def write_model(
    model: Model, path: Path, loaded: LoadedModel, *, overwrite: bool, external_data: ExternalData | None
) -> Sequence[DataFile]:
    """Write a model, and return the data files that it depends on. The path may name a new folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write(model, path, source=loaded, overwrite=overwrite, external_data=external_data)
