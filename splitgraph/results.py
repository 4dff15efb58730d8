"""Check results, and write them.

A result with an error that its source does not have is a fault of splitgraph, and is refused.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
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


def require_valid_rewrite(source: Model, rewrite: Rewrite, leeway: Leeway, analysis: Analysis | None = None) -> None:
    """Infer the result of a rewrite. Raises InternalError for an error that the source does not have.

    source: may have been edited in place. analysis: of the result, where it was inferred already.
    """
    if has_new_numbers_only(rewrite):
        return
    if analysis is not None and all(found.severity != "error" for found in analysis.diagnostics):
        return
    # A rewrite moves nodes, so an accepted finding may have another place in the result.
    same = leeway_of(sorted({found.code for found in rewrite.accepted}), leeway.assume_defaults)
    inlined = any(found.code == "SG413" for found in rewrite.diagnostics)
    found = _errors(rewrite.model, same)
    new = _new_errors(rewrite.accepted, found, multiplies=inlined)
    if new and source is not rewrite.model:
        # A new IR version changes no node, so a model with errors may have one.
        new = _new_errors([*rewrite.accepted, *_errors(source, same)], found, multiplies=inlined)
    if new and all(each.code == "SG301" for each in new):
        # A wrongly declared shape blocks nothing: the rewrite keeps it and tells of it.
        told = any(each.code == "SG301" for each in rewrite.diagnostics)
        if told or any(each.code == "SG301" for each in _errors(source, same)):
            return
    _refuse(new)


def has_new_numbers_only(rewrite: Rewrite) -> bool:
    """True where a rewrite changed no node and has nothing to tell: at most the opset and the IR version are others."""
    return not rewrite.changes and not rewrite.diagnostics


def require_valid_types(analysis: Analysis) -> None:
    """Infer a model that inference filled in. Raises InternalError for an error that the first inference did not
    find.
    """
    held = analysis.held
    # Without the weights, which a held model leaves in their file.
    model = held.content if isinstance(held, formats.HeldModel) else formats.open_model(held).content
    known = [*analysis.accepted, *(found for found in analysis.diagnostics if found.severity == "error")]
    same = leeway_of(sorted({found.code for found in analysis.accepted}), assume_defaults=False)
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
    known: Iterable[Diagnostic], found: Sequence[Diagnostic], *, multiplies: bool = False
) -> list[Diagnostic]:
    """The errors beyond those that are known: at each place, or elsewhere as many of a code as have left their places.

    multiplies: an error may be there more often than before, as in the nodes of an inlined function.
    """
    places = {(each.code, each.location) for each in known}
    moved = [each for each in dict.fromkeys(found) if (each.code, each.location) not in places]
    left = Counter(code for code, _ in places - {(each.code, each.location) for each in found})
    new = []
    for each in moved:
        if not left[each.code]:
            new.append(each)
        elif not multiplies:
            left[each.code] -= 1
    return new


def _errors(model: Model, leeway: Leeway) -> list[Diagnostic]:
    found: Iterable[Diagnostic]
    if isinstance(model, ModelProto):
        import_whole("splitgraph.inference")
        from splitgraph.inference import walk_model

        walked = walk_model(model, leeway)
        found = (*walked.diagnostics, *walked.misdeclared, *walked.accepted)
    else:
        import_whole("splitgraph.inference.openvino_ir")
        from splitgraph.inference.openvino_ir import infer_ir

        analysis = infer_ir(model, leeway=leeway, fill=False)
        found = (*analysis.diagnostics, *analysis.accepted)
    return [each for each in found if each.severity == "error"]


def _refuse(errors: Iterable[Diagnostic]) -> None:
    new = list(dict.fromkeys(errors))
    if not new:
        return
    told = "; ".join(f"{found.code} {abridged(found.location)}: {found.message}" for found in new[:_MOST_TOLD])
    more = f"; and {len(new) - _MOST_TOLD} more" if len(new) > _MOST_TOLD else ""
    text = f"the result has an error that the model does not have: {told}{more}"
    raise InternalError(text, [diagnostic("SG603", text, new[0].location, help=_HELP)])
