"""Upgrade, downgrade, convert or reshape one model, verify the result, and write it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from splitgraph import rewrites
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.findings.diagnostics import ConversionError, Diagnostic
from splitgraph.findings.exit_codes import CLEAN
from splitgraph.findings.outcome import CODES
from splitgraph.formats import DataFile, LoadedModel, is_ir_name, open_model, whole_model
from splitgraph.inference.analysis import IR
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import model_imports, scopes
from splitgraph.options import NO_SIZES, Converting, NewSizes, Running
from splitgraph.verbs import Conversion, in_steps, to_opset, to_sizes
from splitgraph.work.task import FileTask, read_input_shapes, refuse_existing

if TYPE_CHECKING:
    from splitgraph.verification.verification import Verification

# "unchanged": the model is already as wanted. "kept": its opset is beyond the one that is wanted, and the model stays
# as it is; a downgrade with an output copies it there. "refused": the model cannot be converted. "different",
# "not-verified": the result was not written, because of its verification.
RewriteStatus = Literal["converted", "unchanged", "kept", "refused", "different", "not-verified"]
# Shows a text while something takes its time; what is yielded changes the text.
Working = Callable[..., AbstractContextManager[Callable[[str], None]]]

_OTHER_DIRECTION = "SG418"
_ANOTHER_NAME = "pass --in-place to overwrite the model, or another name with -o"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The outcome of a rewrite.

    opset: of the model before. rewrite: the result, None if the model cannot be converted; then `blockers` say why.
    path: of the result. output: the written file, None for none. data_files: the files that the output depends on.
    before: the model. compared: the result in the format of the model, for a comparison with it. seconds_verifying: how
    long both models were run.
    """

    status: RewriteStatus
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
        """Return the IR versions of the model and of the result; None if one of them is no ONNX model."""
        result = None if self.rewrite is None else self.rewrite.model
        if not isinstance(self.before.content, ModelProto) or not isinstance(result, ModelProto):
            return None
        return self.before.content.ir_version, result.ir_version

    @property
    def node_counts(self) -> tuple[int, int] | None:
        """Return how many nodes the model and the result have, with those of subgraphs and functions; None if one of
        them is no ONNX model.
        """
        result = None if self.rewrite is None else self.rewrite.model
        if not isinstance(self.before.content, ModelProto) or not isinstance(result, ModelProto):
            return None
        before, after = (sum(len(scope.nodes) for scope in scopes(model)) for model in (self.before.content, result))
        return before, after

    @property
    def code(self) -> int:
        """Return the exit code."""
        return CODES.get(self.status, CLEAN)


def _unseen(text: str, hint: str = "") -> AbstractContextManager[Callable[[str], None]]:
    return nullcontext(lambda text: None)


def rewrite_file(task: FileTask, working: Working = _unseen) -> Rewritten:
    """Return what became of one model: it is loaded, converted, verified and written. It is written only if all other
    steps succeed. Raises SplitgraphError for a model that cannot be read, and for an output that cannot be written.
    """
    path = task.path()
    assert path is not None
    # A result with a named place is always written; one beside its model only if it differs from the model.
    is_named = task.output.output is not None or task.place is not None
    if is_named:
        _refuse_existing(task, path)
    loaded = rewrites.with_sizes(open_model(task.model, weights="leave"), task.sizes)
    if isinstance(task.wanted, NewSizes):
        shapes = read_input_shapes(task.wanted.shapes, loaded.content)
        task = replace(task, wanted=task.wanted._replace(shapes=shapes))
    opset = model_imports(loaded.content) if isinstance(loaded.content, ModelProto) else {IR: loaded.content.version}
    may_be_unchanged = _may_be_unchanged(task, opset)
    # A model that goes the other way is refused for that reason, and nothing is written.
    if not is_named and not may_be_unchanged and not _goes_the_other_way(task, opset):
        _refuse_existing(task, path)
    rewritten = Rewritten("converted", opset, path, loaded)
    try:
        rewritten = _converted(task, rewritten, working)
    except ConversionError as error:
        if not (_is_beyond(error) and task.output.skip_newer):
            return replace(rewritten, status="refused", blockers=error.diagnostics)
        kept = replace(rewritten, status="kept")
        # Whoever reads the wanted opset also reads the older one of this model.
        is_copied = task.verb == "downgrade" and is_named
        return _written(task, replace(kept, rewrite=_unchanged(loaded))) if is_copied else kept
    if may_be_unchanged and _is_same(task, rewritten):
        unchanged = replace(rewritten, status="unchanged", compared=None)
        return _written(task, unchanged) if is_named else unchanged
    if not is_named:
        _refuse_existing(task, path)
    if task.running.verify is not False:
        rewritten = _verified(rewritten, task.running, working)
    return _written(task, rewritten) if rewritten.status == "converted" else rewritten


def _converted(task: FileTask, rewritten: Rewritten, working: Working) -> Rewritten:
    """Return the outcome with its result, which is IR if its path says so. Raises ConversionError."""
    later = None if task.running.verify is False else task.running
    with working("converting the model") if task.converting.target is not None else _unseen("") as say:
        conversion = _conversion(task, say)
        result = compared = rewrites.rewritten(
            rewritten.before, conversion, task.leeway, NO_SIZES, Running(verify=False), verified_later=later
        )
    if is_ir_name(rewritten.path) and isinstance(result.model, ModelProto):
        result = _as_ir(result, task.model, working)
    return replace(rewritten, rewrite=result, compared=compared)


