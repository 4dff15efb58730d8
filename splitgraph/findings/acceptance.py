"""Findings that a user accepts by name: how an acceptance is written, and the codes that can be accepted at all.

The rule: a finding can be accepted if it concerns one node that is no split, and if neither the meaning of other nodes
nor the conversion depends on that node. Whether a code can meet the rule is decided here. The rest is decided where the
node is known: inference (`inference/accepted.py`) refuses splits, calls, and nodes with subgraphs; conversion
(`Plan.needed`) refuses nodes that it has to change. Nothing is concluded from the node of an accepted finding, as if
its operator were unknown.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from splitgraph.findings.diagnostics import CODES, Diagnostic, SplitgraphError, diagnostic, meant, nearest

# Every rewriting command writes the only reading of such a split, so that the finding is in no conversion's way.
REPAIRED = frozenset({"SG207"})
_KEPT = "The node stays as it is, and nothing is concluded from it."
ACCEPTABLE = {
    "SG207": "The split has only one reading, which every rewriting command writes. A split without such a reading "
    "cannot be accepted.",
    "SG212": _KEPT,
    "SG214": f"{_KEPT} The opset cannot change then, because the meaning of the node at its opset is unknown.",
    "SG301": f"{_KEPT} Neither the declared nor the inferred type is believed.",
    "SG302": _KEPT,
}
# Of no severity but "warning" and "info".
_NEVER_BLOCKING = frozenset(
    {
        *("SG112", "SG113", "SG219", "SG220", "SG303", "SG305", "SG306"),
        *("SG401", "SG413", "SG414", "SG415", "SG416", "SG504", "SG505", "SG507", "SG508", "SG511", "SG606"),
    }
)
# By the first digit of a code, why its findings cannot be accepted.
_REASONS = {
    "1": "the finding leaves the meaning of the whole graph or file open",
    "2": "a split that cannot be read cannot be converted",
    "3": "the finding is about the sizes that the call gives, not about the model",
    "4": "the conversion needs what the finding says is missing",
    "5": "the finding is about the comparison of two models, which --no-verify leaves out",
    "6": "the finding is about the call, not about the model",
    "7": "a conversion for a target has to change what the target does not read",
    "8": "the finding is about this installation, not about the model",
}
_FORM = "CODE or CODE@LOCATION, such as SG302 or SG302@main/node"


class Acceptance(NamedTuple):
    """A finding that the user accepts.

    location: of the finding; one that ends in "/*" stands for everything below it; None for every location. node: the
    node, where it is known: the steps to it from the outermost graph, none of which changes when a conversion moves
    nodes.
    """

    code: str
    location: str | None = None
    node: tuple[Hashable, ...] = ()

    def __str__(self) -> str:
        return self.code if self.location is None else f"{self.code}@{self.location}"

    def reaches(self, finding: Diagnostic) -> bool:
        """Return True for a finding of this code at this location."""
        if finding.code != self.code:
            return False
        wanted = self.location
        if wanted is None or finding.location == wanted:
            return True
        return wanted.endswith("/*") and finding.location.startswith(wanted[:-1])


def why_not(code: str) -> str | None:
    """Return why findings of a code cannot be accepted; None if they can be."""
    if code in ACCEPTABLE:
        return None
    if code in _NEVER_BLOCKING:
        return "the finding is never an error, so it blocks nothing"
    return _REASONS[code[2]]


def acceptance_text(code: str) -> str:
    """Return a sentence that says whether findings of a code can be accepted, and why."""
    reason = why_not(code)
    return f"yes. {ACCEPTABLE[code]}" if reason is None else f"no; {reason}."


def parse_acceptances(texts: Iterable[str]) -> tuple[Acceptance, ...]:
    """Return the acceptances that a user wrote, each once. Raises SplitgraphError (SG601) for anything but a sequence
    of texts, a text of another form, an unknown code, and a code that cannot be accepted.
    """
    if isinstance(texts, str):
        raise wrong_acceptance(f"accept is the text {texts!r}; it must be a sequence of texts, such as [{texts!r}]")
    if not isinstance(texts, Iterable):
        text = f"accept is {texts!r}; it must be a sequence of texts, such as ['SG302'], and () for none"
        raise wrong_acceptance(text)
    return tuple(dict.fromkeys(map(_parsed, texts)))


def _parsed(text: str) -> Acceptance:
    if not isinstance(text, str):
        raise wrong_acceptance(f"accept has {text!r}; each entry must be a text, {_FORM}")
    code, sign, location = text.strip().partition("@")
    if code not in CODES:
        raise wrong_acceptance(f"accept {text!r}: there is no code {code!r}{_close(code)}")
    reason = why_not(code)
    if reason is not None:
        raise wrong_acceptance(f"accept {text!r}: {code} ({CODES[code].title}) cannot be accepted: {reason}")
    fault = _fault_of(location) if sign else None
    if fault is not None:
        raise wrong_acceptance(f"accept {text!r}: {fault}. Write {_FORM}; the location is that of the finding")
    return Acceptance(code, location if sign else None)


def _fault_of(location: str) -> str | None:
    if not location or location.isspace():
        return "the location after @ is empty"
    graph = location.partition("/")[0]
    if graph == "main" or "::" in location:
        return "the location is a graph, not a node of it" if graph == location == "main" else None
    close = f"did you mean main/{location.lstrip('/')}?" if graph else "did you leave out main?"
    return f"the location {location!r} begins neither with main/ nor with a function (DOMAIN::NAME/); {close}"


def _close(code: str) -> str:
    same = [known for known in CODES if known.lower() == code.lower()]
    near = meant(code, same or ACCEPTABLE) or meant(code, CODES)
    return f"{near}; codes that can be accepted are {', '.join(ACCEPTABLE)}"


def stale(accept: Acceptance, errors: Iterable[Diagnostic], nodes: Iterable[str] = ()) -> Diagnostic:
    """Return the note for an acceptance that no error of the model needs. errors: those of the model. nodes: the
    locations of its nodes.
    """
    where = "" if accept.location is None else f" at {accept.location}"
    text = f"{accept} was accepted, but the model has no error {accept.code}{where}"
    places = [finding.location for finding in errors if finding.code == accept.code]
    close = nearest(accept.location or "", places, cutoff=0.0)
    if not close and accept.location is not None:
        locations = set(nodes)
        close = [] if accept.location.removesuffix("/*") in locations else nearest(accept.location, locations)
    return diagnostic("SG606", f"{text}; did you mean {accept.code}@{close[0]}?" if close else text, severity="info")


def wrong_acceptance(message: str) -> SplitgraphError:
    """Return the error of an acceptance that is not allowed."""
    return SplitgraphError(message, [diagnostic("SG601", message)])
