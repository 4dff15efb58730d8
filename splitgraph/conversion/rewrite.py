"""The result of a rewrite: the new model and the list of changes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from splitgraph.findings.diagnostics import Diagnostic, findings_phrase
from splitgraph.formats import HeldModel, in_memory, onnx_model, save_held
from splitgraph.formats.kinds import M_co
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import model_imports
from splitgraph.options import ATOL, ATOL_WRITTEN_OUT, RTOL, RTOL_WRITTEN_OUT, ExternalData, NewSizes

if TYPE_CHECKING:
    from splitgraph.runtimes.runners.result import RuntimeRun
    from splitgraph.verification.verification import Verification


@dataclass(frozen=True, slots=True)
class Change:
    """One node that was rewritten.

    location: graph, subgraphs and node ("main/encoder/Split_4"). before: the operator with its version
    ("Split-13"). after: the operator, of splits with its version ("Split-18"); several operators are joined
    ("Sub, Mul"). why: what made it necessary.
    """

    location: str
    before: str
    after: str
    why: str


def _versions_text(opset: Mapping[str, int]) -> str:
    """Return the versions of domains: "ai.onnx 17, com.microsoft 1"."""
    return ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in opset.items())


class Tolerance(NamedTuple):
    """The largest difference of floating-point results, relative and absolute."""

    rtol: float
    atol: float


class GivenSizes(NamedTuple):
    """The sizes that `reshape` gave a model. items: the new dimensions along which items stand apart. lengths: why they
    do not along others, as people read it. readings: what is taken of numbers that have several (`sizes/search.py`).
    followers: the dimensions that follow from others, by symbol.
    """

    asked: NewSizes
    items: frozenset[str]
    lengths: Mapping[str, str]
    readings: Mapping[Any, int]
    followers: Mapping[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class Rewrite(Generic[M_co]):
    """The result of `upgrade`, `downgrade`, `convert` and `reshape`.

    model: of the kind that went in, converted, put together when it is first asked for; the caller's model is
    unchanged. held, writer, analysis, new_sizes: the parts it is put together from, what `save` calls, what inference
    knows of it where verification is to follow, and the sizes that `reshape` gave it; for this package only. changes:
    every node that was rewritten. diagnostics: warnings and notes (a blocker raises ConversionError instead).
    verification: None unless it was asked for. source: the file that the model was read from, "" for a model in memory.
    from_opset, to_opset: imported version of each domain, before and after.
    rounding: an operator was written as arithmetic with others, so that floating-point results may differ in their last
    bits. accepted: errors of the model that the caller accepts by name; their nodes are unchanged. assumed_defaults:
    the inputs whose defaults were treated as constants (`assume_defaults`), so that the results are equal only while no
    caller replaces one of these. read_by_form: whether nodes were to be read by their form, so that the model itself
    may be one that no runtime reads. fixed_defaults: whether initializers were taken out of the inputs, so that the
    result is equal to the model with its defaults. without_zip_maps: whether outputs that are maps became tensors, so
    that the result is equal to the model without its ZipMap nodes. ran: what became of the result in the runtime that
    it is for; None if it was not to be run there.
    """

    held: M_co | HeldModel[M_co]
    changes: tuple[Change, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    verification: Verification | None = None
    from_opset: Mapping[str, int] = field(default_factory=dict)
    to_opset: Mapping[str, int] = field(default_factory=dict)
    rounding: bool = False
    accepted: tuple[Diagnostic, ...] = ()
    assumed_defaults: tuple[str, ...] = ()
    source: str = ""
    read_by_form: bool = False
    fixed_defaults: bool = False
    without_zip_maps: bool = False
    analysis: Any = field(default=None, compare=False)
    new_sizes: GivenSizes | None = field(default=None, compare=False)
    ran: RuntimeRun | None = None
    # The functions of the API set one that also converts to OpenVINO IR.
    writer: Callable[..., None] = field(default=save_held, compare=False)

    def __repr__(self) -> str:
        """Return what a notebook shows: from where to where, how many changes, and what verification says."""
        before, after = map(_versions_text, (self.from_opset, self.to_opset))
        opsets = before if before == after else f"{before} to {after}"
        said = "not verified" if self.verification is None else self.verification.said
        return f"<Rewrite: {opsets}, {len(self.changes):,} changes, {said}, {findings_phrase(self.diagnostics)}>"

    def then(self, later: Rewrite[M_co]) -> Rewrite[M_co]:
        """Return this rewrite and a later one, which rewrites its result, as one rewrite."""
        return replace(
            self,
            held=later.held,
            changes=tuple(followed_by(self.changes, later.changes)),
            diagnostics=tuple(dict.fromkeys((*self.diagnostics, *later.diagnostics))),
            to_opset=later.to_opset,
            rounding=self.rounding or later.rounding,
            analysis=later.analysis,
            new_sizes=self.new_sizes if later.new_sizes is None else later.new_sizes,
            without_zip_maps=self.without_zip_maps or later.without_zip_maps,
            ran=later.ran,
        )

    @property
    def model(self) -> M_co:
        """The model, of the kind that went in, with all of its weights; they are read when it is first asked
        for. Raises ModelError where the file that they are in was changed.
        """
        model: M_co = in_memory(self.held)
        return model

    @property
    def onnx_model(self) -> ModelProto:
        """The model as a ModelProto, of whatever kind it is: a path needs no cast. Raises ModelError for OpenVINO
        IR.
        """
        return onnx_model(self.model)

    def document(self, output: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Return what the rewriting commands print with `--json`, as docs/reference/schemas/rewrite.schema.json
        describes it; its `model` is `source`. output: the file that the result was saved to; None for a result that was
        not, as with `--dry-run`.
        """
        from splitgraph.reports.documents.rewrites import rewrite_json

        if output is not None:
            return rewrite_json(self, self.source, output=os.fspath(output))
        return rewrite_json(self, self.source, output=None) | {"ok": True, "dry_run": True}

    def save(self, path: str | os.PathLike[str], *, external_data: ExternalData | None = None) -> None:
        """Write the model to a file, as `splitgraph.save` does: weights are copied and never loaded. Raises ModelError
        for what cannot be written.
        """
        self.writer(self, path, external_data=external_data)

    @property
    def verified(self) -> bool | None:
        """True when the result was run and is equal, False when nothing could be compared, None when nobody
        asked.
        """
        return None if self.verification is None else self.verification.verdict == "equal"

    @property
    def tolerance(self) -> Tolerance:
        """How far results may be from the original's, as (rtol, atol): the default, or ten times that where operators
        were written out, whose rounding errors add up over a whole model. Where such a model computes in float16 or
        bfloat16, the verbs themselves allow for these.
        """
        return Tolerance(RTOL_WRITTEN_OUT, ATOL_WRITTEN_OUT) if self.rounding else Tolerance(RTOL, ATOL)


def step(
    model: ModelProto,
    changes: Sequence[Change] = (),
    notes: Sequence[Diagnostic] = (),
    *,
    rounding: bool = False,
    accepted: tuple[Diagnostic, ...] = (),
) -> Rewrite[ModelProto]:
    """Return one step of a conversion, whose result is `model`; `Rewrite.then` joins steps."""
    opset = model_imports(model)
    return Rewrite(model, tuple(changes), tuple(notes), None, opset, opset, rounding, accepted)


def followed_by(earlier: Sequence[Change], later: Sequence[Change]) -> list[Change]:
    """Return the changes of two rewrites, one after the other. A node that both changed is listed once, unless several
    nodes share its name.
    """
    before, after = (Counter(change.location for change in changes) for changes in (earlier, later))
    again = {change.location: change for change in later if before[change.location] == after[change.location] == 1}
    made = []
    for change in earlier:
        last = again.get(change.location)
        if last is not None:
            why = "; ".join(dict.fromkeys((change.why, last.why)))
            change = replace(last, before=change.before, why=why)
        made.append(change)
    return [*made, *(change for change in later if change.location not in again)]
