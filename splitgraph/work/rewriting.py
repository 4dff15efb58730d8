"""Upgrades, downgrades or converts one model, verifies the result, and writes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from splitgraph import api, rewrites
from splitgraph.arguments import refuse_existing, rewritten_path
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.diagnostics import ConversionError, Diagnostic, diagnostic
from splitgraph.exit_codes import CLEAN, FINDINGS, NOT_CHECKED
from splitgraph.formats import DataFile, ExternalData, LoadedModel, is_ir_name, open_model, whole_model
from splitgraph.graph.scopes import model_imports
from splitgraph.inference.analysis import IR
from splitgraph.onnx_proto import ModelProto
from splitgraph.work.files import write_model

if TYPE_CHECKING:
    from splitgraph.formats import Model

RewritingVerb = Literal["upgrade", "downgrade", "convert"]
# "there": the model is as wanted. "beyond": its opset is beyond the one that is wanted. "refused": the model cannot be
# converted. "different", "not-verified": the result was kept back after its verification.
Status = Literal["converted", "there", "beyond", "refused", "different", "not-verified"]
# Shows a text while something takes its time; what is yielded changes the text.
Working = Callable[..., AbstractContextManager[Callable[[str], None]]]

# The keywords that say how two models are run.
RUNNING = ("try_sizes", "inputs", "custom_ops", "providers", "samples", "seed", "engine", "rtol", "atol", "timeout")

_OTHER_DIRECTION = "SG418"
_ANOTHER_NAME = "pass --in-place to overwrite the model, or another name with -o"


@dataclass(frozen=True, slots=True)
class RewriteWork:
    """What a rewriting command does with a model.

    keywords: of the API's verb. output: a file or a folder, None for the default name beside the model. verify: without
    a verdict None writes the result, True does not; False does not verify. running: how the two models are run,
    keywords of `rewrites.verify_rewrite`. dry: write nothing. skips_newer: a model beyond the opset is left as it is.
    place: the file of the result, in a folder that is made if need be; None for what `output` says.
    """

    verb: RewritingVerb
    model: Path
    keywords: Mapping[str, Any]
    output: str | None = None
    in_place: bool = False
    force: bool = False
    external_data: ExternalData | None = None
    verify: bool | None = None
    running: Mapping[str, Any] = field(default_factory=dict)
    dry: bool = False
    skips_newer: bool = False
    place: Path | None = None

    @property
    def opset(self) -> int | None:
        """The new opset; None keeps the model's own."""
        return self.keywords.get("opset")

    @property
    def to(self) -> str | None:
        """The form of the splits; None keeps their form."""
        return self.keywords.get("to")

    @property
    def target(self) -> str | None:
        """The runtime that the model is for."""
        return self.keywords.get("target")

    @property
    def bind(self) -> Mapping[str, int] | None:
        """The sizes that the result gets; an opened model has them already when it is converted."""
        return self.keywords.get("bind")

    @property
    def ir_version(self) -> int | str | None:
        """The new IR version where nothing else is wanted, or "keep"; None where something else is."""
        is_alone = self.opset is None and self.to is None and self.target is None
        return self.keywords.get("ir_version") if is_alone else None

    @property
    def tag(self) -> str:
        """Part of the default output's name: "opset18"."""
        tags = (
            None if self.opset is None else f"opset{self.opset}",
            self.to,
            self.target,
            None if self.ir_version is None else f"ir{self.ir_version}",
        )
        return ".".join(filter(None, tags))

    def path(self) -> Path:
        """The file of the result. Raises SplitgraphError where nothing can be written."""
        if self.place is not None:
            return self.place
        return rewritten_path(self.model, self.output, in_place=self.in_place, tag=self.tag)

    def may_be_there(self, opset: int | None) -> bool:
        """Whether a model with this opset may be what is wanted as it is."""
        if self.bind:
            return False
        if self.target is not None or self.ir_version is not None:
            return True
        return self.to is None and self.opset is not None and self.opset == opset


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What became of a model.

    opset: the model's own. rewrite: the result, None if the model cannot be converted; then `blockers` say why. path:
    of the result. output: the file that was written, None for none. data_files: those that it depends on. before:
    the model. compared: the result in the format of the model, to be compared with the model. seconds_verifying:
    how long both models were run.
    """

    status: Status
    opset: Mapping[str, int]
    path: Path
    before: LoadedModel
    rewrite: Rewrite | None = None
    compared: Rewrite | None = None
    blockers: Collection[Diagnostic] = ()
    output: Path | None = None
    data_files: Sequence[DataFile] = ()
    seconds_verifying: float = 0.0

    @property
    def ir_versions(self) -> tuple[int, int] | None:
        """The IR version of the model and that of the result; None where one of them is no ONNX model."""
        result = None if self.rewrite is None else self.rewrite.model
        if not isinstance(self.before.content, ModelProto) or not isinstance(result, ModelProto):
            return None
        return self.before.content.ir_version, result.ir_version

    @property
    def code(self) -> int:
        """The exit code."""
        return {"refused": FINDINGS, "different": FINDINGS, "not-verified": NOT_CHECKED}.get(self.status, CLEAN)


def _unseen(text: str, hint: str = "") -> AbstractContextManager[Callable[[str], None]]:
    return nullcontext(lambda text: None)


def rewrite_file(work: RewriteWork, working: Working = _unseen) -> Rewritten:
    """Load, rewrite, verify and save; the model is written only if all other steps succeed. Raises SplitgraphError for
    a model that cannot be read, and for an output that cannot be written.
    """
    model, path = work.model, work.path()
    is_named = work.output is not None or work.place is not None
    if is_named:
        _refuse_existing(work, path)
    loaded = rewrites.with_sizes(open_model(model, weights="leave"), work.bind)
    opset = _opset_of(loaded.content)
    may_be_there = work.may_be_there(opset.get(""))
    if not is_named and not may_be_there:
        _refuse_existing(work, path)
    try:
        # Not its content, which the verb would check once more.
        keywords = {name: value for name, value in work.keywords.items() if name != "bind"}
        result = compared = getattr(api, work.verb)(loaded, **keywords)
        if is_ir_name(path) and isinstance(result.model, ModelProto):
            result = _as_ir(result, model, working)
    except ConversionError as error:
        is_beyond = [found.code for found in error.diagnostics] == [_OTHER_DIRECTION]
        status: Status = "beyond" if is_beyond and work.skips_newer else "refused"
        return Rewritten(status, opset, path, loaded, blockers=error.diagnostics)
    if may_be_there and not result.changes and result.model == loaded.content:
        there = Rewritten("there", opset, path, loaded, result)
        return _written(work, there) if is_named else there
    if not is_named:
        _refuse_existing(work, path)
    status = "converted"
    began = time.monotonic()
    if work.verify is not False:
        result, status = _verified(loaded, result, work, working)
    seconds = time.monotonic() - began
    done = Rewritten(status, opset, path, loaded, result, compared, seconds_verifying=seconds)
    return _written(work, done) if status == "converted" else done


def _refuse_existing(work: RewriteWork, path: Path) -> None:
    if not work.in_place:
        refuse_existing(path, work.model, force=work.force, advice=_ANOTHER_NAME)


def _written(work: RewriteWork, done: Rewritten) -> Rewritten:
    """Write the result, except in a dry run."""
    if work.dry or done.rewrite is None:
        return done
    options: Any = {"overwrite": work.force or work.in_place, "external_data": work.external_data}
    data_files = write_model(done.rewrite.model, done.path, done.before, **options)
    return replace(done, output=done.path, data_files=data_files)


def _opset_of(model: Model) -> Mapping[str, int]:
    return model_imports(model) if isinstance(model, ModelProto) else {IR: model.version}


def _as_ir(result: Rewrite, source: Path, working: Working) -> Rewrite:
    """The result as IR, with the changes that OpenVINO needs; a split that changes twice counts as one change."""
    from splitgraph.execution.engines.openvino_import import import_onnx

    with working("converting to OpenVINO IR"):
        imported = import_onnx(whole_model(result.model, source))
    again = {change.location: change for change in imported.changes}
    changes = [
        replace(again.pop(change.location), before=change.before) if change.location in again else change
        for change in result.changes
    ]
    return replace(result, held=imported.model, changes=(*changes, *again.values()))


def _verified(before: LoadedModel, result: Rewrite, work: RewriteWork, working: Working) -> tuple[Rewrite, Status]:
    """The result with its verification, and whether it may be written: only as "converted"."""
    wanted = bool(work.verify)
    with working("running both models", hint="--no-verify skips this") as say:
        verification = rewrites.verify_rewrite(before, result, progress=say, **work.running)
    status: Status = "converted"
    findings = result.diagnostics
    if verification.verdict == "not-run":
        status = "not-verified" if wanted else "converted"
        reasons = "; ".join(d.message for d in verification.diagnostics) or "no engine could run both models"
        cause = next((d for d in verification.diagnostics if d.code in ("SG501", "SG506")), None)
        code_of, help = ("SG501", None) if cause is None else (cause.code, cause.help)
        findings = (*findings, diagnostic(code_of, reasons, severity="error" if wanted else "warning", help=help))
    elif verification.verdict == "different":
        status = "different"
        first = verification.first_difference
        told = () if first is None else filter(None, (first.name, first.reason))
        reason = ": ".join(told) or "the rewritten model gives another result"
        findings = (*findings, diagnostic("SG502", reason))
    else:
        findings = (*findings, *verification.warnings)
    return replace(result, verification=verification, diagnostics=findings), status
