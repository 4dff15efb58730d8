"""Hold the result of a verification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from splitgraph.findings.diagnostics import Diagnostic, diagnostic

if TYPE_CHECKING:
    from splitgraph.runtimes.runners.result import FirstNode

Verdict = Literal["equal", "different", "not-run"]
# The reason of a region that is equal as far as it was compared.
STOPPED = "the time was over before it was compared on all drawn values"
# How the reason of a region begins that is equal at the sizes that there was time for.
UNSEARCHED = "no time for"


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between two models.

    name: of the input or output, "" if the second model failed as a whole. case: the index of the set of inputs, from
    0; None for a difference of the interface or an invalid second model. reason: what differs.
    """

    name: str
    case: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Region:
    """A part of two models that differs: checked alone, on the values that reach it and on drawn values.

    name: the location of its first node. nodes_before, nodes_after: the locations of its nodes in each model. cases: on
    how many sets of values both sides were compared. max_abs_diff: the largest difference of floating-point numbers,
    None if nothing was compared. verdict: "equal", "different" or "not-run". reason: of another verdict than "equal",
    what differs and at which inputs, or why the region could not be checked; of "equal", what the engine computes
    differently from the specification, or that it was not compared on all drawn values or at all sizes; "" for nothing
    to say. is_open: the time was over before all drawn values and sizes were compared. unread: constants that have
    other elements in the second model, which no run read, each with its place.
    """

    name: str
    nodes_before: tuple[str, ...]
    nodes_after: tuple[str, ...]
    cases: int
    max_abs_diff: float | None
    verdict: Verdict
    reason: str = ""
    is_open: bool = False
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """The result of `verify`.

    verdict: "equal" if the outputs are equal and every region was checked and is equal; "different"; or "not-run", also
    if a part that differs could not be checked, or reads constants that differ and no run read (SG506). "equal" is said
    of the sizes in `compared`. engine: the
    engine that ran the cases, "" for none. cases: how many sets of inputs were compared. max_abs_diff, max_rel_diff:
    over all floating-point outputs, 0.0 if they are identical, None if nothing was compared. first_difference: None
    unless different. proofs: locations of the splits whose lengths are symbolically equal, so for every value of every
    dimension. diagnostics: which engines failed and why, and what limits the verdict. providers: what the engine ran
    the models on: execution providers of onnxruntime, devices of OpenVINO; none for the reference evaluator, and if
    nothing was run. regions: the parts that differ, in the order of the first model; none of OpenVINO IR. compared: the
    dimensions of inputs that are numbers in the first model and others in the second one, each with the sizes at which
    there was something to compare with. only_ran: other sizes at which the second model runs; nothing says what it
    should give there. first_node: of one model in two runtimes, the first node at which they part; None if it was not
    found, and of two models.
    """

    verdict: Verdict
    engine: str
    cases: int
    max_abs_diff: float | None
    max_rel_diff: float | None
    first_difference: Difference | None
    proofs: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    providers: tuple[str, ...] = ()
    regions: tuple[Region, ...] = ()
    compared: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    only_ran: tuple[Mapping[str, int], ...] = ()
    first_node: FirstNode | None = None

    def __repr__(self) -> str:
        """Return what a notebook shows: the verdict, what ran, and the first difference."""
        ran = f"{self.cases} cases in {self.engine}, {len(self.regions)} regions" if self.engine else "nothing ran"
        told = filter(None, (self.said, ran, self.difference_text))
        return f"<Verification: {'; '.join(told)}>"

    @property
    def said(self) -> str:
        """The verdict as people read it: "verified equal", "different" or "NOT VERIFIED"; where results could be
        compared at the old size of a dimension alone, that.
        """
        if self.verdict != "equal":
            return "different" if self.verdict == "different" else "NOT VERIFIED"
        lengths = [name for name, sizes in self.compared.items() if len(sizes) == 1]
        if not lengths:
            return "verified equal"
        others = [f"{name} = {_listed(sizes)}" for name, sizes in self.compared.items() if len(sizes) > 1]
        own = f"the old size{'s' * (len(lengths) > 1)}{f' of {_listed(lengths)}' * bool(others)}"
        unknown = "nothing says what it should give"
        ran = f"runs at {self._ran_at()}; {unknown} there" if self.only_ran else f"{unknown} at others"
        return f"equal at {' and '.join([*others, own])}; {ran}"

    def _ran_at(self) -> str:
        names = list(self.only_ran[0])
        if len(names) == 1:
            return f"{names[0]} = {_listed(sizes[names[0]] for sizes in self.only_ran)}"
        return " and at ".join(_listed(f"{name} = {size}" for name, size in sizes.items()) for sizes in self.only_ran)

    @property
    def difference_text(self) -> str:
        """The first difference in a few words; "" without one."""
        first = self.first_difference
        return "" if first is None else ": ".join(filter(None, (first.name, first.reason)))

    def findings(self, *, must_run: bool = False) -> tuple[Diagnostic, ...]:
        """Return the findings about a rewrite that this verification means.

        must_run: without a verdict, the result is refused.
        """
        if self.verdict == "equal":
            return self.warnings
        if self.verdict == "different":
            told = next((finding for finding in self.diagnostics if finding.code == "SG422"), None)
            if told is not None:
                return (told,)
            return (diagnostic("SG502", self.difference_text or "the rewritten model gives another result"),)
        reasons = "; ".join(finding.message for finding in self.diagnostics) or "no engine could run both models"
        cause = next((finding for finding in self.diagnostics if finding.code in ("SG501", "SG506")), None)
        code, help = ("SG501", None) if cause is None else (cause.code, cause.help)
        return (diagnostic(code, reasons, severity="error" if must_run else "warning", help=help),)

    def document(self) -> dict[str, Any]:
        """Return what `verify --json` prints, as docs/reference/schemas/verify.schema.json describes it."""
        from splitgraph.reports.documents.comparisons import verification_json

        return verification_json(self)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings besides the verdict, such as outputs that prove nothing."""
        return tuple(
            finding for finding in self.diagnostics if finding.severity == "warning" and finding.code != "SG503"
        )


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))
