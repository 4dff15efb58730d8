"""The nodes of one model that compute with sizes alone, run for one size after the other (see `size_limits`).

Nodes of functions, and of the bodies of changed nodes, are among them, as if they were nodes of the main graph: what
they compute with sizes does not depend on whether a branch is taken.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx

from splitgraph.dim import DimLike, evaluate
from splitgraph.model.schemas import kinds
from splitgraph.model.scopes import called_function, node_label, opset_imports, reads, subgraphs
from splitgraph.model.value_type import UNKNOWN, ValueType
from splitgraph.verification.inputs.solver import SymbolSizes
from splitgraph.verification.models.model_files import elements_of, is_default_domain, specialise
from splitgraph.verification.reference.deferred import evaluator
from splitgraph.verification.regions.drawing.inner_limits import COMPARISONS
from splitgraph.verification.regions.finding.cut import add_constant, rename_values
from splitgraph.verification.regions.finding.reached import reached
from splitgraph.verification.regions.finding.sides import ModelSide
from splitgraph.verification.regions.sizes.size_numbers import SizeNumbers
from splitgraph.verification.values import Array

# The nodes that are run are at most so many, and read constants of at most so many elements.
_MOST_NODES, _MOST_ELEMENTS = 400, 2**12
# Larger results, such as a mask of a long sequence, are not looked at.
_MOST_COMPUTED = 2**18
# Bodies and functions are opened up to this depth.
_DEEPEST = 8
# What a node reads as a position or an extent is reached by any run if it is smaller. No larger length is tried.
_LEAST_LENGTH, LARGEST = 8, 2**22
# Nodes whose results are compared as they are, and those that read a condition.
_CONDITIONS = kinds.LOGICAL | {"Sign"}
_CONDITIONAL = frozenset({"If", "Where"})
# Parts of the names of operators that read places.
_READING_PLACES = ("Gather", "Scatter", "Slice", "Pad", "Trilu", "EyeLike", "OneHot", "Loop", "Scan", "If")
_WHOLE = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)


class _Piece(NamedTuple):
    """A node, by itself or of a body or a function. location: of the node of the main graph."""

    node: onnx.NodeProto
    location: str
    is_changed: bool


class SizePart:
    """changed: the nodes that the other model has not. sized: the values of the main graph that depend on sizes or on
    constants, and on nothing else.
    """

    def __init__(self, side: ModelSide, changed: Collection[int], numbers: SizeNumbers) -> None:
        self._side, self._numbers = side, numbers
        self._opset = opset_imports(side.model.opset_import).get("", 0)
        self._types: dict[str, ValueType] = dict(side.types)
        self._tensors: dict[str, onnx.TensorProto] = {}
        self._pieces: list[_Piece] = []
        for index in sorted(side.computed):
            location = side.location(index)
            self._open(side.nodes[index], (location, location), _DEEPEST, is_changed=index in changed)
        self._leaves: set[int] = set()
        self._number_of: dict[str, int] = {}
        self.sized: set[str] = set()
        for index, piece in enumerate(self._pieces):
            if self._is_sized(index, piece.node):
                self.sized.update(filter(None, piece.node.output))
                self._number(index, piece.node)
        self._model: Any = None
        self._deciders: list[tuple[_Piece, list[str]]] = []

    # Nodes -------------------------------------------------------------------------------------------------------

    def _open(self, node: onnx.NodeProto, place: tuple[str, str], depth: int, *, is_changed: bool) -> None:
        """Add a node, those of the function that it calls, and those of its bodies if it has changed. place: the
        location of the node of the main graph that it belongs to, and its own.
        """
        location, own = place
        function = self._side.functions.get(called_function(node))
        if function is not None:
            imports = {each.domain: each.version for each in self._side.model.opset_import}
            if depth and all(imports.get(each.domain) == each.version for each in function.opset_import):
                body = specialise(function, node)
                names = dict(zip(body.input, [*node.input, *[""] * len(body.input)], strict=False))
                names |= dict(zip(body.output, node.output, strict=False))
                self._open_all(body.node, (location, own), depth - 1, names, is_changed=is_changed)
            return
        self._pieces.append(_Piece(node, location, is_changed))
        for attribute, position, graph in subgraphs(node) if is_changed and depth else ():
            path = f"{own}/{attribute}" + (f"[{position}]" if position else "")
            names = {
                name: f"{path}/{name}"
                for name in (*(v.name for v in graph.input), *(t.name for t in graph.initializer))
            }
            self._tensors |= {names[tensor.name]: tensor for tensor in graph.initializer}
            known = self._side.graphs.get(path, {})
            self._types |= {f"{path}/{name}": value for name, value in known.items()}
            self._open_all(graph.node, (location, path), depth - 1, names, is_changed=True)

    def _open_all(
        self,
        nodes: Sequence[onnx.NodeProto],
        place: tuple[str, str],
        depth: int,
        names: Mapping[str, str],
        *,
        is_changed: bool,
    ) -> None:
        """Add the nodes of a body or a function. names: of the values that they are given."""
        location, path = place
        made = {name: f"{path}/{name}" for node in nodes for name in node.output if name}
        for position, node in enumerate(nodes):
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            rename_values(copy, {**made, **names})
            own = f"{path}/{node_label(node, position)}"
            self._open(copy, (location, own), depth, is_changed=is_changed)

    def _is_sized(self, index: int, node: onnx.NodeProto) -> bool:
        """Return True for a node that computes with sizes alone."""
        if not is_default_domain(node.domain) or any(True for _ in subgraphs(node)):
            return False
        if node.op_type == "Constant":
            return True
        if node.op_type in kinds.SIZES:
            shape = self._types.get(node.input[0], UNKNOWN).shape
            if shape is not None and None not in shape:
                self._leaves.add(index)
                return True
        is_known = bool(node.input) and not kinds.may_draw(node)
        return is_known and all(self._is_known(name) for name in node.input if name)

    def _is_known(self, name: str) -> bool:
        return name in self.sized or self._is_small(name)

    def _is_small(self, name: str) -> bool:
        tensor = self._tensors.get(name) or self._side.constants.tensor(name)
        if tensor is None:
            return name in self._side.constants
        return math.prod(tensor.dims) <= _MOST_ELEMENTS

    def _number(self, index: int, node: onnx.NodeProto) -> None:
        """Give numbers to the outputs of a node that computes with sizes alone."""
        if index in self._leaves:
            made: Sequence[int] = [self._numbers.of(node.op_type, *map(str, self._dims(node)))]
        else:
            read = [self.number_of(name) if name else None for name in node.input]
            made = self._numbers.of_node(node, read, self._opset)
        self._number_of |= {name: number for name, number in zip(node.output, made, strict=False) if name}

    def number_of(self, name: str) -> int:
        """Return the number of a value that depends on sizes or on constants (see `SizeNumbers`)."""
        if name not in self._number_of:
            tensor = self._tensors.get(name) or self._side.constants.tensor(name)
            if tensor is None or tensor.data_type == onnx.TensorProto.STRING:
                key: tuple[Hashable, ...] = ("of one model", id(self), name)
            else:
                elements = elements_of(tensor, self._side.folder).tobytes()
                key = ("constant", tensor.data_type, tuple(tensor.dims), elements)
            self._number_of[name] = self._numbers.of(*key)
        return self._number_of[name]

    def _dims(self, node: onnx.NodeProto) -> Sequence[DimLike]:
        """Return the dimensions that a Shape or a Size reads."""
        shape = [dim for dim in self._types[node.input[0]].shape or () if dim is not None]
        if node.op_type == "Size":
            return shape
        given = {attribute.name: attribute.i for attribute in node.attribute}
        return shape[given.get("start", 0) : given.get("end", len(shape))]

    # Runs --------------------------------------------------------------------------------------------------------

    def prepare(self, wanted: Iterable[str]) -> bool:
        """Prepare to run the nodes that changed nodes and some values depend on; return False if there are none."""
        for piece in self._pieces:
            names = _compared_names(piece.node) if piece.is_changed else []
            if any(name in self.sized for name in names) and all(map(self._is_known, filter(None, names))):
                self._deciders.append((piece, names))
        operands = dict.fromkeys(name for _, names in self._deciders for name in names if name)
        names = list(dict.fromkeys([*wanted, *operands]))
        if any(name in self.sized for name in names):
            self._model = self._loaded(names)
        return self._model is not None

    def _without_same(self) -> tuple[list[onnx.NodeProto], dict[str, str]]:
        """Return the nodes, each reading the first of all values of one number, and the names of these."""
        first: dict[int, str] = {}
        same: dict[str, str] = {}
        nodes = []
        for index, piece in enumerate(self._pieces):
            own = [name for name in piece.node.output if name in self.sized]
            same |= {name: first.setdefault(self._number_of[name], name) for name in own if name in self._number_of}
            node = onnx.NodeProto()
            node.CopyFrom(piece.node)
            if own and index not in self._leaves:
                node.input[:] = [same.get(name, name) for name in node.input]
            nodes.append(node)
        return nodes, same

    def _loaded(self, wanted: Sequence[str]) -> Any:
        nodes, self._same = self._without_same()
        wanted = list(dict.fromkeys(self._same.get(name, name) for name in wanted))
        makers = {name: index for index, node in enumerate(nodes) for name in node.output if name in self.sized}
        start = {makers[name] for name in wanted if name in makers}
        read = [() if index in self._leaves else tuple(filter(None, reads(node))) for index, node in enumerate(nodes)]
        needed = sorted(reached(start, read, makers))
        if len(needed) > _MOST_NODES:
            return None
        model = onnx.ModelProto(ir_version=self._side.model.ir_version)
        model.opset_import.extend(self._side.model.opset_import)
        model.graph.name = "sizes"
        self._given = [nodes[index] for index in needed if index in self._leaves]
        model.graph.input.extend(onnx.ValueInfoProto(name=node.output[0]) for node in self._given)
        own = [nodes[index] for index in needed if index not in self._leaves]
        for name in dict.fromkeys([*(name for node in own for name in node.input), *wanted]):
            if name in self._tensors:
                model.graph.initializer.add().CopyFrom(self._tensors[name])
                model.graph.initializer[-1].name = name
            elif name in self._side.constants:
                add_constant(model.graph, self._side, name, name)
        model.graph.node.extend(own)
        self._names = list(wanted)
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in self._names)
        try:
            folder = self._side.folder
            return evaluator.load(model, folder) if folder is not None else evaluator.load(model)
        except (RuntimeError, ValueError):
            # The evaluator lacks an operator.
            return None

    def run(self, sizes: SymbolSizes) -> Mapping[str, Array]:
        """Return the values at some sizes; none where that is impossible."""
        if self._model is None:
            return {}
        try:
            feeds = {node.output[0]: self._size_of(node, sizes) for node in self._given}
            with np.errstate(all="ignore"):
                outputs = evaluator.run(self._model, feeds, self._names)
        except (ArithmeticError, IndexError, KeyError, RuntimeError, TypeError, ValueError):
            # The model has no meaning at these sizes.
            return {}
        values = {name: np.asarray(value) for name, value in zip(self._names, outputs, strict=True)}
        if any(value.size > _MOST_COMPUTED for value in values.values()):
            return {}
        return values | {name: values[same] for name, same in self._same.items() if same in values}

    def _size_of(self, node: onnx.NodeProto, sizes: SymbolSizes) -> Array:
        dims = [evaluate(dim, sizes) for dim in self._dims(node)]
        return np.array(math.prod(dims) if node.op_type == "Size" else dims, np.int64)

    def deciders(self) -> Iterator[str]:
        """Yield the locations of the nodes that `decisions` tells of."""
        yield from (piece.location for piece, _ in self._deciders)

    def decisions(self, values: Mapping[str, Array]) -> Iterator[tuple[str, bytes]]:
        """Yield what each comparison says, by its location."""
        told: dict[str, bytes] = {}
        for piece, names in self._deciders:
            arrays = [values[name] for name in names if name and name in values]
            if len(arrays) == sum(map(bool, names)):
                with np.errstate(all="ignore"):
                    told[piece.location] = told.get(piece.location, b"") + b"".join(_compared(piece.node, arrays))
        yield from told.items()

    def extents(self) -> Iterator[tuple[int, str]]:
        """Yield the lengths that whole numbers name from the end, such as the start -100 of a Slice."""
        for piece in self._pieces:
            for name in piece.node.input if piece.is_changed and _reads_places(piece.node) else ():
                for number in self._whole_numbers(name):
                    if -LARGEST < number <= -_LEAST_LENGTH:
                        yield from ((more - number, piece.location) for more in (0, 1, 2, 3))

    def _whole_numbers(self, name: str) -> list[int]:
        """Return the elements of a constant of integers; none for other values."""
        tensor = self._tensors.get(name) or self._side.constants.tensor(name)
        is_whole = tensor is not None and self._is_small(name) and tensor.data_type in _WHOLE
        return elements_of(tensor, self._side.folder).reshape(-1).tolist() if tensor is not None and is_whole else []


def _reads_places(node: onnx.NodeProto) -> bool:
    """Return True for a node whose whole numbers may be places, counted from the end if they are negative."""
    is_known = is_default_domain(node.domain) or node.domain == "com.microsoft"
    return not is_known or any(part in node.op_type for part in _READING_PLACES)


def _compared_names(node: onnx.NodeProto) -> list[str]:
    """Return the values that say what a node decides."""
    if not is_default_domain(node.domain):
        return []
    if node.op_type in _CONDITIONAL:
        return [node.input[0]]
    if node.op_type in COMPARISONS:
        return list(node.input)
    return list(node.output) if node.op_type in _CONDITIONS else []


def _compared(node: onnx.NodeProto, arrays: Sequence[Array]) -> Iterator[bytes]:
    """Yield how the inputs of a comparison stand to each other: smaller, equal or larger. Other values as they are."""
    if node.op_type not in COMPARISONS:
        yield from (array.tobytes() for array in arrays)
        return
    numbers = [array.astype(np.float64) for array in arrays]
    for other in numbers[1:]:
        signs = np.sign(numbers[0] - other).reshape(-1)
        # Which ones there are, and at both ends: there may be as many as a dimension is long.
        yield np.concatenate([np.unique(signs), signs[:1], signs[-1:]]).tobytes()
