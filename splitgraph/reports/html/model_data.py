"""The data of a page: what its scripts read about a model and its graphs, as JSON values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import splitgraph
from splitgraph.dim import Dim, Obligation, symbols_of
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.formats import HeldModel, open_model
from splitgraph.formats.constants import UNKNOWN_FOLDER, Constant, Folder, graph_constants
from splitgraph.inference.analysis import IR, Analysis, SplitReport
from splitgraph.model.deferred import import_whole
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import MAIN, GraphPath
from splitgraph.model.value_type import ValueType
from splitgraph.reports.html.graphs import EntryTable, Graphs, GraphSources, read_graphs
from splitgraph.reports.html.split_svg import KINDS, bar_weights, operator_label, rest_parts
from splitgraph.reports.text import dim_text, opset_text, printable, shortened

if TYPE_CHECKING:
    from splitgraph.reports.documents.parts import Document

# Characters of a text of the model's metadata.
_LONGEST_TEXT = 400


class ModelData(NamedTuple):
    """document: everything that a page shows of a model. places: graph and index of each node, by location."""

    document: Document
    places: Mapping[str, tuple[int, int]]


def model_data(analysis: Analysis, name: str, wanted: Iterable[str] = ()) -> ModelData:
    """Return the data of a model. name: of the model, such as its path. wanted: locations of further nodes that
    must be in the data; calls of functions without a split, a finding or such a node are not opened.
    """
    sources = _sources(analysis, wanted)
    graphs = read_graphs(sources)
    splits, ranks = _Splits(analysis, graphs), _Ranks(analysis, sources.model)
    written = [splits.document(split) for split in analysis.splits]
    completeness = analysis.completeness
    document = {
        "splitgraph": splitgraph.__version__,
        "name": printable(name),
        "format": "OpenVINO IR" if IR in analysis.opset else "ONNX",
        "opset": printable(opset_text(analysis.opset)),
        **({} if IR in analysis.opset else _metadata(sources.model)),
        "graphs": graphs.documents,
        "ops": graphs.ops.entries,
        "types": graphs.types.entries,
        "attributes": graphs.attributes.entries,
        "elements": graphs.elements.entries,
        "dims": splits.dims.entries,
        "splits": written,
        "findings": [_finding(finding, graphs) for finding in analysis.diagnostics],
        "symbols": [
            [printable(symbol), low, high, ranks.of({symbol})]
            for symbol, (low, high) in sorted(analysis.symbols.items(), key=lambda each: ranks.of({each[0]}))
        ],
        "obligations": [
            [_obligation_text(obligation), [printable(location) for location in locations[:20]], rank]
            for rank, obligation, locations in ranks.ordered(analysis.required_by)
        ],
        "assumptions": [
            [printable(str(assumption)), [printable(at)], ranks.of(assumption.symbols)]
            for assumption, at in analysis.assumed_by.items()
        ],
        "completeness": {"dims": completeness.dims, "known": completeness.known, "symbolic": completeness.symbolic},
    }
    return ModelData(document, graphs.places)


class _Ranks:
    """Orders what is said of symbols: 0 for those of the model's inputs, 1 for others of the author, 2 if a symbol is
    splitgraph's own.
    """

    def __init__(self, analysis: Analysis, model: ModelProto) -> None:
        inputs = [analysis.types.get(value.name) for value in model.graph.input]
        dims = [dim for value in inputs if value is not None for dim in value.shape or () if isinstance(dim, Dim)]
        self._own = analysis.generated
        self._inputs = {name for dim in dims for name in symbols_of(dim)} - analysis.generated

    def of(self, symbols: Collection[str]) -> int:
        """Return the rank of what is said of these symbols."""
        if not self._own.isdisjoint(symbols):
            return 2
        return 0 if self._inputs.issuperset(symbols) else 1

    def ordered(self, required: Mapping[Obligation, tuple[str, ...]]) -> list[tuple[int, Obligation, tuple[str, ...]]]:
        """Return the requirements with their ranks, those of the inputs first."""
        ranked = [(self.of(obligation.symbols), obligation, at) for obligation, at in required.items()]
        return sorted(ranked, key=lambda each: each[0])


def _obligation_text(obligation: Obligation) -> str:
    condition = f" (if {' or '.join(obligation.branches)} runs)" if obligation.branches else ""
    return printable(f"{obligation}{condition}")


def _metadata(model: ModelProto) -> Document:
    """Return what an ONNX model says of itself. imports: its operator sets. metadata: entries of the author."""
    told = {
        "IR version": model.ir_version,
        "producer": " ".join(filter(None, (model.producer_name, model.producer_version))),
        "domain": model.domain,
        "model version": model.model_version or "",
        "graph": model.graph.name,
        "description": model.doc_string or model.graph.doc_string,
    }
    imports = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    return {
        "about": [(name, _abridged(str(text))) for name, text in told.items() if text != ""],
        "imports": [(printable(domain), version) for domain, version in imports.items()],
        "metadata": [(printable(entry.key), _abridged(entry.value)) for entry in model.metadata_props],
    }


def _abridged(text: str) -> str:
    return printable(shortened(text, _LONGEST_TEXT))


def _sources(analysis: Analysis, more: Iterable[str]) -> GraphSources:
    details = analysis.details
    wanted = [
        *(split.location for split in analysis.splits),
        *(finding.location for finding in analysis.diagnostics),
        *more,
    ]
    source: Any = analysis.held
    content = source.content if isinstance(source, HeldModel) else open_model(source, weights="leave").content
    folder = source.folder if isinstance(source, HeldModel) else UNKNOWN_FOLDER
    model, constants = _with_constants(content, folder)
    return GraphSources(
        model=model,
        types={MAIN: analysis.types} if details is None else details.types,
        calls={} if details is None else _call_types(analysis),
        wanted=wanted,
        splits={split.location for split in analysis.splits},
        versions={split.location: split.since_version for split in analysis.splits if not split.domain},
        constants=constants,
        folder=folder,
    )


def _with_constants(
    content: Any, folder: Folder
) -> tuple[ModelProto, Callable[[Any, GraphPath], Mapping[str, Constant]]]:
    """Return the model without its weights, and what returns the constants of a graph; of an OpenVINO IR the nodes
    that mirror its layers.
    """
    if isinstance(content, ModelProto):
        return content, lambda graph, path: graph_constants(graph, folder)
    import_whole("splitgraph.differences.parts")
    import_whole("splitgraph.inference.openvino_ir")
    from splitgraph.differences.parts import constants_of_ir
    from splitgraph.inference.openvino_ir import mirror

    mirrored = mirror(content)
    return mirrored.model, lambda graph, path: constants_of_ir(content, mirrored, path)


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
        self.dims: EntryTable[list[Any]] = EntryTable()
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
            document["needs"] = [printable(obligation) for obligation in split.obligations]
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
        indices = self._written.get(lengths)
        if indices is None:
            texts = [printable(dim_text(length)) for length in lengths]
            weights = [round(weight, 3) for weight in bar_weights(lengths, self._bounds)]
            pairs = zip(texts, weights, strict=True)
            indices = [self.dims.index([text, weight], (text, weight)) for text, weight in pairs]
            self._written[lengths] = indices
        return indices


def _finding(finding: Diagnostic, graphs: Graphs) -> Document:
    return {
        "at": graphs.places.get(finding.location),
        "code": finding.code,
        "severity": finding.severity,
        "message": printable(finding.message),
        "help": printable(finding.help),
        "loc": printable(finding.location),
    }
