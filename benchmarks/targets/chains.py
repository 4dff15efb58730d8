"""Which versions of an operator mean the same: factors are measured once for each chain of them.

Versions are of one meaning if what the schemas of both say of attributes, inputs and outputs is the same, and what only
the newer one has may be left out. Where the text of the specification changes without that, the change is named here.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from splitgraph.model.schemas.history import versions_between
from splitgraph.model.schemas.operator_version import Formal, OperatorVersion

OLDEST = 7
# The opsets of most exports: the chain of the version that one of them has is measured with all factors.
_OF_EXPORTS = (17, 11, 18, 13)
# Versions that give the same node another meaning than the one before.
_OTHER_MEANING = frozenset({"RoiAlign-16", "Softmax-13", "LogSoftmax-13", "Hardmax-13"})


def known_versions(operator: str) -> list[OperatorVersion]:
    """The versions of an operator of ai.onnx that an opset from 7 on has, the oldest first."""
    found = sorted(
        (
            version
            for version in versions_between(operator, 1, onnx.defs.onnx_opset_version())
            if not version.deprecated
        ),
        key=lambda version: version.since_version,
    )
    old = [version for version in found if version.since_version <= OLDEST]
    return [*old[-1:], *(version for version in found if version.since_version > OLDEST)]


def chains(operator: str) -> list[list[int]]:
    """The versions of an operator, those of one meaning together."""
    made: list[list[int]] = []
    before: OperatorVersion | None = None
    for version in known_versions(operator):
        if before is not None and _means_the_same(before, version):
            made[-1].append(version.since_version)
        else:
            made.append([version.since_version])
        before = version
    return made


def fully_measured(operator: str) -> list[int]:
    """The versions that are measured with all factors: one for each chain that exports have, at their opsets."""
    versions = [version.since_version for version in known_versions(operator)]
    found: dict[int, int] = {}
    for opset in _OF_EXPORTS:
        at = [version for version in versions if version <= opset]
        if at:
            number = next(index for index, chain in enumerate(chains(operator)) if at[-1] in chain)
            found.setdefault(number, at[-1])
    # An operator that is newer than these is measured in its first version.
    return sorted(found.values()) or versions[:1]


def _means_the_same(old: OperatorVersion, new: OperatorVersion) -> bool:
    if f"{new.op}-{new.since_version}" in _OTHER_MEANING:
        return False
    for name, attribute in old.attributes.items():
        other = new.attributes.get(name)
        if other is None or (other.type, other.default_value) != (attribute.type, attribute.default_value):
            return False
    more = [attribute for name, attribute in new.attributes.items() if name not in old.attributes]
    if any(attribute.required for attribute in more):
        return False
    return _fit(old.inputs, new.inputs) and _fit(old.outputs, new.outputs)


def _fit(old: Sequence[Formal], new: Sequence[Formal]) -> bool:
    if len(new) < len(old) or any(one.option != other.option for one, other in zip(old, new, strict=False)):
        return False
    return all(formal.option == "optional" for formal in new[len(old) :])
