"""What became of a model that was run in a runtime, and the first node at which it went wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from splitgraph.model.scopes import OPERATORS_WITH_BODIES
from splitgraph.runtimes.runners.interpreters import Kind
from splitgraph.runtimes.runners.runner import JobAnswer

RunAnswer = Literal["equal", "different", "refused", "not-installed", "not-run"]
_PYTHON = "--runtime-python PATH"
# Characters of a runtime's words in a sentence.
_MOST_SAID = 200
# How a node fails: it gives other values, or as `JobAnswer`.
NodeAnswer = Literal["wrong", "refuses", "dies", "hangs"]

_FAILS: dict[NodeAnswer, str] = {
    "wrong": "gives other values",
    "refuses": "is refused",
    "dies": "ends the process",
    "hangs": "does not end",
}


@dataclass(frozen=True, slots=True)
class FirstNode:
    """The first node, in graph order, whose result differs or that fails.

    location: "main/Split_4", or "main/call/Split_4" inside of a call of a local function. operator: with its version,
    "Split-13". number, nodes: the place of it, or of the call, among the nodes of the main graph, from 1. answer: what
    happens. said: the runtime's own words, or what differs. alone: whether the node runs right alone, with what it
    reads given in fixed sizes; None if that could not be run. cause: of a node that runs alone, the node that makes
    sizes for it, and with whose results as constants it runs in its place, too; "" for none.
    until: the location of the node that was seen to fail, if that reads a sequence that the first one makes; ""
    otherwise.
    """

    location: str
    operator: str
    number: int
    nodes: int
    answer: NodeAnswer
    said: str
    alone: bool | None
    cause: str = ""
    until: str = ""

    @property
    def told(self) -> str:
        """The node and what happens there, in a few words."""
        text = f"{self.location} ({self.operator}, node {self.number} of {self.nodes}"
        text += f"), or a node up to {self.until}, " if self.until else ") "
        text += _FAILS[self.answer] + (f": {_shortened(self.said)}" if self.said else "")
        if self.alone:
            text += "; alone it is right"
            text += f", and so it is here if the result of {self.cause} is a constant" if self.cause else ""
        has_bodies = self.operator.partition("-")[0] in OPERATORS_WITH_BODIES
        return text + ("; the nodes inside of it were not searched" if has_bodies else "")


@dataclass(frozen=True, slots=True)
class RuntimeRun:
    """What became of a model in a runtime of this machine.

    name, title: of the runtime. version: None if it does not start. python: that it ran in. answer: "equal" to what
    onnxruntime gives without optimizations; "different"; "refused", also if the process died or hung; "not-installed";
    or "not-run": nothing could be compared. cases: how many inputs were compared. said: what differs, the runtime's own
    words, or why nothing was run. first_node: where it goes wrong, None if that was not found. reference: what gave the
    expected results. only_rank: the values are right, and a shape is another one. max_abs_diff: of
    floating-point numbers, None if nothing was compared. first_difference: the output, the number of the inputs from 0,
    and what differs; None for no difference.
    """

    name: str
    title: str
    version: str | None
    python: str
    answer: RunAnswer
    cases: int = 0
    said: str = ""
    first_node: FirstNode | None = None
    reference: str = ""
    only_rank: bool = False
    max_abs_diff: float | None = None
    first_difference: tuple[str, int, str] | None = None

    @property
    def label(self) -> str:
        """The runtime with its version: "OpenCV 4.14.0"."""
        return self.title if self.version is None else f"{self.title} {self.version}"

    @property
    def failed(self) -> bool:
        """Return True if the runtime does not run the model, or computes it wrong."""
        return self.answer in ("different", "refused")

    @property
    def told(self) -> str:
        """What became of it, in a sentence."""
        first = _shortened(self.said) if self.first_node is None else self.first_node.told
        if self.answer == "equal":
            return f"ran here in {self.label}: equal on {self.cases} input" + "s" * (self.cases != 1)
        if self.answer == "different":
            return f"other results here in {self.label}: {first}"
        if self.answer == "refused":
            return f"refused here by {self.label}: {first}"
        return f"not run in {self.label}{', ' if self.answer == 'not-installed' else ': '}{self.said}"


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_SAID else f"{text[: _MOST_SAID - 1]}…"


def not_installed(kind: Kind, python: str, said: str, *, version: str = "", found: str = "") -> RuntimeRun:
    """Return the result for a Python that does not have the runtime. said: what it said. version: that is wanted, ""
    for any. found: the one that is there.
    """
    other = _install(kind, version) if version else f"{kind.install}, or {_PYTHON}"
    if found:
        text = f"which is not installed here ({found} is): {other}"
    # A package that is there and does not start says something else.
    elif "No module named" in said:
        text = f"which is not installed here: {other}"
    else:
        text = f"which does not start here ({said}): {other}"
    title = f"{kind.title} {version}" if version else kind.title
    return RuntimeRun(kind.name, title, None, python, "not-installed", said=text)


def _install(kind: Kind, version: str) -> str:
    """Return how to install a version. In this Python it would replace the runtime that verifies results here."""
    package, *others = kind.packages.split()
    packages = " ".join([f"'{package}=={version}.*'", *others])
    return f"pip install {packages} in another Python, and name that with {_PYTHON}"


def failing(answer: JobAnswer) -> NodeAnswer:
    """Return how a node fails whose job had this answer; one that ran gives other values."""
    answers: dict[JobAnswer, NodeAnswer] = {"refuses": "refuses", "dies": "dies", "hangs": "hangs"}
    return answers.get(answer, "wrong")
