"""The documents of the rewriting commands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from splitgraph.reports.documents.comparisons import comparison_json
from splitgraph.reports.documents.parts import Document, diagnostics_json
from splitgraph.reports.documents.skeletons import command_document
from splitgraph.reports.documents.targets import run_json

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Rewrite
    from splitgraph.formats import DataFile


def rewrite_json(
    rewrite: Rewrite, model_name: str, *, output: str | None, data_files: Iterable[DataFile] = ()
) -> Document:
    """Return what a rewriting command prints with `--json`. output: the file that was written, None when it was kept
    back. data_files: those that it depends on.

    `verified`: true when the result was run and is equal, false for any other outcome, null with --no-verify.
    """
    return command_document(
        "convert",
        ok=output is not None,
        model=model_name,
        output=output,
        data_files=data_files_json(data_files),
        **{"from": dict(rewrite.from_opset)},
        to=dict(rewrite.to_opset),
        changes=[
            {"location": change.location, "before": change.before, "after": change.after, "why": change.why}
            for change in rewrite.changes
        ],
        diagnostics=diagnostics_json(rewrite.diagnostics),
        accepted=diagnostics_json(rewrite.accepted),
        assumed_defaults=list(rewrite.assumed_defaults),
        verified=rewrite.verified,
        ran=run_json(rewrite.ran),
        verification=None if rewrite.verification is None else comparison_json(rewrite.verification),
    )


def data_files_json(data_files: Iterable[DataFile]) -> list[Document]:
    """Return the files that a written model depends on."""
    return [{"path": str(data_file.path), "how": data_file.how} for data_file in data_files]
