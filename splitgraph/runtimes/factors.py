"""The factors of a node: all that may decide whether a runtime reads it, each a key with a value.

One function reads the factors of nodes of models and of measured cases alike, so that both have the same words. A key
whose value follows from another one, or is not known, is left out.

| keys | values |
|---|---|
| `T`, `T1`, ... | the element type of a type variable |
| an attribute | its text, `0`, `1`, `more`, `negative`; `default` or `other`; for a list what it says |
| `axis`, `axis.sign` | `first`, `second`, `inner`, `last`, `only`; `negative` or not; `unwritten` for the default |
| an input | `absent`, `init`, `node`, `folded`, `sized`, `shape`, `data`, `computed`, `input` |
| a later output | `absent`, `unused`, `used` |
| `rank`, `data` | of the first input; `const`, `sizes` or `data` |
| `along`, `before`, `behind` | the dimensions that the node reads, and those around them: `fixed` or `open` |
| `dims.open` | `several` for a Flatten of more than one open dimension |
| `steps.negative` | `of constants` for a Slice whose data is known before the run |
| `inputs.input` | `beside constants` for a Concat of an input of the graph and constants, one behind the other |
| `use.Cast`, ... | who reads a list of sizes; `use.elementwise`: a weight that is a vector, and several nodes share |
| `use.Mul` | `yes` for a product by a vector that a Mul scales |
| `gelu` | of the last node of a pattern that runtimes take for one operator: `halved inside` |
| `training` | `yes` for a Dropout whose training_mode is a constant that says so |
| `returned` | `rank 3` for the result of a convolution that the graph returns: MNN gives it another rank |
| `data.cast` | `yes` for a CumSum of what a Cast gives, and a Mod of what is computed from a Cast to int64 |

`factors_of_splits.py` lists those of splits.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from splitgraph.inference.walk_results import SplitDetail
from splitgraph.model.attributes import HOLDING_GRAPHS
from splitgraph.model.onnx_proto import AttributeProto, NodeProto
from splitgraph.model.schemas import FormalAttribute, OperatorVersion, kinds
from splitgraph.model.schemas.fit import formal_at
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType
from splitgraph.runtimes.factors_of_bodies import factors_of_bodies
from splitgraph.runtimes.factors_of_lists import factors_of_lists
from splitgraph.runtimes.factors_of_splits import factors_of_split
from splitgraph.runtimes.patterns import factors_of_patterns
from splitgraph.runtimes.seen_values import BEFORE_THE_RUN, CAST_TO_INTEGERS, Seen, are_sizes, listed, place

_DTYPES = {number: name for name, number in DTYPE_NUMBERS.items()}
# Integers that name an element type.
_OF_TYPES = frozenset({"to", "dtype", "output_dtype", "stash_type", "softmax_precision", "output_datatype"})
# Lists of axes: what they say is told with the lists that are inputs.
LISTS_OF_AXES = frozenset({"axes", "starts", "ends"})
_BODIES = frozenset({"If", "Loop", "Scan"})
_TAKING = frozenset({"Gather", "Slice"})
# The readers of a list of sizes that runtimes tell apart.
_USES = frozenset({"Gather", "Slice", "Cast"})


Factors = dict[str, str]


def factors(node: NodeProto, version: OperatorVersion | None, seen: Seen, split: SplitDetail | None = None) -> Factors:
    """Return the factors of a node. version: None for an operator without a schema, of which less can be said. split:
    what is known of a split, None for another node.
    """
    found: Factors = {}
    data = seen.type_of(node.input[0]) if node.input and node.input[0] else UNKNOWN
    found.update(_of_attributes(node, version, data))
    found.update(_of_types(node, version, seen))
    found.update(_of_inputs(node, version, seen))
    found.update(_of_outputs(node, version, seen))
    if node.op_type == "Constant":
        held = next(iter(node.attribute), None)
        return {"form": "absent" if held is None else held.name, **{key: found[key] for key in ("T",) if key in found}}
    if node.op_type in _BODIES:
        found.update(factors_of_bodies(node, seen))
    elif node.input:
        found.update(_of_data(node, data, seen))
        found.update(factors_of_lists(node, data, seen))
        found.update(factors_of_patterns(node, seen))
    for key, value in factors_of_split(node, split, seen) if split is not None else ():
        found.pop(key, None)
        if value is not None:
            found[key] = value
    return found


# Attributes -----------------------------------------------------------------------------------------------------------


def _of_attributes(node: NodeProto, version: OperatorVersion | None, data: ValueType) -> Iterator[tuple[str, str]]:
    formals: Mapping[str, FormalAttribute] = {} if version is None else version.attributes
    given = {each.name: each for each in node.attribute}
    for name in {**formals, **given}:
        held, formal = given.get(name), formals.get(name)
        default = None if formal is None else formal.default
        kind = held.type if held is not None else formal.type if formal is not None else 0
        if kind in HOLDING_GRAPHS or name in LISTS_OF_AXES:
            continue
        if name == "axis" and kind == AttributeProto.INT:
            yield from _of_axis(held, default, data)
        elif held is None and default is None:
            yield name, "absent"
        else:
            value = held if held is not None else default
            assert value is not None
            yield name, _value(value, default)


def _of_axis(held: AttributeProto | None, default: AttributeProto | None, data: ValueType) -> Iterator[tuple[str, str]]:
    if held is None:
        yield "axis.sign", "unwritten"
    else:
        yield "axis.sign", "negative" if held.i < 0 else "positive"
    value = held if held is not None else default
    if value is not None and data.rank is not None:
        yield "axis", place(value.i, data.rank)


def _value(held: AttributeProto, default: AttributeProto | None) -> str:
    kind = held.type
    if kind == AttributeProto.STRING:
        text = held.s.decode("utf-8", "replace")
        return _in_lowest_terms(text) if held.name == "equation" else text
    if kind == AttributeProto.INT:
        if held.name in _OF_TYPES:
            return _DTYPES.get(held.i, "0")
        return str(held.i) if held.i in (0, 1) else "negative" if held.i < 0 else "more"
    if kind == AttributeProto.INTS:
        return listed(held.name, held.ints)
    if kind == AttributeProto.FLOAT:
        return "default" if default is not None and held.f == default.f else "other"
    if kind == AttributeProto.TENSOR:
        return _DTYPES.get(held.t.data_type, "tensor")
    return "given"


def _in_lowest_terms(equation: str) -> str:
    """Return an equation of Einsum with the letters a, b, c, ... in the order in which they stand, and with one letter
    for those that always stand side by side: which ones an exporter takes means nothing, and neither does how many
    dimensions a batch has, which the rank tells.
    """
    text = "".join(equation.split())
    terms = re.split(",|->", text)
    if "->" in text and all(len(set(term)) == len(term) for term in terms):
        while pair := next(filter(None, (_side_by_side(term, terms) for term in terms)), None):
            terms = [term.replace(pair[1], "") for term in terms]
    text = f"{','.join(terms[:-1])}->{terms[-1]}" if "->" in text else text
    names: dict[str, str] = {}
    return "".join(names.setdefault(each, chr(ord("a") + len(names))) if each.isalpha() else each for each in text)


def _side_by_side(term: str, terms: Sequence[str]) -> str | None:
    """Return two letters of a term that stand side by side in all terms that have one of them."""
    pairs = (first + second for first, second in itertools.pairwise(term) if (first + second).isalpha())
    return next((pair for pair in pairs if all(pair in each or not set(pair) & set(each) for each in terms)), None)


# Types, inputs and outputs --------------------------------------------------------------------------------------------


def _of_types(node: NodeProto, version: OperatorVersion | None, seen: Seen) -> Iterator[tuple[str, str]]:
    if version is None:
        dtype = seen.type_of(node.input[0]).dtype if node.input else None
        if dtype is not None:
            yield "T", dtype
        return
    for formals, names in ((version.outputs, node.output), (version.inputs, node.input)):
        for position, name in reversed(list(enumerate(names))):
            formal, known = formal_at(formals, position), seen.type_of(name) if name else UNKNOWN
            if formal is None or not formal.is_generic or known.dtype is None:
                continue
            # No element of an empty value has the type.
            if not position or 0 not in (known.shape or ()):
                kind = "" if known.kind == "tensor" else f"{known.kind} of "
                yield formal.type_variable, f"{kind}{known.dtype}"


def _of_inputs(node: NodeProto, version: OperatorVersion | None, seen: Seen) -> Iterator[tuple[str, str]]:
    if version is None:
        for position, name in enumerate(node.input[1:], 1):
            yield f"input {position}", _given(name, True, seen)
        return
    variadic = version.inputs[-1] if version.inputs and version.inputs[-1].option == "variadic" else None
    first = version.inputs[0] if version.inputs else None
    for position, formal in enumerate(version.inputs):
        if formal is variadic:
            rest = [name for name in node.input[position:] if name]
            yield f"{formal.name}.count", "one" if len(rest) == 1 else "two" if len(rest) == 2 else "more"
            for kind in {_given_among(name, seen) for name in rest}:
                yield f"{formal.name}.{kind}", "yes"
        elif position:
            name = node.input[position] if position < len(node.input) else ""
            # Data of the same kind as the first input may come from anywhere.
            is_data = first is not None and formal.type_variable == first.type_variable and formal.is_generic
            yield formal.name, _given(name, is_data, seen)


def _given(name: str, is_data: bool, seen: Seen) -> str:
    if not name:
        return "absent"
    how = seen.how(name)
    # An empty result is told of the node that gives it.
    if how in ("init", "node") and 0 in (seen.type_of(name).shape or ()):
        return "empty"
    return "data" if is_data and how in ("computed", "input") else how


def _given_among(name: str, seen: Seen) -> str:
    """Return how one of any number of inputs is given. An empty result is a factor of the node that gives it."""
    how = _given(name, True, seen)
    return "data" if how == "empty" and seen.how(name) not in BEFORE_THE_RUN else how


def _of_outputs(node: NodeProto, version: OperatorVersion | None, seen: Seen) -> Iterator[tuple[str, str]]:
    names = list(node.output)
    formals = () if version is None else version.outputs
    for position, formal in enumerate(formals):
        if formal.option == "variadic":
            rest = names[position:]
            yield f"{formal.name}.count", "one" if len(rest) == 1 else "two" if len(rest) == 2 else "more"
            if any(not name for name in rest):
                yield f"{formal.name}.absent", "yes"
            if any(name and not seen.readers(name) for name in rest):
                yield f"{formal.name}.unused", "yes"
        elif position or formal.option == "optional" or len(formals) > 1:
            name = names[position] if position < len(names) else ""
            yield formal.name, "absent" if not name else "used" if seen.readers(name) else "unused"
    if names and names[0] and node.op_type in kinds.SIZES:
        # Of the sizes themselves, runtimes tell no Cast from another one.
        for reader in {"Cast" if each == CAST_TO_INTEGERS else each for each in seen.readers(names[0])}:
            yield f"use.{'output' if not reader else reader if reader in _USES else 'whole'}", "yes"
    elif names and names[0] and are_sizes(node, seen) and "Cast" in seen.readers(names[0]):
        # A Cast to integers, as exporters write beside sizes, changes nothing that a runtime would tell apart.
        yield "use.Cast", "yes"


# The data -------------------------------------------------------------------------------------------------------------


def _of_data(node: NodeProto, data: ValueType, seen: Seen) -> Iterator[tuple[str, str]]:
    name = node.input[0]
    if not name:
        return
    how, rank = seen.how(name), data.rank
    if how in ("init", "node"):
        yield "data", "const"
    elif are_sizes(node, seen):
        yield "data", "sizes"
        # What is taken of the sizes matters, and not the others.
        taken = seen.contents(node.output[0] if node.op_type in _TAKING and node.output[0] else name)
        yield "known", "yes" if taken is not None and taken.integers is not None else "no"
    else:
        yield "data", "folded" if how in ("folded", "sized") else "data"
    if data.kind == "tensor":
        yield "rank", "unknown" if rank is None else str(rank)
    elif data.kind != "unknown":
        yield "rank", data.kind
    if 0 in (data.shape or ()):
        yield "empty", "yes"
