"""The outcome of one of many models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from splitgraph.findings.diagnostics import Diagnostic, SplitgraphError, findings_phrase
from splitgraph.findings.exit_codes import CLEAN, FINDINGS, INTERNAL_ERROR, NOT_CHECKED, WRONG_USAGE

Verb = Literal["infer", "upgrade", "downgrade", "convert", "reshape", "check", "verify", "report"]
Status = Literal[
    # infer, check, report
    "clean",
    "findings",
    # upgrade, downgrade, convert, reshape
    "converted",
    "unchanged",
    "kept",
    "refused",
    "not-verified",
    # verify, and "different" of the rewriting verbs, too
    "equal",
    "different",
    "not-run",
    # all
    "failed",
]
VERBS: tuple[Verb, ...] = get_args(Verb)
# Those that make another model.
REWRITING: tuple[Verb, ...] = ("upgrade", "downgrade", "convert", "reshape")
STATUSES: tuple[Status, ...] = get_args(Status)

# The exit code that the command has for one model with this status; "failed" has its own. 0 for others.
CODES: Mapping[Status, int] = {
    "findings": FINDINGS,
    "refused": FINDINGS,
    "different": FINDINGS,
    "not-verified": NOT_CHECKED,
    "not-run": NOT_CHECKED,
    "failed": WRONG_USAGE,
}


# A fault of splitgraph, not of the model.
_OWN_FAULT = "SG603"

# The fields that hold diagnostics.
_FINDINGS = ("diagnostics", "accepted")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one model.

    verb: what was done. model: the source as it was given or found. after: the second model of `verify`, else None.
    status: "clean" or "findings" of infer, check and report; "converted", "unchanged" (the model is as wanted already),
    "kept" (its opset is beyond the one that is wanted, and stays), "refused", "different" or "not-verified" (the
    result was kept back) of the rewriting verbs; "equal", "different" or "not-run" of verify; "failed" where the model
    could not be read, or where its process died, ran out of time or memory.
    diagnostics: every finding; the errors say why a model was refused or failed. accepted: the errors that the caller
    accepts by name. assumed_defaults: the inputs whose defaults a rewrite relies on. output: the file that was
    written, or None. data_files: those that it depends on, and how they came there ("needed", "copied", "linked",
    "written"). opset_before, opset_after: of ai.onnx; None where there is none. splits: how many the model has,
    where the verb counts them. changes: how many nodes were rewritten. verdict, said, engine: of the verification, None
    without one. seconds: how long the model took. files: of each file that was read, the SHA-256 of its content, if
    that was asked for. options: the SHA-256 of the verb, its options and the version of splitgraph.
    """

    verb: Verb
    model: str
    status: Status
    after: str | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    accepted: tuple[Diagnostic, ...] = ()
    assumed_defaults: tuple[str, ...] = ()
    output: str | None = None
    data_files: Mapping[str, str] = field(default_factory=dict)
    opset_before: int | None = None
    opset_after: int | None = None
    splits: int | None = None
    changes: int | None = None
    verdict: str | None = None
    said: str | None = None
    engine: str | None = None
    seconds: float = 0.0
    files: Mapping[str, str] = field(default_factory=dict)
    options: str = ""

    def __repr__(self) -> str:
        """Return what a notebook shows: the verb, the model, what became of it, and how much was found."""
        told = [self.status, f"wrote {self.output}" if self.output else "", findings_phrase(self.diagnostics)]
        return f"<Outcome: {self.verb} {self.model}: {', '.join(filter(None, told))}>"

    @property
    def ok(self) -> bool:
        """True where nothing is wrong: the exit code for this model alone is 0."""
        return self.code == CLEAN

    @property
    def code(self) -> int:
        """The exit code of the command for this model alone."""
        if self.status == "failed" and any(finding.code == _OWN_FAULT for finding in self.diagnostics):
            return INTERNAL_ERROR
        return CODES.get(self.status, CLEAN)

    @property
    def is_unverified(self) -> bool:
        """True where a result was written, or would be, although no engine could run both models."""
        return self.status == "converted" and self.verdict == "not-run"

    def document(self) -> dict[str, Any]:
        """Return the outcome as JSON: a line of the file of `--report`, which `from_document` reads."""
        from splitgraph.reports.documents.outcomes import outcome_json

        return outcome_json(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Outcome:
        """Return the outcome that a document describes: what `document` returned, a line of the file of `--report`, or
        one of the `models` that a command prints of many models with `--json`. Raises SplitgraphError for anything
        else.
        """
        try:
            return cls(**_read(document))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SplitgraphError(f"the document describes no outcome: {type(error).__name__}: {error}") from error


def _read(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an outcome. Raises ValueError, KeyError, TypeError or AttributeError for another
    document.
    """
    values = {name: value for name, value in document.items() if name in Outcome.__dataclass_fields__}
    if values["verb"] not in VERBS or values["status"] not in STATUSES:
        raise ValueError("not a verb, or not a status")
    optional = [values[name] for name in ("after", "output") if values[name] is not None]
    texts = [values["model"], values["options"], *optional]
    files = values["files"]
    if not all(isinstance(text, str) for text in (*texts, *files.keys(), *files.values())):
        raise ValueError("a value that must be text is none")
    values["seconds"] = float(values["seconds"])
    for name in _FINDINGS:
        values[name] = tuple(Diagnostic(**finding) for finding in values[name])
    values["assumed_defaults"] = tuple(values["assumed_defaults"])
    return values
