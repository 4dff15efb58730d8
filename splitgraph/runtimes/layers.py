"""The table of layers: what a release of OpenVINO did with cases of each layer of IR, and what follows for a layer.

The files are like those of `operators.py`: `table/layers/` has one for each release, and `cases.json` with the traits
that the cases have. A layer is named as the IR writes it, operator set and type: "opset8.Gather".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from splitgraph.runtimes.operators import OperatorEntry, read_entry
from splitgraph.runtimes.verdicts import Judged

_FOLDER = files("splitgraph.runtimes").joinpath("table").joinpath("layers")


@dataclass(frozen=True, slots=True)
class LayerTable:
    """What one release of OpenVINO does with layers. measured: the date, None where it was not run. entries: by layer.
    known: the traits of all cases by layer.
    """

    measured: str | None
    entries: Mapping[str, OperatorEntry]
    known: Mapping[str, frozenset[str]]

    def judge(self, layer: str, traits: frozenset[str]) -> Judged:
        """Return what is known of a layer. layer: as `Layer.label`. traits: as `examine_ir` finds them."""
        entry = self.entries.get(layer)
        if entry is None:
            return Judged("unmeasured", f"no case of {layer} was measured")
        return entry.judge(layer, traits, self.known.get(layer, frozenset()))


@cache
def layer_table(key: str) -> LayerTable:
    """Return the table of a target by its key, "openvino@2023.3.0"; an empty one where there is none."""
    file = _FOLDER.joinpath(f"{key}.json")
    if not file.is_file():
        return LayerTable(None, MappingProxyType({}), MappingProxyType({}))
    held = json.loads(file.read_text("utf-8"))
    entries = {name: read_entry(each) for name, each in held["operators"].items()}
    return LayerTable(held["measured"], entries, _known_traits())


@cache
def _known_traits() -> Mapping[str, frozenset[str]]:
    """Return the traits of all cases by layer."""
    held = json.loads(_FOLDER.joinpath("cases.json").read_text("utf-8"))
    return {layer: frozenset(traits) for layer, traits in held.items()}
