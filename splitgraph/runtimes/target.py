"""A target: one version of a runtime, the traits of splits that it reads, and its operators. `table/` has the files."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from splitgraph.findings.diagnostics import SplitgraphError, meant
from splitgraph.model.deferred import import_whole

if TYPE_CHECKING:
    from splitgraph.runtimes.layers import LayerTable
    from splitgraph.runtimes.operators import OperatorTable

# How a runtime reads a trait: right results, a refusal, wrong results, right data of another rank, a dead process.
Answer = Literal["reads", "refuses", "wrong", "rank", "dies"]
# From the least harm to the most.
ANSWERS: tuple[Answer, ...] = ("reads", "refuses", "rank", "wrong", "dies")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Traits that a runtime does not read together, the result, and a note in words ("" for none)."""

    traits: frozenset[str]
    answer: Answer
    note: str


@dataclass(frozen=True, slots=True)
class Target:
    """One version of a runtime and what it reads.

    name: as in `--target`. title: the runtime's own name. version: None where the sources are about no single version.
    measured: the date, None where nothing was measured. how: the way it was run. sources: where that is known from
    which was not measured.
    newest_opset, newest_ir_version: the newest that it reads, None for no known limit. reads: traits that are read.
    failures: traits that are not, smallest sets first. What is in neither is not known.
    """

    name: str
    title: str
    version: str | None
    measured: str | None
    how: str
    sources: tuple[str, ...]
    newest_opset: int | None
    newest_ir_version: int | None
    reads: frozenset[str]
    failures: tuple[Refusal, ...]

    @property
    def label(self) -> str:
        """The title with the version: "MNN 3.6.1"."""
        return self.title if self.version is None else f"{self.title} {self.version}"

    @property
    def key(self) -> str:
        """The name with the version, as `--target` takes it: "mnn@3.6.1"."""
        return self.name if self.version is None else f"{self.name}@{self.version}"

    @property
    def operators(self) -> OperatorTable:
        """What the runtime does with every operator. Its file is read when it is asked for."""
        # The names of targets are needed without it, for completion in shells.
        import_whole("splitgraph.runtimes.operators")
        from splitgraph.runtimes.operators import operator_table

        return operator_table(self.key)

    @property
    def layers(self) -> LayerTable:
        """What the runtime does with layers of OpenVINO IR; an empty table for one that does not read IR."""
        import_whole("splitgraph.runtimes.layers")
        from splitgraph.runtimes.layers import layer_table

        return layer_table(self.key)

    @property
    def reads_ir(self) -> bool:
        """Return True for a release of OpenVINO, which reads OpenVINO IR. All targets read ONNX models."""
        return self.name == "openvino"

    def refuses_import(self, domain: str, version: int) -> bool:
        """Return True if the runtime refuses a model that imports an opset of another domain, even if nothing uses
        it.
        """
        return bool(domain) and self.operators.refuses_import(domain, version)

    def failures_of(self, traits: Collection[str]) -> list[Refusal]:
        """Why a node with these traits is not read; empty where nothing is known against it."""
        present = frozenset(traits)
        return [failure for failure in self.failures if failure.traits <= present]

    def gets_another_form(self, traits: Collection[str]) -> bool:
        """Return True for a node that a conversion writes in another form: the target does not read it; or its parts
        go beyond the dimension, which the specification leaves open, and it is not known that the target reads it.
        """
        return bool(self.failures_of(traits)) or ("parts-beyond" in traits and "parts-beyond" not in self.reads)

    def unknown(self, traits: Iterable[str]) -> list[str]:
        """Those of the traits that were not measured."""
        known = self.reads.union(*(failure.traits for failure in self.failures if len(failure.traits) == 1))
        return sorted(set(traits) - known)


