"""Merges declared and inferred types, and reports contradictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple
from weakref import ref

from splitgraph.dim import Dim, DimLike, Obligation, symbol, symbols_of
from splitgraph.dim.printing import is_identifier
from splitgraph.findings.diagnostics import Diagnostic, Severity, diagnostic
from splitgraph.inference.graph_walk import GraphWalk, symbols_of_type
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.onnx_proto import GraphProto, TensorProto, ValueInfoProto
from splitgraph.model.scopes import MAIN, MOST_NESTED, GraphPath
from splitgraph.model.value_type import UNKNOWN, ValueType, tensor
from splitgraph.model.values import nested_types, tensor_type, value_type

_BRANCHES = ("then_branch", "else_branch")

# Reports that an inferred type contradicts the declared one: the graph, the name, both types, the location and the
# severity.
Report = Callable[[GraphWalk, str, ValueType, ValueType, str, Severity], None]


def reconcile(
    values: GraphWalk,
    name: str,
    inferred: ValueType,
    declared: ValueType,
    location: str,
    *,
    passed_in: bool = False,
    of_split: bool = False,
) -> ValueType:
    """Merge an inferred and a declared type. The inferred type wins where both state something. A contradiction is
    reported.

    Declared names and expressions are adopted for dimensions that inference does not know. There are two exceptions,
    which would claim an equality without proof: the body of a loop, and names of the model's inputs. passed_in: the
    inferred type is passed to a graph's input; for the main graph, it is a shape that splitgraph's caller gives.
    of_split: the value is a part of a split.
    """
    declaration = Declaration(name, declared, location, passed_in, of_split)
    report = _report_given if passed_in and values.path == MAIN else _report
    return _reconcile(values, inferred, declaration, report)


def check_default(values: GraphWalk, name: str, default: ValueType, declared: ValueType) -> None:
    """Report an initializer whose type differs from the declared type of its input. No runtime loads such a model."""
    if _fits(default, declared):
        return
    text = f"the initializer {name!r} is {default}, but the input of that name is declared as {declared}"
    help = "Correct the declared type of the input, or the initializer, which is its default."
    values.report(diagnostic("SG301", text, values.location, help=help))


def check_sizes(values: GraphWalk, name: str, declared: ValueType, known: ValueType) -> None:
    """Report input dimensions that become negative with the caller's sizes."""
    for written, dim in zip(declared.shape or (), known.shape or (), strict=False):
        if isinstance(dim, int) and dim < 0:
            text = f"dimension {written} of the input {name!r} is {dim} with the sizes given"
            help = f"Give sizes with which {written} is at least 0."
            values.report(diagnostic("SG304", text, values.location, help=help))


def _fits(default: ValueType, declared: ValueType) -> bool:
    if declared.dtype is not None and default.dtype != declared.dtype:
        return False
    if declared.shape is None:
        return True
    pairs = zip(default.shape or (), declared.shape, strict=False)
    return default.rank == declared.rank and all(mine == theirs for mine, theirs in pairs if isinstance(theirs, int))


def with_demand(known: ValueType, demanded: ValueType) -> ValueType:
    """Return a type whose unknown parts are filled in with what is demanded."""
    if known.kind == "unknown":
        return demanded
    if known.kind != "tensor":
        return known
    return tensor(known.dtype or demanded.dtype, demanded.shape if known.shape is None else known.shape)


class Declaration(NamedTuple):
    """The declared type of a value. location: of the node or graph that defines the value. passed_in: the value is an
    input of its graph. of_split: a split defines it.
    """

    name: str
    type: ValueType
    location: str
    passed_in: bool
    of_split: bool


