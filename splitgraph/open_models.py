"""Infer, verify and diff on models that are open: the functions of the API share them with the commands."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.formats import HeldModel, LoadedModel, give_back, held, open_model
from splitgraph.model.deferred import import_whole
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.options import Leeway, Running, Sizes
from splitgraph.processes.this_process import collection_paused
from splitgraph.results import save_result

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Rewrite
    from splitgraph.differences import ModelDifference
    from splitgraph.formats.kinds import Source
    from splitgraph.inference.analysis import Analysis
    from splitgraph.verification.verification import Verification


def inferred(loaded: LoadedModel, sizes: Sizes, leeway: Leeway) -> Analysis:
    """Infer a model that is open."""
    opened = loaded.content
    if not isinstance(opened, ModelProto):
        import_whole("splitgraph.inference.openvino_ir")
        from splitgraph.inference.openvino_ir import infer_ir

        analysis_of_ir = infer_ir(opened, sizes, leeway)
        held_ir = give_back(analysis_of_ir.model, loaded)
        return replace(analysis_of_ir, held=held_ir, writer=save_result, source=loaded.name)
    import_whole("splitgraph.inference")
    from splitgraph.inference import infer_model

    analysis = infer_model(opened, sizes, leeway, assumes_nonempty=True, owned=loaded.kind != "onnx")
    return replace(analysis, held=held(analysis.model, loaded), writer=save_result, source=loaded.name)


def compared(before: Source, after: Source, running: Running) -> Verification:
    """Run two models as `running` says, and compare the results. Raises as `verify`."""
    from splitgraph.verification.engines.kept_engines import start_engine

    first, second = open_model(before, weights="leave"), open_model(after, weights="leave")
    if isinstance(first.content, ModelProto) and isinstance(second.content, ModelProto):
        start_engine(running)
    from splitgraph.verification import verify_models

    try:
        return verify_models(first.content, second.content, running, folders=(first.folder, second.folder))
    except ValueError as error:
        raise SplitgraphError(str(error)) from error


def diff_rewrite(before: LoadedModel, rewrite: Rewrite) -> ModelDifference:
    """Compare a model and its rewrite, whose weights may be in the model's files. Raises as `diff`."""
    return diff_opened(before, opened_rewrite(before, rewrite), is_rewrite=True)


def opened_rewrite(before: LoadedModel, rewrite: Rewrite) -> LoadedModel:
    """Return the result of a rewrite as an opened model; its weights may be in the files of the model before."""
    content = rewrite.held.content if isinstance(rewrite.held, HeldModel) else rewrite.held
    kind: Literal["onnx", "openvino"] = "onnx" if isinstance(content, ModelProto) else "openvino"
    return LoadedModel(content, kind, before.path)


@collection_paused()
def diff_opened(before: LoadedModel, after: LoadedModel, *, is_rewrite: bool = False) -> ModelDifference:
    """Compare two models that are open already. is_rewrite: the second was made from the first. Raises as `diff`."""
    import_whole("splitgraph.differences")
    from splitgraph.differences import compare_models

    return compare_models(before, after, is_rewrite=is_rewrite)
