"""Check results, and write them.

A result with an error that its source does not have is a fault of splitgraph, and is refused.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from splitgraph import formats
from splitgraph.findings.diagnostics import Diagnostic, InternalError, abridged, diagnostic
from splitgraph.model.deferred import import_whole
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.options import ExternalData, Leeway, leeway_of

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Rewrite
    from splitgraph.formats import Model
    from splitgraph.inference.analysis import Analysis

_MOST_TOLD = 3
_HELP = "Nothing is written. Please report it, with the model if you can."


def require_valid_rewrite(source: Model, rewrite: Rewrite, leeway: Leeway) -> Rewrite:
    """Infer the result of a rewrite, and return it. Raises InternalError for an error that the source does not have.

    Shapes that the source declares may be wrong, and only the nodes of the result show it: then the result declares
    what is inferred. source: it may have been edited in place.
    """
    if has_new_numbers_only(rewrite):
        return rewrite
    analysis = rewrite.analysis
    if analysis is not None and all(finding.severity != "error" for finding in analysis.diagnostics):
        return rewrite
    # A rewrite moves nodes, so an accepted finding may have another place in the result.
    same = leeway_of(sorted({finding.code for finding in rewrite.accepted}), leeway.assume_defaults)
    inlined = any(finding.code == "SG413" for finding in rewrite.diagnostics)
    errors = _errors(rewrite.model, same)
    new = _new_errors(rewrite.accepted, errors, multiplies=inlined)
    if new and source is not rewrite.model:
        # A new IR version changes no node, so a model with errors may have one.
        new = _new_errors([*rewrite.accepted, *_errors(source, same)], errors, multiplies=inlined)
    if new and all(error.code == "SG301" for error in new):
        # A wrongly declared shape blocks nothing: the rewrite keeps it and tells of it.
        told = any(finding.code == "SG301" for finding in rewrite.diagnostics)
        if told or any(finding.code == "SG301" for finding in _errors(source, same)):
            return rewrite
    if new and isinstance(rewrite.model, ModelProto):
        import_whole("splitgraph.conversion.declared_shapes")
        from splitgraph.conversion.declared_shapes import corrected_result

        before = source if isinstance(source, ModelProto) and source is not rewrite.model else None
        corrected = corrected_result(rewrite.model, before, same)
        if corrected is not None:
            model, told_of = corrected
            return replace(rewrite, held=model, analysis=None, diagnostics=(*rewrite.diagnostics, told_of))
    _refuse(new)
    return rewrite


def has_new_numbers_only(rewrite: Rewrite) -> bool:
    """Return True if a rewrite changed no node and has no finding: at most the opset and the IR version differ."""
    return not rewrite.changes and not rewrite.diagnostics


def require_valid_types(analysis: Analysis) -> None:
    """Infer a model that inference filled in. Raises InternalError for an error that is new."""
    source = analysis.held
    # Without the weights, which a held model leaves in their file.
    model = source.content if isinstance(source, formats.HeldModel) else formats.open_model(source).content
    known = [*analysis.accepted, *(finding for finding in analysis.diagnostics if finding.severity == "error")]
    same = leeway_of(sorted({finding.code for finding in analysis.accepted}), assume_defaults=False)
    _refuse(_new_errors(known, _errors(model, same)))


def save_result(result: Any, path: str | os.PathLike[str], *, external_data: ExternalData | None = None) -> None:
    """Write a model, an Analysis or a Rewrite to a file, as `splitgraph.save` does."""
    # Not asked of the model itself: a gs.Graph answers for what it has not with a line in its log.
    model = getattr(result, "held") if hasattr(type(result), "held") else result  # noqa: B009
    if hasattr(result, "obligations"):
        require_valid_types(cast("Analysis", result))
    if formats.is_ir_name(path) and not isinstance(model, (str, os.PathLike)):
        model = formats.open_model(formats.in_memory(model)).content
        if isinstance(model, ModelProto):
            import_whole("splitgraph.verification.engines.openvino_import")
            from splitgraph.verification.engines.openvino_import import import_onnx

            model = import_onnx(model).model
    formats.save(model, path, external_data=external_data)


def _new_errors(
    known: Iterable[Diagnostic], errors: Sequence[Diagnostic], *, multiplies: bool = False
) -> list[Diagnostic]:
    """Return the new errors. An error is known at its place, or as often elsewhere as errors of its code left their
    places.

    multiplies: an error may occur more often than before, as in the nodes of an inlined function.
    """
    places = {(error.code, error.location) for error in known}
    moved = [error for error in dict.fromkeys(errors) if (error.code, error.location) not in places]
    left = Counter(code for code, _ in places - {(error.code, error.location) for error in errors})
    new = []
    for error in moved:
        if not left[error.code]:
            new.append(error)
        elif not multiplies:
            left[error.code] -= 1
    return new


def _errors(model: Model, leeway: Leeway) -> list[Diagnostic]:
    diagnostics: Iterable[Diagnostic]
    if isinstance(model, ModelProto):
        import_whole("splitgraph.inference")
        from splitgraph.inference import walk_model

        walked = walk_model(model, leeway)
        diagnostics = (*walked.diagnostics, *walked.misdeclared, *walked.accepted)
    else:
        import_whole("splitgraph.inference.openvino_ir")
        from splitgraph.inference.openvino_ir import infer_ir

        analysis = infer_ir(model, leeway=leeway, fill=False)
        diagnostics = (*analysis.diagnostics, *analysis.accepted)
    return [finding for finding in diagnostics if finding.severity == "error"]


def _refuse(errors: Iterable[Diagnostic]) -> None:
    new = list(dict.fromkeys(errors))
    if not new:
        return
    told = "; ".join(f"{error.code} {abridged(error.location)}: {error.message}" for error in new[:_MOST_TOLD])
    more = f"; and {len(new) - _MOST_TOLD} more" if len(new) > _MOST_TOLD else ""
    text = f"the result has an error that the model does not have: {told}{more}"
    raise InternalError(text, [diagnostic("SG603", text, new[0].location, help=_HELP)])