def _reconcile(values: GraphWalk, inferred: ValueType, declaration: Declaration, report: Report) -> ValueType:
    """Return the type of a value from its inferred and its declared type. Where they contradict each other, report that
    and take the inferred one.
    """
    name, declared, location = declaration[:3]
    if declared.kind == "unknown":
        return inferred
    if inferred.kind == "unknown":
        return declared
    if inferred.kind != declared.kind or (inferred.dtype and declared.dtype and inferred.dtype != declared.dtype):
        # OpenVINO infers every port of an IR anew; other runtimes do not load what contradicts a declared element type.
        report(values, name, inferred, declared, location, "warning" if values.state.task.declared_types else "error")
        return inferred
    merged = ValueType(
        inferred.kind, inferred.dtype or declared.dtype, inferred.shape, inferred.element or declared.element
    )
    if declared.shape is None:
        return merged
    if inferred.shape is None:
        return merged.with_shape(declared.shape)
    if len(inferred.shape) != len(declared.shape):
        _report_shape(values, inferred, declaration, report)
        return merged
    dims = [
        _merge_number(values, mine, theirs, declaration)
        if isinstance(theirs, int)
        else _merge(values, mine, theirs, location)
        for mine, theirs in zip(inferred.shape, declared.shape, strict=True)
    ]
    if None in dims:
        _report_shape(values, inferred, declaration, report)
        return merged
    if values.state.task.is_reported:
        _note_symbolic(values, name, inferred, declared, location, report)
        if values.path == MAIN:
            _note_names(values, inferred, declared, location)
    return merged.with_shape(dims)


def _merge_number(values: GraphWalk, inferred: DimLike | None, number: int, declaration: Declaration) -> DimLike | None:
    """Merge an inferred dimension with a declared number. Return None if the dimension cannot be that number.

    An unknown dimension of this value only becomes the number. If other values share the dimension, the number is an
    obligation, which changes no type. A dimension that the model leaves to its caller stays open, because runtimes
    accept any size; inside a body that receives it, it is the number.
    """
    if not isinstance(inferred, Dim):
        return number if inferred in (None, number) else None
    if values.facts.prove_ne(inferred, number):
        return None
    state, obligation, known = values.state, Obligation(inferred, "==", number), _solved(values, inferred)
    unnamed = symbols_of(known) & state.symbols.generated
    if unnamed == symbols_of(known) and not values.holds_any(unnamed):
        return None if values.facts.require(obligation) == "contradiction" else number
    is_open = not symbols_of(known).isdisjoint(state.symbols.open_dimensions | state.task.input_dimensions)
    if is_open and not values.facts.prove_eq(inferred, number):
        _report_demand(values, Obligation(known, "==", number), declaration)
        if not declaration.passed_in:
            return inferred
    if unnamed:
        state.record.journal.unrepeatable += obligation not in state.symbols.declared_numbers
        state.symbols.declared_numbers.add(obligation)
    return None if values.assume(obligation, declaration.location) == "contradiction" else number


def _solved(values: GraphWalk, dim: Dim) -> DimLike:
    """Return the dimension in terms of what its symbols equal. It stays as it is if a divisor would become 0."""
    try:
        return values.facts.solution(dim)
    except ZeroDivisionError:
        return dim


def _merge(values: GraphWalk, inferred: DimLike | None, declared: Dim | None, location: str) -> DimLike | None:
    """Merge a dimension for which no number is declared. Return None for a contradiction."""
    if inferred is None or declared is None or inferred == declared:
        return values.fresh() if inferred is None and declared is None else (declared if inferred is None else inferred)
    if isinstance(inferred, Dim) and _is_unknown(values, inferred):
        if isinstance(declared, Dim) and (values.is_repeated or _claims_equality(values, declared)):
            # A name has one value in a run, that of the input which has it; what is unknown here may have another one,
            # or one in each iteration, and names are often careless.
            return inferred
        if isinstance(declared, Dim) and _is_taken(values, inferred, declared):
            return inferred
        # A dimension of which nothing is known takes the author's word; other values that share it keep the generated
        # name, and the obligation says that they are equal.
        known = values.facts.solution(inferred)
        if values.facts.require(Obligation(inferred, "==", declared)) == "contradiction":
            return None
        # What is known of it from elsewhere is known of the name, too.
        if declared == symbol(str(declared)):
            is_new = known not in (inferred, declared) and values.path == MAIN
            values.state.symbols.definitions[str(declared)] = (known, location) if is_new else None
        return declared
    return inferred


