"""Writing reports: text files that are there whole, or not at all."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from splitgraph.formats.atomic_write import WriteTogether
from splitgraph.formats.model_error import model_error, system_reason
from splitgraph.formats.onnx_file import writable_target


def write_text(text: str, path: Path, *, overwrite: bool, kept: Collection[Path] = ()) -> None:
    """Write a text in UTF-8; the folder is made if the path names a new one. kept: files that are not replaced, not
    even with `overwrite`: the models that were read.

    Raises ModelError: SG108 the file exists and overwrite is False, or the file is one of those kept; SG109 the file
    cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with WriteTogether(kept, overwrite=overwrite) as files, files.open(writable_target(path, overwrite)) as file:
            file.write(text.encode("utf-8"))
    except OSError as error:
        raise model_error("SG109", f"cannot be written: {system_reason(error)}", path) from error
