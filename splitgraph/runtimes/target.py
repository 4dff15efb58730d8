"""A target: one version of a runtime, with its limits and its table of operators. `table/` has the files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from splitgraph.findings.diagnostics import SplitgraphError, meant
from splitgraph.model.deferred import import_whole
from splitgraph.model.schemas.table import minimum_ir_version
from splitgraph.runtimes.names import leading_numbers, nearest, newest_opset_of, plain_name

if TYPE_CHECKING:
    from splitgraph.runtimes.layers import LayerTable
    from splitgraph.runtimes.measured import MeasuredTable
    from splitgraph.runtimes.node_traits import Kind
    from splitgraph.runtimes.operators import OperatorTable
    from splitgraph.runtimes.verdicts import Judged

# Of kinds of nodes that a run has shown to fail.
FAILED_HERE = "it fails when the model is run here"


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """One version of a runtime and what it reads.

    name: as in `--target`. title: the runtime's own name. version: None where the sources are about no single version.
    measured: the date, None where nothing was measured. how: the way it was run. sources: where that is known from
    which was not measured.
    newest_opset, newest_ir_version: the newest that it reads, None for no known limit. asked: the version that the
    caller asked for, as typed; "" for none. failed_here: kinds of nodes that failed when they were run, which counts
    for more than the table (see `check.failing`): their labels, the traits of their operators, and their factors if
    only these count.
    refuses_unnamed: it refuses an input with a dimension that has neither a size nor a name. refuses_untrue_shapes: it
    believes what a model declares of inner values, and refuses the model where that does not hold. mixes_up_constants:
    it may take several nodes that share a constant for one, and refuse them or compute other values.
    """

    name: str
    title: str
    version: str | None
    measured: str | None
    how: str
    sources: tuple[str, ...]
    newest_opset: int | None
    newest_ir_version: int | None
    asked: str = field(default="", compare=False)
    failed_here: frozenset[tuple[str, frozenset[str], Kind | None]] = frozenset()
    refuses_unnamed: bool = False
    refuses_untrue_shapes: bool = False
    mixes_up_constants: bool = False

    def __repr__(self) -> str:
        """Return what a notebook shows: the name with its version, and the newest opset that it reads."""
        opset = "" if self.newest_opset is None else f", up to opset {self.newest_opset}"
        return f"<Target: {self.key}{opset}>"

    @property
    def is_measured_version(self) -> bool:
        """Return False if this version stands for another one, which was asked for and not measured."""
        return not self.asked or f"{self.version}.".startswith(f"{self.asked}.")

    @property
    def label(self) -> str:
        """The title with the version: "MNN 3.6.1"."""
        return self.title if self.version is None else f"{self.title} {self.version}"

    @property
    def key(self) -> str:
        """The name with the version, as `--target` takes it: "mnn@3.6.1"."""
        return self.name if self.version is None else f"{self.name}@{self.version}"

    def as_installed(self, version: str | None) -> Target:
        """Return the target that says most about a version that is here: this one if the caller asked for a version, or
        none is here.
        """
        numbers = leading_numbers(version or "")
        if self.asked or not numbers:
            return self
        try:
            return find_target(f"{self.name}@{numbers}")
        except SplitgraphError:
            # It is older than all that were measured.
            return self

    @property
    def operators(self) -> OperatorTable | MeasuredTable:
        """What the runtime does with every operator. Its file is read when it is asked for."""
        # The names of targets are needed without it, for completion in shells.
        import_whole("splitgraph.runtimes.operators")
        from splitgraph.runtimes.operators import operator_table

        return operator_table(self.key)

    def judge(self, label: str, traits: frozenset[str], kind: Kind) -> Judged:
        """Return what the runtime does with a node. label: its operator and version. traits: of its operator. kind: its
        factors.
        """
        if not self.failed_here.isdisjoint([(label, traits, None), (label, traits, kind)]):
            import_whole("splitgraph.runtimes.verdicts")
            from splitgraph.runtimes.verdicts import Judged

            return Judged("refuses", FAILED_HERE)
        return self.operators.judge(label, traits, kind)

    def judge_version(self, label: str, traits: frozenset[str], kind: Kind) -> Judged:
        """Return what the runtime would do with a node, as if it were of this version of its operator."""
        return self.operators.judge_version(label, traits, kind)

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


def targets() -> Mapping[str, Target]:
    """Return every target by name: the newest version of a runtime as "mnn", older ones as "openvino@2023.3.0"."""
    return _table()


def find_target(spec: str) -> Target:
    """Return the target of a name, or of NAME@VERSION. The name may be written as people write it ("TensorRT", "ort");
    the version may be shortened ("opencv@4"). For a version that was not measured it is the nearest older one that was
    (see `names.nearest`), whose `asked` says so. Raises SplitgraphError with the nearest names for an unknown target.
    """
    if not isinstance(spec, str):
        raise SplitgraphError(f"the name of a target is a text such as 'mnn', not {spec!r}")
    typed, _, version = spec.partition("@")
    name = plain_name(typed, names())
    versions = [target for target in _table().values() if target.name == name]
    if not versions:
        near = meant(typed.lower(), {target.name for target in _table().values()}, most=3)
        raise SplitgraphError(f"there is no target {spec!r}{near}; known are: {', '.join(names())}")
    if not version:
        return versions[0]
    fitting = [target for target in versions if f"{target.version}.".startswith(f"{version}.")]
    if fitting:
        return replace(fitting[0], asked=version)
    near_version = nearest(name, version, [target.version for target in versions if target.version])
    if near_version is None:
        known = ", ".join(target.key for target in versions)
        raise SplitgraphError(f"version {version} of {name} was not measured; known are: {known}")
    return _standing_for(version, next(target for target in versions if target.version == near_version), versions)


def _standing_for(version: str, target: Target, versions: Sequence[Target]) -> Target:
    """Return a measured version that stands for another one. The newest opset and IR version that this reads may be
    those of the next measured version.
    """
    opset = newest_opset_of(target.name, version)
    if opset is not None:
        return replace(target, asked=version, newest_opset=opset, newest_ir_version=minimum_ir_version(opset))
    later = versions[max(versions.index(target) - 1, 0)]
    is_newest = later is target
    return replace(
        target,
        asked=version,
        newest_opset=None if is_newest else _larger(target.newest_opset, later.newest_opset),
        newest_ir_version=None if is_newest else _larger(target.newest_ir_version, later.newest_ir_version),
    )


def _larger(one: int | None, other: int | None) -> int | None:
    """Return the larger one of two limits; None is no limit."""
    return None if one is None or other is None else max(one, other)


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
    return Target(
        name=document["name"],
        title=document["title"],
        version=document["version"],
        measured=document["measured"],
        how=document["how"],
        sources=tuple(document["sources"]),
        newest_opset=document["newest_opset"],
        newest_ir_version=document["newest_ir_version"],
        refuses_unnamed=document["unnamed_dimensions"] == "refuses",
        refuses_untrue_shapes=document["untrue_shapes"] == "refuses",
        mixes_up_constants=document["shared_constants"] == "refuses",
    )