def _claims_equality(values: GraphWalk, declared: Dim) -> bool:
    """Return True if a declared dimension claims something about the inputs' dimensions that nothing proves. `infer`
    believes an expression like a number, because its author computed it; walks that assume nothing do not.
    """
    if symbols_of(declared).isdisjoint(values.state.task.input_dimensions):
        return False
    return declared == symbol(str(declared)) or not values.state.task.assumes_nonempty


def _is_taken(values: GraphWalk, inferred: Dim, declared: Dim) -> bool:
    """Return True if the name already stands for another unknown dimension: some exporters give the names of the first
    output to all outputs of a node. Two kinds of names do not count: names in a branch that never runs together with
    this one, and formulas in the exporter's own language.
    """
    name, own = str(declared), values.path
    adopted = values.state.symbols.adopted.setdefault(name, {})
    if not is_identifier(name):
        values.state.record.journal.unrepeatable += 1
        adopted[own] = ref(values)
        return False
    others = [p for p, graph in adopted.items() if (p != own or graph() is values) and not _excludes(p, own)]
    if others and not values.facts.prove_eq(inferred, declared):
        return True
    values.state.record.journal.unrepeatable += 1
    adopted[own] = ref(values)
    return False


def _excludes(a: GraphPath, b: GraphPath) -> bool:
    """Return True if two graphs are in different branches of one node."""
    for left, right in zip(a, b, strict=False):
        if left != right:
            return left in _BRANCHES and right in _BRANCHES
    return False


def _is_unknown(values: GraphWalk, dim: Dim) -> bool:
    return str(dim) in values.state.symbols.generated


def _note_symbolic(
    values: GraphWalk, name: str, inferred: ValueType, declared: ValueType, location: str, report: Report
) -> None:
    """Warn if a declared name can never be the inferred dimension. Names are often careless, so this is no error."""
    for mine, theirs in zip(inferred.shape or (), declared.shape or (), strict=True):
        if isinstance(theirs, Dim) and mine is not None and mine != theirs and values.facts.prove_ne(mine, theirs):
            report(values, name, inferred, declared, location, "warning")
            return


def _note_names(values: GraphWalk, inferred: ValueType, declared: ValueType, location: str) -> None:
    """Record what declared names stand for, unless an input of the model gives them their value.

    Runtimes do not check such names. So they are only explained, and nothing is concluded from them. A name with two
    values is explained only if the two are proved equal.
    """
    state = values.state
    for mine, theirs in zip(inferred.shape or (), declared.shape or (), strict=True):
        name = str(theirs)
        if not isinstance(mine, Dim) or theirs != symbol(name) or mine == theirs or _is_unknown(values, mine):
            continue
        if name in state.task.input_dimensions:
            continue
        known = state.symbols.definitions.get(name, (mine, location))
        same = known is not None and values.facts.prove_eq(known[0], mine)
        state.symbols.definitions[name] = known if same else None


def _report(
    values: GraphWalk, name: str, inferred: ValueType, declared: ValueType, location: str, severity: Severity
) -> None:
    values.report(_contradiction(name, inferred, declared, location, severity))


def _contradiction(
    name: str, inferred: ValueType, declared: ValueType, location: str, severity: Severity
) -> Diagnostic:
    text = f"{name!r} is declared as {declared}, but inferred as {inferred}"
    return diagnostic("SG301", text, location, severity=severity)


def _report_shape(values: GraphWalk, inferred: ValueType, declaration: Declaration, report: Report) -> None:
    """Report a declared shape that is impossible. Runtimes warn and follow the nodes. It is an error in two cases:
    splitgraph's caller gave the shape, or the value is a part of a split, whose lengths contradict the declaration.
    """
    name, declared, location = declaration[:3]
    if report is not _report:
        report(values, name, inferred, declared, location, "error")
        return
    finding = _contradiction(name, inferred, declared, location, "error" if declaration.of_split else "warning")
    values.state.record.report(finding, is_misdeclared=True)