def _conversion(task: FileTask, say: Callable[[str], None]) -> Conversion:
    """Return what the verb does with a model. say: is told each step of a conversion in a runtime."""
    if isinstance(task.wanted, NewSizes):
        return to_sizes(task.wanted, task.leeway)
    if task.verb == "convert":
        return in_steps(task.wanted, task.leeway, None if task.running.verify is False else task.running, say)
    return to_opset(task.wanted.opset, task.wanted.ir_version, newer=task.verb == "upgrade")


def _is_beyond(error: ConversionError) -> bool:
    """Return True for the refusal of a model whose opset is already beyond the one that is wanted."""
    return [finding.code for finding in error.diagnostics] == [_OTHER_DIRECTION]


def _is_same(task: FileTask, rewritten: Rewritten) -> bool:
    """Return True if the result is the model as it was."""
    before, result = rewritten.before.content, rewritten.rewrite
    assert result is not None
    if result.changes:
        return False
    # IRs cannot be compared. One without a change is the same, but new sizes of inputs are no changes of nodes.
    return result.model == before if isinstance(before, ModelProto) else not isinstance(task.wanted, NewSizes)


def _verified(rewritten: Rewritten, running: Running, working: Working) -> Rewritten:
    """Return the outcome with the verification of its result, and the status that follows from the verdict."""
    result, compared = rewritten.rewrite, rewritten.compared
    assert result is not None
    assert compared is not None
    began = time.monotonic()
    with working("running both models", hint="--no-verify skips this") as say:
        verification = _verification(rewritten.before, compared, result, running, say)
    must_run = bool(running.verify)
    findings = (*result.diagnostics, *verification.findings(must_run=must_run))
    status = rewritten.status
    if verification.verdict == "different":
        status = "different"
    elif verification.verdict == "not-run" and must_run:
        status = "not-verified"
    result = replace(result, verification=verification, diagnostics=findings)
    return replace(rewritten, status=status, rewrite=result, seconds_verifying=time.monotonic() - began)


def _verification(
    loaded: LoadedModel, compared: Rewrite, result: Rewrite, running: Running, say: Callable[[str], None]
) -> Verification:
    """Return the verification of a result. compared: the result before it became IR."""
    if result is compared or compared.new_sizes is None:
        return rewrites.verify_rewrite(loaded, result, running, progress=say)
    # New sizes are compared in the format of the model first, and then with the IR that OpenVINO made of the result.
    sized = rewrites.verify_rewrite(loaded, compared, running, progress=say)
    if sized.verdict != "equal":
        return sized
    before, made = replace(loaded, content=compared.model), replace(result, new_sizes=None)
    imported = rewrites.verify_rewrite(before, made, running._replace(inputs=None), progress=say)
    return sized if imported.verdict == "equal" else imported


def _may_be_unchanged(task: FileTask, opset: Mapping[str, int]) -> bool:
    """Return True if a model with these opsets may already be what the user wants."""
    if task.sizes.bind:
        return False
    wanted_opsets = task.converting.opsets
    if not wanted_opsets or task.converting.target is not None:
        return task.wanted != Converting()
    # A domain that the model does not import has nothing to convert, but the model has an opset of ai.onnx.
    return all(opset.get(domain, wanted if domain else None) == wanted for domain, wanted in wanted_opsets.items())


def _goes_the_other_way(task: FileTask, opset: Mapping[str, int]) -> bool:
    """Return True for an upgrade of a model with these opsets to an older one, and a downgrade to a newer one."""
    if task.verb not in ("upgrade", "downgrade"):
        return False
    pairs = [(opset.get(domain, wanted), wanted) for domain, wanted in task.converting.opsets.items()]
    return any(wanted != own and (wanted > own) != (task.verb == "upgrade") for own, wanted in pairs)


def _unchanged(loaded: LoadedModel) -> Rewrite:
    """Return the rewrite of an ONNX model that changes nothing."""
    opset = model_imports(loaded.model)
    return Rewrite(loaded.content, (), from_opset=opset, to_opset=opset)


def _refuse_existing(task: FileTask, path: Path) -> None:
    if not task.output.in_place:
        # A dry run writes nothing, so that no file is in its way.
        force = task.output.force or task.output.dry_run
        refuse_existing(path, task.model, force=force, advice=_ANOTHER_NAME)


def _written(task: FileTask, rewritten: Rewritten) -> Rewritten:
    """Write the result, except in a dry run."""
    if task.output.dry_run or rewritten.rewrite is None:
        return rewritten
    data_files = task.write(rewritten.rewrite.model, rewritten.path, rewritten.before)
    return replace(rewritten, output=rewritten.path, data_files=data_files)


def _as_ir(result: Rewrite, source: Path, working: Working) -> Rewrite:
    """Return the result as IR, with the changes that OpenVINO needs."""
    from splitgraph.verification.engines.openvino_import import import_onnx

    with working("converting to OpenVINO IR"):
        imported = import_onnx(whole_model(result.model, source))
    return result.then(Rewrite(imported.model, imported.changes, to_opset=result.to_opset))