# The newest opset that releases of onnxruntime read, from the release on that began with it (docs of onnxruntime,
# "Compatibility"): 1.0 to 1.20.
_OPSETS_OF_ONNXRUNTIME = (
    *(((1, 0), 10), ((1, 1), 11), ((1, 2), 12), ((1, 6), 13), ((1, 8), 14), ((1, 9), 15)),
    *(((1, 11), 16), ((1, 12), 17), ((1, 14), 18), ((1, 15), 19), ((1, 17), 20), ((1, 18), 21)),
)


def targets() -> Mapping[str, Target]:
    """Return every target by name: the newest version of a runtime as "mnn", older ones as "openvino@2023.3.0"."""
    return _table()


def find_target(spec: str) -> Target:
    """Return the target of a name, or of NAME@VERSION; the version may be shortened ("opencv@4"). Raises
    SplitgraphError with the nearest names for an unknown target.
    """
    if not isinstance(spec, str):
        raise SplitgraphError(f"the name of a target is a text such as 'mnn', not {spec!r}")
    name, _, version = spec.partition("@")
    versions = [target for target in _table().values() if target.name == name]
    if not versions:
        near = meant(name, {target.name for target in _table().values()}, most=3)
        raise SplitgraphError(f"there is no target {spec!r}{near}; known are: {', '.join(names())}")
    if not version:
        return versions[0]
    fitting = [target for target in versions if f"{target.version}.".startswith(f"{version}.")]
    if fitting:
        return fitting[0]
    known = ", ".join(target.key for target in versions)
    text = f"version {version} of {name} was not measured; known are: {known}{_opset_advice(name, version)}"
    raise SplitgraphError(text)


def _opset_advice(name: str, version: str) -> str:
    """Return what to use instead of a version of onnxruntime that was not measured: the newest opset that it reads."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if name != "onnxruntime" or len(numbers) < 2 or not (1, 0) <= numbers < (1, 21):
        return ""
    opset = next(opset for since, opset in reversed(_OPSETS_OF_ONNXRUNTIME) if numbers >= since)
    told = f"onnxruntime {numbers[0]}.{numbers[1]} reads opsets up to {opset}"
    return f". {told}: use --opset {opset} instead of the target"


def require_reader(target: Target) -> None:
    """Raise SplitgraphError for a target that does not read OpenVINO IR."""
    if not target.reads_ir:
        text = f"{target.label} reads ONNX models; this is an OpenVINO IR, which only OpenVINO reads"
        raise SplitgraphError(f"{text}: use --target openvino, or the ONNX model that the IR was made from")


def names() -> list[str]:
    """Return the names of all runtimes, without versions."""
    return sorted({target.name for target in _table().values()})


@cache
def _table() -> Mapping[str, Target]:
    folder = files("splitgraph.runtimes").joinpath("table")
    documents = [json.loads(entry.read_text("utf-8")) for entry in folder.iterdir() if entry.name.endswith(".json")]
    known = sorted((read_target(document) for document in documents), key=_newest_first)
    table: dict[str, Target] = {}
    for target in known:
        table[target.name if target.name not in table else target.key] = target
    return MappingProxyType(table)


def _newest_first(target: Target) -> tuple[str, list[int]]:
    numbers = [int(part) for part in (target.version or "0").split(".") if part.isdigit()]
    return target.name, [-number for number in numbers]


def read_target(document: Mapping[str, Any]) -> Target:
    """Return the target that a file of the table describes."""
    reads, failures = set(), []
    for group in ("forms", "modifiers", "types"):
        for trait, answer in document[group].items():
            if answer == "reads":
                reads.add(trait)
            else:
                failures.append(Refusal(frozenset([trait]), answer, document["notes"].get(trait, "")))
    for combination in document["together"]:
        failures.append(Refusal(frozenset(combination["traits"]), combination["answer"], combination.get("note", "")))
    return Target(
        name=document["name"],
        title=document["title"],
        version=document["version"],
        measured=document["measured"],
        how=document["how"],
        sources=tuple(document["sources"]),
        newest_opset=document["newest_opset"],
        newest_ir_version=document["newest_ir_version"],
        reads=frozenset(reads),
        failures=tuple(sorted(failures, key=lambda failure: len(failure.traits))),
    )