def _report_demand(values: GraphWalk, demand: Obligation, declaration: Declaration) -> None:
    """Warn about a declaration that is right for only one size of an open dimension, unless an earlier warning covers
    it.
    """
    state, name = values.state, declaration.name
    if state.record.quiet or state.record.muted:
        return
    answer = state.symbols.declared_sizes.require(demand)
    if answer == "proved":
        return
    # An equal call reports nothing new, so it must not repeat this warning.
    state.record.journal.unrepeatable += answer == "assumed"
    unnamed = symbols_of(demand.lhs) & state.symbols.open_dimensions
    if unnamed:
        holder, axis = values.holder_of(unnamed)
        condition, where = f"for one size only of dimension {axis} of {holder!r}", f"for {holder!r}"
    else:
        condition, where = f"only where {demand}", "for the input"
    text = f"{name!r} is declared as {declaration.type}, which holds {condition}"
    help = f"Leave the dimension open in the declaration of {name!r}, too, or declare the size {where} as well."
    finding = diagnostic("SG301", text, declaration.location, severity="warning", help=help)
    # What a body declares of its inputs is taken for granted in the body: only the graph around it can prove it.
    holder_of_facts = values.parent if declaration.passed_in else values
    if holder_of_facts is not None:
        state.record.size_conditions[finding] = (holder_of_facts.facts, demand)
    values.report(finding)


def settle_size_conditions(state: WalkState) -> None:
    """Take back each warning about a declaration of one size if the facts at the end prove that size."""
    if not state.record.size_conditions:
        return
    proved = {
        warning
        for warning, (facts, demand) in state.record.size_conditions.items()
        if facts.prove_eq(demand.lhs, demand.rhs)
    }
    state.record.diagnostics[:] = [warning for warning in state.record.diagnostics if warning not in proved]


def _report_given(
    values: GraphWalk, name: str, given: ValueType, declared: ValueType, location: str, severity: Severity
) -> None:
    """Report that the shape that the caller gives for an input contradicts the declared one."""
    dims, known = given.shape or (), declared.shape or ()
    if len(dims) == len(known):
        text, help = _differing_dims(values, name, dims, declared)
    else:
        rank = f"has rank {len(dims)}; the model declares {declared}, of rank {len(known)}"
        text = f"the shape of the input {name!r} {rank}"
        help = f"Give {len(known)} dimensions for {name!r}, or correct its declared shape in the model."
    values.report(diagnostic("SG304", text, location, severity=severity, help=help))


def _differing_dims(
    values: GraphWalk, name: str, given: Sequence[DimLike | None], declared: ValueType
) -> tuple[str, str]:
    """Return the message about the given dimensions of an input that differ from the declared ones, and its advice."""
    known = declared.shape or ()
    inputs = values.state.task.model.graph.input
    # As the model declares them, before the caller's sizes are put in.
    written = next(value_type(value.type).shape or () for value in inputs if value.name == name)
    wrong = [axis for axis, dim in enumerate(given) if dim is not None and _excluded(values, dim, known[axis])]
    bound = ["" if mine == size else f", which is {size}" for mine, size in zip(written, known, strict=True)]
    differing = "; ".join(
        f"dimension {axis} is given as {given[axis]}, declared as {written[axis]}{bound[axis]}" for axis in wrong
    )
    shown = declared.with_shape(written)
    text = f"the shape given for the input {name!r} contradicts the declared {shown}: {differing}"
    allowed = ", ".join("?" if dim is None else str(dim) for dim in written)
    return text, f"Give {name!r} a shape that fits [{allowed}], or correct its declared shape in the model."


def _excluded(values: GraphWalk, given: DimLike, declared: DimLike | None) -> bool:
    """Return True if a given dimension is certainly not the declared one."""
    return declared is not None and given != declared and values.facts.prove_ne(given, declared)


