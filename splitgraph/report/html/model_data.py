"""The data of a model's page: its graphs, splits, findings and conditions as one compact JSON document.

Every text is safe to display: control characters are written as escapes. The page sets texts as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import splitgraph
from splitgraph.diagnostics import Diagnostic
from splitgraph.dim import Dim, symbols_of
from splitgraph.formats import HeldModel, open_model
from splitgraph.graph.scopes import MAIN
from splitgraph.inference.analysis import IR, Analysis, SplitReport
from splitgraph.onnx_proto import ModelProto
from splitgraph.report.html.graph_data import Graphs, GraphSources, Table, read_graphs
from splitgraph.report.html.split_data import KINDS, bar_weights, operator_label, rest_parts
from splitgraph.report.text import dim_text, opset_text, printable
from splitgraph.value_type import ValueType

Document = dict[str, Any]


class ModelData(NamedTuple):
    """document: everything that a page shows of a model. places: graph and index of each node, by location."""

    document: Document
    places: Mapping[str, tuple[int, int]]


def model_data(analysis: Analysis, name: str, wanted: Iterable[str] = ()) -> ModelData:
    """Return the data of a model. name: of the model, such as its path. wanted: locations of further nodes that
    must be in the data; calls of functions without a split, a finding or such a node are not opened.
    """
    graphs = read_graphs(_sources(analysis, wanted))
    splits = _Splits(analysis, graphs)
    written = [splits.document(each) for each in analysis.splits]
    found = analysis.completeness
    document = {
        "splitgraph": splitgraph.__version__,
        "name": printable(name),
        "format": "OpenVINO IR" if IR in analysis.opset else "ONNX",
        "opset": printable(opset_text(analysis.opset)),
        "graphs": graphs.documents,
        "ops": graphs.ops.entries,
        "types": graphs.types.entries,
        "dims": splits.dims.entries,
        "splits": written,
        "findings": [_finding(each, graphs) for each in analysis.diagnostics],
        "symbols": [[printable(symbol), low, high] for symbol, (low, high) in analysis.symbols.items()],
        "obligations": [
            [
                printable(f"{each} (if {' or '.join(each.branches)} runs)" if each.branches else str(each)),
                [printable(location) for location in locations[:20]],
            ]
            for each, locations in analysis.required_by.items()
        ],
        "assumptions": [[printable(str(each)), [printable(at)]] for each, at in analysis.assumed_by.items()],
        "completeness": {"dims": found.dims, "known": found.known, "symbolic": found.symbolic},
    }
    return ModelData(document, graphs.places)


def _sources(analysis: Analysis, more: Iterable[str]) -> GraphSources:
    details = analysis.details
    wanted = [*(each.location for each in analysis.splits), *(each.location for each in analysis.diagnostics), *more]
    return GraphSources(
        model=_proto(analysis),
        types={MAIN: analysis.types} if details is None else details.types,
        calls={} if details is None else _call_types(analysis),
        wanted=wanted,
        splits={each.location for each in analysis.splits},
        versions={each.location: each.since_version for each in analysis.splits if not each.domain},
    )


def _proto(analysis: Analysis) -> ModelProto:
    """Return the model without its weights; of an OpenVINO IR the nodes that mirror its layers."""
    held: Any = analysis.held
    content = held.content if isinstance(held, HeldModel) else open_model(held, weights="leave").content
    if isinstance(content, ModelProto):
        return content
    from splitgraph.inference.openvino_ir import mirror

    return mirror(content).model


def _call_types(analysis: Analysis) -> dict[str, Mapping[str, ValueType]]:
    """Return the types of values in called functions, by the location of the call. The walk's own symbols have no
    displayed names there, so a dimension with one of them is left unknown.
    """
    shown = analysis.symbols.keys() - analysis.generated
    return {
        path[1]: {name: _with_shown_dims(value, shown) for name, value in detail.types.items()}
        for path, detail in analysis.details.graphs.items()
        if path[:1] == ("call",)
    }


def _with_shown_dims(value: ValueType, shown: Any) -> ValueType:
    if value.element is not None or not any(isinstance(dim, Dim) for dim in value.shape or ()):
        return value
    return value.with_shape(
        [dim if not isinstance(dim, Dim) or symbols_of(dim) <= shown else None for dim in value.shape or ()]
    )


class _Splits:
    """Writes the splits of a model. Splits of repeated layers have equal lengths, which are written once."""

    def __init__(self, analysis: Analysis, graphs: Graphs) -> None:
        self.dims: Table[list[Any]] = Table()
        self._bounds, self._graphs, self._rests = analysis.symbols, graphs, rest_parts(analysis)
        self._written: dict[tuple[int | Dim | None, ...], list[int]] = {}

    def document(self, split: SplitReport) -> Document:
        """Return the data of one split; splits are given in the order of the analysis."""
        document: Document = {
            "at": self._place(split),
            "loc": printable(split.location),
            "name": printable(split.name),
            "op": operator_label(split),
            "kind": KINDS.get(split.op, "split"),
            "axis": split.axis,
            "input": [printable(split.input_name), self._graphs.type_index(split.input)],
            "outputs": [[printable(name), self._graphs.type_index(value)] for name, value in split.outputs],
            "lengths": self._lengths(split.lengths),
        }
        if split.obligations:
            document["needs"] = [printable(each) for each in split.obligations]
        if split.location in self._rests:
            document["rest"] = self._rests[split.location]
        return document

    def _place(self, split: SplitReport) -> tuple[int, int] | None:
        """Return the node of a split; of several nodes of one name, the one with the outputs of the split."""
        repeated = self._graphs.repeated.get(split.location)
        if repeated is None:
            return self._graphs.places.get(split.location)
        names = [printable(name) for name, _ in split.outputs]
        return next((place for place in repeated if self._graphs.output_names(place) == names), None)

    def _lengths(self, lengths: tuple[int | Dim | None, ...]) -> list[int]:
        found = self._written.get(lengths)
        if found is None:
            texts = [printable(dim_text(length)) for length in lengths]
            weights = [round(weight, 3) for weight in bar_weights(lengths, self._bounds)]
            pairs = zip(texts, weights, strict=True)
            found = [self.dims.index([text, weight], (text, weight)) for text, weight in pairs]
            self._written[lengths] = found
        return found


def _finding(found: Diagnostic, graphs: Graphs) -> Document:
    return {
        "at": graphs.places.get(found.location),
        "code": found.code,
        "severity": found.severity,
        "message": printable(found.message),
        "help": printable(found.help),
        "loc": printable(found.location),
    }
