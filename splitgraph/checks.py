"""What a check of targets looks at: the model as it is, and what becomes of it in a conversion for the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from splitgraph.findings.diagnostics import ConversionError, SplitgraphError
from splitgraph.formats import LoadedModel, open_model
from splitgraph.model.deferred import import_whole
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.options import Leeway, Running

if TYPE_CHECKING:
    from splitgraph.conversion.targets.prepared import Prepared
    from splitgraph.formats.kinds import Source
    from splitgraph.formats.openvino_ir import OpenVINOModel
    from splitgraph.runtimes.advice import Converted
    from splitgraph.runtimes.check import Examined, TargetCheck
    from splitgraph.runtimes.runners.result import RuntimeRun
    from splitgraph.runtimes.target import Target
    from splitgraph.runtimes.target_findings import TargetFindings
    from splitgraph.verification.verification import Verification


def checked(opened: LoadedModel, wanted: Sequence[Target], leeway: Leeway, running: Running) -> TargetFindings:
    """Return what a check for targets says of an open model. If `running.verify` is true, the model is also run in the
    runtimes. Raises SplitgraphError as `examined_model` and `run_target`.
    """
    import_whole("splitgraph.runtimes.check")
    from splitgraph.runtimes.check import check_target, with_run
    from splitgraph.runtimes.target_findings import TargetFindings

    examined = examined_model(opened, leeway, wanted)
    checks = []
    for runtime in wanted:
        if running.verify and not examined.errors:
            installed, ran = run_target(opened, runtime, running)
            checks.append(with_run(check_target(examined, installed), ran))
        else:
            checks.append(check_target(examined, runtime))
    conversions = _Conversions(examined, leeway)
    checks = [with_folded(check, examined, conversions.prepare) for check in checks]
    return TargetFindings(opened.name, examined, checks, conversions)


class _Conversions:
    """What becomes of a model in the conversion for each target. It can be pickled, as the results of a check can."""

    def __init__(self, examined: Examined, leeway: Leeway) -> None:
        self._examined, self._leeway = examined, leeway
        self.prepare = cache(partial(prepared_for, examined, leeway))

    def __call__(self, check: TargetCheck) -> Converted:
        return after_conversion(self._examined, check, self._leeway, self.prepare())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._examined, self._leeway)


def prepared_for(examined: Examined, leeway: Leeway) -> Prepared | None:
    """Return what conversions of a model for several targets share; None for an OpenVINO IR."""
    if examined.ir is not None:
        return None
    import_whole("splitgraph.conversion.targets.convert")
    from splitgraph.conversion.targets.prepared import Prepared

    return Prepared(examined.model, leeway, examined)


def with_folded(check: TargetCheck, examined: Examined, prepare: Callable[[], Prepared | None]) -> TargetCheck:
    """Return a check that also says how the folded model fares, where the target does not read the model as it is. The
    verdict about the model as it is stays.

    prepare: returns what `prepared_for` does; it is called only where folding may help.
    """
    if not check.has_errors or examined.errors:
        return check
    import_whole("splitgraph.runtimes.check")
    from splitgraph.runtimes.check import check_target

    prepared = prepare()
    checked = (
        [(start.source, check_target(start.source, check.target)) for start in prepared.folded] if prepared else []
    )
    if not checked:
        return check
    # The first folding is the exact one, as in a conversion; another one is told where it alone helps.
    after, folded = next((pair for pair in checked if not pair[1].has_errors), checked[0])
    made = {name for node in after.nodes for name in node.node.output if name}
    # The nodes in the way of the target that folding removes.
    gone = [
        answer.node
        for answer, node in zip(check.nodes, examined.nodes, strict=True)
        if answer.answer != "reads" and made.isdisjoint(node.node.output)
    ]
    return check._replace(folded=folded, gone=tuple(gone))


def after_conversion(
    examined: Examined, check: TargetCheck, leeway: Leeway, prepared: Prepared | None = None
) -> Converted:
    """Convert a model for a target, and check the result. check: of the model as it is. prepared: as `prepared_for`."""
    import_whole("splitgraph.runtimes.advice")
    from splitgraph.runtimes.advice import Converted

    if check.runs:
        return Converted(True, ())
    if examined.ir is not None:
        return _ir_after_conversion(examined.ir, check, leeway)
    import_whole("splitgraph.conversion.targets.convert")
    from splitgraph.conversion.targets.convert import checked_conversion
    from splitgraph.conversion.targets.prepared import Prepared

    try:
        _, after = checked_conversion(prepared or Prepared(examined.model, leeway, examined), check.target)
    except ConversionError as refused:
        return Converted(False, refused.diagnostics)
    return Converted(after.runs, after.findings)


def _ir_after_conversion(model: OpenVINOModel, check: TargetCheck, leeway: Leeway) -> Converted:
    """Convert an IR for a target, and check the result."""
    import_whole("splitgraph.conversion.targets.convert_ir")
    from splitgraph.conversion.targets.convert_ir import convert_ir_for_target
    from splitgraph.runtimes.advice import Converted
    from splitgraph.runtimes.check import check_target
    from splitgraph.runtimes.examine_ir import examine_ir

    try:
        rewrite = convert_ir_for_target(model, check.target, leeway)
    except ConversionError as refused:
        return Converted(False, refused.diagnostics)
    after = check_target(examine_ir(rewrite.model, leeway), check.target)
    return Converted(after.runs, after.findings)


def run_target(opened: LoadedModel, target: Target, running: Running) -> tuple[Target, RuntimeRun]:
    """Run a model in the runtime of a target; return what became of it, and the target. If the caller asked for no
    version, this is the target of the version that is here.

    Raises SplitgraphError for a Python that does not exist, and for inputs that do not fit.
    """
    import_whole("splitgraph.verification.in_runtime.run")
    from splitgraph.runtimes.runners.interpreters import KINDS
    from splitgraph.runtimes.runners.result import RuntimeRun
    from splitgraph.verification.in_runtime.run import run_in_runtime

    kind, model = KINDS.get(target.name), opened.content
    unable = RuntimeRun(target.name, target.title, None, "", "not-run")
    if kind is None:
        return target, replace(unable, said=f"there is no runner for it; there are some for {', '.join(KINDS)}")
    if not isinstance(model, ModelProto):
        return target, replace(unable, said="nothing else runs an OpenVINO IR, so there is nothing to compare with")
    try:
        ran = run_in_runtime(model, kind, running, folder=opened.folder, version=target.asked)
    except ValueError as error:
        raise SplitgraphError(str(error)) from error
    return target.as_installed(ran.version), ran


def verify_in(source: Source, names: Sequence[str], running: Running) -> Verification:
    """Run a model in two runtimes, and compare their results. names: of the runtimes, as of targets. Raises
    SplitgraphError for names of no runtimes that have a runner, a model that is no ONNX model, and as `run_target`.
    """
    import_whole("splitgraph.verification.in_runtime.between")
    from splitgraph.runtimes.runners.interpreters import KINDS
    from splitgraph.runtimes.target import find_target
    from splitgraph.verification.in_runtime.between import verify_between

    if isinstance(names, str) or len(names) != 2:
        raise SplitgraphError('give two runtimes to compare between, such as ["onnxruntime", "openvino"]')
    targets = [find_target(name) for name in names]
    for target in targets:
        if target.name not in KINDS:
            raise SplitgraphError(f"there is no runner for {target.title}; there are some for {', '.join(KINDS)}")
    opened = open_model(source, weights="leave")
    if not isinstance(opened.content, ModelProto):
        raise SplitgraphError("only OpenVINO runs an OpenVINO IR; runtimes are compared on ONNX models")
    try:
        pair = [(KINDS[target.name], target.asked) for target in targets]
        return verify_between(opened.content, pair, running, opened.folder)
    except ValueError as error:
        raise SplitgraphError(str(error)) from error


def examined_model(model: Source | LoadedModel, leeway: Leeway, wanted: Sequence[Target] = ()) -> Examined:
    """Return a model as checks of targets see it. Raises SplitgraphError for an OpenVINO IR that one of the targets
    does not read.
    """
    import_whole("splitgraph.runtimes.check")
    from splitgraph.runtimes.check import examine
    from splitgraph.runtimes.target import require_reader

    opened = open_model(model, weights="leave").content
    if isinstance(opened, ModelProto):
        return examine(opened, leeway)
    for target in wanted:
        require_reader(target)
    import_whole("splitgraph.runtimes.examine_ir")
    from splitgraph.runtimes.examine_ir import examine_ir

    return examine_ir(opened, leeway)