def define_graph_values(values: GraphWalk, graph: GraphProto, given: Sequence[ValueType | None] | None = None) -> None:
    """Define a graph's inputs, initializers and declared types. given: the types that are passed to the inputs of a
    subgraph.
    """
    assumed = values.state.task.assumes_defaults and values.path == MAIN
    constant_inputs = assumed or values.state.task.model.ir_version < 4
    inputs = {value.name for value in graph.input}
    defaults = {
        initializer.name: tensor_type(initializer) for initializer in graph.initializer if initializer.name in inputs
    }
    for position, value in enumerate(graph.input):
        passed = given[position] if given is not None and position < len(given) else None
        default = defaults.get(value.name)
        if default is not None:
            check_default(values, value.name, default, value_type(value.type))
        known = _input_type(values, value, passed, default if constant_inputs else None)
        if values.state.task.sizes.bound and values.path == MAIN:
            check_sizes(values, value.name, value_type(value.type), known)
        values.define(value.name, known, values.location)
    if values.parent is None:
        values.state.symbols.open_dimensions = frozenset(values.state.symbols.generated)
        of_inputs = frozenset[str]().union(*map(symbols_of_type, values.types.values()))
        values.state.symbols.named_dimensions = of_inputs - values.state.symbols.open_dimensions
    for finding in values.state.record.tensors.of_initializers(graph, values.location):
        values.report(finding)
    first: dict[str, TensorProto] = {}
    for initializer in graph.initializer:
        name = initializer.name
        earlier = first.setdefault(name, initializer)
        if values.path == MAIN and earlier is not initializer and earlier == initializer:
            values.report(_same_twice(name, values.location))
            continue
        if name in inputs and earlier is not initializer:
            # The input defines the name, so that no second definition is found below.
            text = f"the initializer {name!r} is there twice, with different elements"
            values.report(diagnostic("SG104", text, values.location))
        if name not in inputs:
            values.define(name, tensor_type(initializer), values.location)
        # From IR 4 on an initializer that is also an input is a default that a caller may override, so no constant.
        if name not in inputs or constant_inputs:
            values.constants[name] = initializer
    for sparse in graph.sparse_initializer:
        if sparse.values.name not in inputs:
            dense = ValueType("tensor", tensor_type(sparse.values).dtype, tuple(sparse.dims))
            values.define(sparse.values.name, dense, values.location)
    for value in (*graph.value_info, *graph.output):
        if value.type.WhichOneof("value") is not None:
            values.declared[value.name] = _declared(values, value)
    # ONNX cannot write every type of other formats.
    for name, given_type in values.state.task.given_types.get(values.path, {}).items():
        written = values.types.get(name)
        if written is None:
            values.define(name, values.state.task.bind(given_type), values.location)
        elif written.dtype is None:
            values.types[name] = replace(written, dtype=given_type.dtype)
    values.declared.update(values.state.task.declared_types.get(values.path, {}))
    take_demands(values)


def take_demands(values: GraphWalk) -> None:
    """Add what nodes demand (`demanded_types.py`) to the types of inputs and to declared types."""
    for name, demanded in values.state.task.demands.get(values.path, {}).items():
        if name in values.types:
            values.types[name] = values.complete(with_demand(values.types[name], demanded))
        else:
            values.declared[name] = with_demand(values.declared.get(name, UNKNOWN), demanded)


def _same_twice(name: str, location: str) -> Diagnostic:
    """Return the warning about two equal initializers of one name. Runtimes load the graph, whichever one they take."""
    text = f"the initializer {name!r} is there twice, with the same elements"
    return diagnostic("SG104", text, location, severity="warning", help="Remove one of the two.")


def _input_type(
    values: GraphWalk, value: ValueInfoProto, passed: ValueType | None, constant: ValueType | None
) -> ValueType:
    """Return the type of a graph's input. passed: the type that is passed to it. constant: the type of the initializer
    that it always is.
    """
    declared = _declared(values, value, is_believed=values.parent is None)
    if passed is not None:
        return reconcile(values, value.name, passed, declared, values.location, passed_in=True)
    declared = values.state.task.bind(declared)
    is_named = any(isinstance(dim, Dim) for dim in declared.shape or ())
    return declared if constant is None or is_named else constant


def _declared(values: GraphWalk, value: ValueInfoProto, *, is_believed: bool = False) -> ValueType:
    declared = value_type(value.type)
    if declared is UNKNOWN and (depth := nested_types(value.type)) > MOST_NESTED:
        text = f"the type of {value.name!r} is nested {depth:,} levels deep; at most {MOST_NESTED} levels are supported"
        values.report(diagnostic("SG114", text, values.location))
    if not values.is_repeated:
        # In a loop, a name may have another value in each iteration, so the caller's size is not its value.
        declared = values.state.task.bind(declared)
    return declared if is_believed or values.state.task.believes_shapes else declared.with_shape(None)
