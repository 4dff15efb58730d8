"""Find what a model that only runs as a whole decides by: its comparisons, and the positions at which it reads tables.

Each part runs alone, in the reference evaluator, so that what draws inputs for regions of ONNX models (see
`regions.drawing.inner_limits`) draws them for these models, too. The inputs are proposals: both models run on them. So
parts that are large or slow are left out.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from splitgraph.conversion.inlining import without_functions
from splitgraph.formats.openvino_ir import OpenVINOModel
from splitgraph.model.schemas import kinds
from splitgraph.model.scopes import reads
from splitgraph.model.values import value_type
from splitgraph.verification.models.ir_as_onnx import as_onnx
from splitgraph.verification.models.model_files import is_default_domain
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.reference.deferred import evaluator
from splitgraph.verification.regions.drawing.inner_limits import BY_ELEMENT, COMPARISONS, at_inner_limits, cut
from splitgraph.verification.regions.finding.constants import held_constants
from splitgraph.verification.regions.finding.reached import reached
from splitgraph.verification.values import Array, UnsupportedError, Value

# A comparison or a position that more nodes compute is left out, and so is what comes after so many nodes of all.
_MOST_BEFORE, _MOST_NODES = 24, 60
# Models with more nodes are not looked at: finding what is before a node takes time for each.
_MOST_OF_MODEL = 5000
# Operators that bend at 0, or decide by the sign.
_BENDING = frozenset(
    {"Abs", "Celu", "Elu", "HardSigmoid", "LeakyRelu", "PRelu", "Relu", "Selu", "Sign", "ThresholdedRelu"}
)
# Parts of the names of operators that take long to run in the reference evaluator.
_SLOW = ("Conv", "Pool", *sorted(kinds.RECURRENT), "Attention", "Resize", "DFT", "Einsum")
# A limit in a constant of more elements is one of many.
_FEW_ELEMENTS = 8
# Of inputs that reach a row, so many are taken for each set of rows; so many sets of rows of one table are looked for,
# and so many of all.
_MOST_FOUND, _MOST_SETS, _MOST_SEARCHES = 6, 8, 32
_TARGET = "a row"

_FAILURES = (ArithmeticError, IndexError, KeyError, RuntimeError, TypeError, UnsupportedError, ValueError)


@dataclass(frozen=True, slots=True)
class ReadTable:
    """A table that is read at computed positions. index: the name of these. dims: the dimensions that they are in."""

    index: str
    dims: tuple[int, ...]
    is_nd: bool


@dataclass(slots=True)
class DecidingPart:
    """What one model decides by. model: comparisons and what they depend on, with the shared names of inputs. tables:
    those that it reads at computed positions, with what computes all positions. limits: numbers that an input itself
    is compared with, by its name. ties: inputs that are compared with each other.
    """

    model: onnx.ModelProto
    folder: Path
    positions: onnx.ModelProto
    tables: list[ReadTable] = field(default_factory=list)
    limits: dict[str, list[Array]] = field(default_factory=dict)
    ties: list[tuple[str, str]] = field(default_factory=list)


def deciding_part(compared: ComparedModel) -> DecidingPart | None:
    """Return what a model decides by; None if that is not known."""
    folder = compared.folder or Path()
    if isinstance(compared.model, OpenVINOModel):
        ports = {} if compared.ports is None else {own: shared for shared, own in compared.ports.inputs.items()}
        model = as_onnx(compared.model, ports)
    else:
        model = _with_shared_names(compared)
    model = without_functions(model)
    return None if len(model.graph.node) > _MOST_OF_MODEL else _PartFinder(model, folder, compared).find()


def _with_shared_names(compared: ComparedModel) -> onnx.ModelProto:
    """Return an ONNX model whose inputs have the names that both models share. Its weights are not copied."""
    own = compared.model
    assert isinstance(own, onnx.ModelProto)
    shared = {} if compared.ports is None else {name: key for key, name in compared.ports.inputs.items() if name != key}
    if not shared:
        return own
    made = onnx.ModelProto(ir_version=own.ir_version)
    made.opset_import.extend(own.opset_import)
    made.functions.extend(own.functions)
    made.graph.name = own.graph.name
    made.graph.initializer.extend(own.graph.initializer)
    made.graph.input.extend(own.graph.input)
    # An Identity takes the name: bodies of nodes may read an input, too.
    for value in made.graph.input:
        if value.name in shared:
            name, value.name = value.name, shared[value.name]
            made.graph.node.add(op_type="Identity", input=[value.name], output=[name])
    made.graph.node.extend(own.graph.node)
    return made


class _PartFinder:
    def __init__(self, model: onnx.ModelProto, folder: Path, compared: ComparedModel) -> None:
        self._model, self._folder = model, folder
        self._nodes = list(model.graph.node)
        self._makers = {name: index for index, node in enumerate(self._nodes) for name in node.output if name}
        self._read = [tuple(filter(None, reads(node))) for node in self._nodes]
        self._inputs = {value.name for value in compared.interface.graph.input}
        declared = [*model.graph.input, *model.graph.value_info]
        types = compared.analysis.types if isinstance(compared.model, onnx.ModelProto) else {}
        self._shapes = {
            **{value.name: value_type(value.type).shape for value in declared},
            **{name: t.shape for name, t in types.items()},
        }
        self._large = {value.name for value in model.graph.input} - self._inputs
        # A value that an Identity passes on is the input itself.
        self._own = {name: name for name in self._inputs}
        for node in self._nodes:
            if node.op_type == "Identity" and node.input[0] in self._own:
                self._own[node.output[0]] = self._own[node.input[0]]
        self._held = {constant.name: constant for constant in held_constants(model)}

    def find(self) -> DecidingPart:
        found = DecidingPart(onnx.ModelProto(), self._folder, onnx.ModelProto())
        chosen, positions = list[str](), list[str]()
        used = set[int]()
        for node in sorted(self._nodes, key=lambda node: node.op_type in _BENDING):
            is_reader = node.op_type in kinds.READS_AT
            if not is_default_domain(node.domain) or not (is_reader or node.op_type in COMPARISONS | _BENDING):
                continue
            wanted = [node.input[1]] if is_reader else [node.output[0]]
            before = reached([self._makers[name] for name in wanted if name in self._makers], self._read, self._makers)
            if len(before) > _MOST_BEFORE or len(used | before) > _MOST_NODES or not self._is_quick(before):
                continue
            if node.op_type in _BENDING and not all(self._nodes[index].op_type in BY_ELEMENT for index in before):
                continue
            if is_reader and not (table := self._table(node)):
                continue
            used |= before
            if is_reader and table:
                positions += wanted
                found.tables.append(table)
            else:
                chosen += wanted
                self._add_limits(node, found)
        found.model, found.positions = (cut(self._model, dict.fromkeys(names)) for names in (chosen, positions))
        return found

    def _is_quick(self, nodes: set[int]) -> bool:
        """Return True if the evaluator can compute nodes from the inputs of the models, and soon."""
        if any(name in self._large for index in nodes for name in self._read[index]):
            return False
        made = [self._nodes[index] for index in nodes]
        has_bodies = any(attribute.HasField("g") for node in made for attribute in node.attribute)
        return not has_bodies and not any(part in node.op_type for node in made for part in _SLOW)

    def _table(self, node: onnx.NodeProto) -> ReadTable | None:
        """Return the table that a node reads; None if its dimensions are not known."""
        dims = self._dims(node.input[0])
        if dims is None or not dims:
            return None
        if node.op_type == "GatherND":
            index = self._shapes.get(node.input[1])
            depth = index[-1] if index else None
            return ReadTable(node.input[1], dims[:depth], True) if isinstance(depth, int) else None
        axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
        return ReadTable(node.input[1], (dims[axis],), False) if -len(dims) <= axis < len(dims) else None

    def _dims(self, name: str) -> tuple[int, ...] | None:
        held = self._held.get(name)
        if held is not None and isinstance(held.held, onnx.TensorProto):
            return tuple(held.held.dims)
        shape = self._shapes.get(name)
        known = tuple(length for length in shape or () if isinstance(length, int))
        return known if shape is not None and len(known) == len(shape) else None

    def _add_limits(self, node: onnx.NodeProto, found: DecidingPart) -> None:
        """Record what an input itself is compared with."""
        own = [self._own[name] for name in node.input if name in self._own]
        limits = [self._held[name] for name in node.input if name in self._held]
        if len(own) == 2:
            found.ties.append((own[0], own[1]))
        for name in own:
            elements = (limit.elements(self._folder) for limit in limits if 0 < limit.size <= _FEW_ELEMENTS)
            found.limits.setdefault(name, []).extend(array for array in elements if array.dtype.kind in "fiu")


# Inputs at which something is decided ---------------------------------------------------------------------------------


def inner_cases(
    parts: Sequence[DecidingPart], base: Mapping[str, Value], free: Mapping[str, Array], constants: Sequence[float]
) -> Iterator[dict[str, Value]]:
    """Yield values for the free inputs at which something inside of a model meets its limit."""
    models = [(part.model, part.folder) for part in parts if part.model.graph.node]
    known = {name for model, _ in models for name in (value.name for value in model.graph.input)}
    if models and known <= base.keys():
        yield from at_inner_limits(models, base, {name: free[name] for name in free if name in known}, constants)


class _Positions:
    """Computes the positions at which a part reads one of its tables, for the inputs that it depends on."""

    def __init__(self, part: DecidingPart, table: ReadTable) -> None:
        self.table, self.folder = table, part.folder
        self.model = cut(part.positions, [table.index])
        self.names = [value.name for value in self.model.graph.input]
        self._loaded = evaluator.load(self.model, part.folder)

    def of(self, inputs: Mapping[str, Value]) -> Array:
        """Return the positions. Raises one of _FAILURES."""
        feeds = {name: inputs[name] for name in self.names}
        with np.errstate(all="ignore"):
            return np.asarray(evaluator.run(self._loaded, feeds, [self.table.index])[0])

    def outside(self, positions: Array) -> Array:
        """Mark the positions that are not in the table."""
        dims = np.array(self.table.dims if self.table.is_nd else self.table.dims[:1])
        wrong = (positions < -dims) | (positions >= dims)
        return np.asarray(wrong.any(axis=-1) if self.table.is_nd else wrong)

    def compared(self) -> onnx.ModelProto:
        """Return a model that compares the positions with those that are wanted."""
        made = onnx.ModelProto()
        made.CopyFrom(self.model)
        made.graph.input.add(name=_TARGET)
        made.graph.node.add(op_type="Equal", input=[self.table.index, _TARGET], output=["is there"])
        made.graph.output.add(name="is there")
        return made


def row_cases(
    parts: Sequence[DecidingPart],
    bases: Callable[[int], Sequence[Mapping[str, Value]]],
    free: Sequence[str],
    first: Mapping[int, Sequence[int]],
    rng: np.random.Generator,
) -> Iterator[dict[str, Value]]:
    """Yield inputs at which tables are read at each of their rows, at computed positions, too. bases: inputs of several
    sizes, for a number of rows. first: rows that come first, by the length of the table.
    """
    told = set[tuple[tuple[int, ...], bytes]]()
    searches = iter(range(_MOST_SEARCHES))
    # Tables in which the models differ come first.
    tables = [(part, table) for part in parts for table in part.tables]
    for part, table in sorted(tables, key=lambda each: each[1].dims[0] not in first):
        try:
            positions = _Positions(part, table)
            key = table.dims, positions.model.SerializeToString(deterministic=True)
            if key in told:
                continue
            told.add(key)
            for base in bases(table.dims[0]):
                for target in _rows_of(positions, base, first, rng):
                    if table.index in free:
                        yield {**base, table.index: target}
                    elif next(searches, None) is not None:
                        yield from _reaching(positions, base, free, target)
        except _FAILURES:
            # The evaluator lacks an operator, or the part has no meaning for these inputs.
            continue


def _rows_of(
    positions: _Positions, base: Mapping[str, Value], first: Mapping[int, Sequence[int]], rng: np.random.Generator
) -> Iterator[Array]:
    """Yield positions that are to be read: one set if no rows come first."""
    dims, own = positions.table.dims, positions.of(base)
    count, known = math.prod(dims), first.get(dims[0], ())
    order = np.array(list(dict.fromkeys([*known, *rng.permutation(min(count, 2**20))])))
    size = math.prod(own.shape[:-1]) if positions.table.is_nd else own.size
    for case in range(min(-(-count // size), _MOST_SETS if known else 1) if size else 0):
        rows = np.resize(np.roll(order, -case * size), size)
        places = np.stack(np.unravel_index(rows, dims), axis=-1) if positions.table.is_nd else rows
        yield places.reshape(own.shape).astype(own.dtype)


def _reaching(
    positions: _Positions, base: Mapping[str, Value], free: Sequence[str], target: Array
) -> Iterator[dict[str, Value]]:
    """Yield inputs at which the positions are, in part, those that are wanted."""
    for name in (name for name in free if name in positions.names):
        value = base[name]
        if not isinstance(value, np.ndarray):
            continue
        found = at_inner_limits(
            [(positions.compared(), positions.folder)], {**base, _TARGET: target}, {name: value}, range(2)
        )
        hits = 0
        for values in itertools.islice(found, 4 * _MOST_FOUND):
            made = _inside(positions, {**base, **values}, name)
            if made is not None and hits < _MOST_FOUND and (positions.of(made) == target).any():
                hits += 1
                yield made


def _inside(positions: _Positions, inputs: dict[str, Value], name: str) -> dict[str, Value] | None:
    """Return inputs whose positions are all in the table; None if there are none. Elements that lead out of it become
    one that does not.
    """
    wrong = positions.outside(positions.of(inputs))
    if not wrong.any():
        return inputs
    value = np.array(inputs[name])
    if wrong.all() or wrong.size != value.size:
        return None
    wrong = wrong.reshape(value.shape)
    value[wrong] = value[~wrong][0]
    made = {**inputs, name: value}
    return None if positions.outside(positions.of(made)).any() else made


def limits_of(parts: Sequence[DecidingPart]) -> dict[str, list[float]]:
    """Return the numbers that each input itself is compared with."""
    found: dict[str, list[float]] = defaultdict(list)
    for part in parts:
        for name, arrays in part.limits.items():
            found[name] += [float(number) for array in arrays for number in array.reshape(-1) if np.isfinite(number)]
    return {name: list(dict.fromkeys(numbers)) for name, numbers in found.items()}
