"""Writes the result of a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from splitgraph.formats import ExternalData, LoadedModel, write

if TYPE_CHECKING:
    from splitgraph.formats import Model


def write_model(
    model: Model, path: Path, loaded: LoadedModel, *, overwrite: bool, external_data: ExternalData | None
) -> None:
    """Write a model. The folder is created if the path names a new folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(model, path, source=loaded, overwrite=overwrite, external_data=external_data)
