"""Reads a node by its signature: is it legal, and which rule infers it?

That depends on the node's signature: the operator, its attributes, how many outputs the node has, and which inputs are
given with which element types. It hardly ever depends on dimensions, so it is decided once for each signature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from splitgraph.inference.computed_values import FOLLOWED, is_computable
from splitgraph.inference.context import Rule, rule_of
from splitgraph.inference.memo import OMITTED, Knowledge, type_text
from splitgraph.inference.operators import Operator, operator_of
from splitgraph.inference.repairs import are_measured, as_int64, newer_version
from splitgraph.inference.rules.arithmetic import is_integer_type
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.attributes import HOLDING_GRAPHS, attribute_value
from splitgraph.model.onnx_proto import AttributeProto, NodeProto
from splitgraph.model.schemas import OperatorVersion, versions_of
from splitgraph.model.schemas.allowed_values import fault_of_value
from splitgraph.model.schemas.fit import Misfit, misfits, wrong_type
from splitgraph.model.scopes import OPERATORS_WITH_BODIES, may_have_bodies, subgraphs
from splitgraph.model.value_type import ValueType
from splitgraph.splits import openvino_split_1

# Operators with graphs as attributes, which are too long to compare; and SequenceAt, whose position is recorded.
NEVER_ALIKE = OPERATORS_WITH_BODIES | {"SequenceAt"}
_REFERENCE, _TYPE = attrgetter("ref_attr_name"), attrgetter("type")
# How names of attributes begin that tools keep for themselves, which onnx's checker accepts on every operator.
_INTERNAL = "__"
# Required by the schema of Resize-11 only: runtimes took them for the optional inputs that they are from 13 on, and
# exporters leave them out.
_TAKEN_AS_OPTIONAL = {("", "Resize"): ("roi", "scales")}
_HOW_TO_TYPE = "Set AttributeProto.type of the attribute, as onnx.helper.make_attribute does."
_REFUSED = "onnxruntime refuses the node"


# Kinds and element types of outputs.
OutputTypes = tuple[tuple[str, str | None], ...]
Bindings = Mapping[str, AttributeProto]


class Reading:
    """All that the signature of a node decides.

    operator, rule: the operator, and the rule that infers it, if there is one. attributes, values: the attributes as
    written, by name; a value is read when somebody asks for it. refers: an attribute refers to one of the function
    around the node, so that the reading is for one call only.

    refusal: code, text and help of a finding. If there is one, nothing is read of the node: there is no such operator,
    or its attributes are not sound. lacking: the number of tensors without elements among the attributes. misfit: what
    does not fit the schema. tolerated: what fits no schema, but engines run. mistyped: the text about a forbidden type
    of an input. is_lenient: runtimes read the node in spite of that type, all in one way.

    may_need_repair: `find_repairs` has to look at the node. is_computable: onnx's evaluator computes the outputs if the
    inputs are known. has_bodies: the node has graphs that are walked. is_repeatable: the memo may hold its visit.
    """

    __slots__ = (
        "_output_faults",
        "attributes",
        "has_bodies",
        "is_computable",
        "is_lenient",
        "is_repeatable",
        "lacking",
        "may_need_repair",
        "misfit",
        "mistyped",
        "operator",
        "refers",
        "refusal",
        "rule",
        "tolerated",
        "values",
        "walks_bodies",
    )

    def __init__(
        self, state: WalkState, imports: Mapping[str, int], node: NodeProto, given: Sequence[Knowledge]
    ) -> None:
        operator = self.operator = operator_of(state, imports, node)
        domain, op_type, schema, written = operator.domain, node.op_type, operator.schema, node.attribute[:]
        self.rule: Rule | None = None if operator.outgrew_rule else rule_of(domain, op_type)
        self.attributes = {attribute.name: attribute for attribute in written}
        self.values: dict[str, Any] = {}
        self.refers = any(map(_REFERENCE, written))
        self.lacking = 0
        self.refusal = (operator.finding, operator.message, operator.help) if operator.finding else None
        if self.refusal is None and written:
            self.refusal = self._unsound(state, node)
        self.tolerated: list[tuple[str, str]] = []
        self.misfit: tuple[str, str] | None = None
        self.mistyped: str | None = None
        self.is_lenient = self.may_need_repair = False
        if schema is not None and self.refusal is None:
            self.may_need_repair = domain == "" and _may_need_repair(schema, self)
            if not self.refers:
                self.tolerated, self.misfit = fit(operator, self.attributes, node, given, None)
            self._check_inputs(schema, given)
        holds_graphs = not HOLDING_GRAPHS.isdisjoint(map(_TYPE, written))
        self.is_computable = not (domain or self.refers or holds_graphs) and self._is_computable(op_type, given)
        self.has_bodies = holds_graphs and may_have_bodies(node, state.task.plain_functions) and any(subgraphs(node))
        # True for a node whose rule walks its bodies, if it has any.
        self.walks_bodies = self.rule is not None and domain in ("", openvino_split_1.DOMAIN)
        is_call = (domain, op_type) in state.task.function_names
        self.is_repeatable = not (self.has_bodies or is_call or op_type in NEVER_ALIKE)
        # The fault of one of the outputs, by the kinds and element types of all.
        self._output_faults: dict[OutputTypes, str | None] = {}

    def _unsound(self, state: WalkState, node: NodeProto) -> tuple[str, str, str | None] | None:
        """Return what is wrong with the attributes. Each must have a type, must be there only once, and must hold
        well-formed tensors.
        """
        operator, op_type, written = self.operator, node.op_type, node.attribute
        is_known = operator.schema is not None or operator.variant is not None or operator.function is not None
        untyped = [attribute.name for attribute in written if not attribute.type and not attribute.ref_attr_name]
        if is_known and untyped:
            # Runtimes refuse it. To guess the type, or to ignore the attribute, might change the meaning.
            return "SG212", f"attribute {untyped[0]!r} of {op_type} has no type; a type is required", _HOW_TO_TYPE
        # The path of a graph has the name of its attribute, so that names must differ for any operator.
        if len(self.attributes) < len(written) and (is_known or any(subgraphs(node))):
            # onnxruntime refuses it, the reference evaluator takes the last one, OpenVINO the first one.
            (twice, _), *_ = Counter(attribute.name for attribute in written).most_common(1)
            return "SG212", f"{op_type} has the attribute {twice!r} more than once", "Remove all of them but one."
        tensors = state.record.tensors
        before = tensors.lacking
        malformed = tensors.of_node(node)
        # Counted for each node, not for each signature.
        self.lacking, tensors.lacking = tensors.lacking - before, before
        return None if malformed is None else ("SG111", malformed, None)

    def _check_inputs(self, schema: OperatorVersion, given: Sequence[Knowledge]) -> None:
        """Find an input whose type the schema does not allow, or differs from that of an input which it must match."""
        texts = tuple([None if known is OMITTED else known.text for known in given])
        mismatch = wrong_type(schema, texts)
        if mismatch is None:
            return
        self.mistyped = f"{schema.op}-{self.operator.since_version}: {mismatch}"
        how = _how_it_is_run(schema, texts, self.operator.opset)
        if how is not None:
            self.is_lenient = True
            self.mistyped += f". OpenVINO and the reference evaluator read the node {how}; {_REFUSED}"

    def _is_computable(self, op_type: str, given: Sequence[Knowledge]) -> bool:
        if not given or not is_computable(op_type, self.operator.since_version):
            return False
        first = given[0].type
        if op_type in FOLLOWED and first is not None and is_integer_type(first.dtype):
            return False
        # The specification of SplitToSequence ignores keepdims beside lengths; runtimes do not.
        return not (op_type == "SplitToSequence" and len(given) > 1 and "keepdims" in self.attributes)

    def fault_of_outputs(self, names: Sequence[str], outputs: Sequence[ValueType]) -> str | None:
        """Return the text about an output whose type the schema does not allow. An attribute may ask for
        such a type.
        """
        types = tuple([(value.kind, value.dtype) for value in outputs])
        if types in self._output_faults:
            return self._output_faults[types]
        schema = self.operator.schema
        if schema is None:
            return None
        # A rule gives the outputs of every version, and a node may leave some of them out.
        asked = [type_text(value) if name else None for name, value in zip(names, outputs, strict=False)]
        fault = wrong_type(schema, tuple(asked), "output")
        text = None if fault is None else f"{schema.op}-{self.operator.since_version}: {fault}"
        if "" not in names and all(value.element is None for value in outputs):
            self._output_faults[types] = text
        return text


class Readings:
    """The readings of nodes in graphs with the same opset imports. Each is made once."""

    def __init__(self, imports: Mapping[str, int]) -> None:
        self._imports = imports
        self._by_signature: dict[tuple[object, ...], Reading] = {}

    def of(
        self, state: WalkState, node: NodeProto, given: Sequence[Knowledge], form: tuple[object, ...] | None
    ) -> Reading:
        """Return the reading of a node. form: operator, number of outputs, and the bytes of each attribute; None if no
        other node is read alike.
        """
        if form is None:
            return Reading(state, self._imports, node, given)
        texts: list[object] = [known.text for known in given]
        if OMITTED in given:
            # An input that a function call omits has a name in the body, and findings use that name.
            texts = [
                ("", name) if known is OMITTED else known.text for name, known in zip(node.input, given, strict=True)
            ]
        signature = (*form, *texts)
        reading = self._by_signature.get(signature)
        if reading is None:
            reading = Reading(state, self._imports, node, given)
            if not reading.refers:
                self._by_signature[signature] = reading
        return reading


def fit(
    operator: Operator,
    attributes: Mapping[str, AttributeProto],
    node: NodeProto,
    given: Sequence[Knowledge],
    bindings: Bindings | None,
) -> tuple[list[tuple[str, str]], tuple[str, str] | None]:
    """Check whether the numbers of inputs and outputs and the attributes fit the schema.

    Return two things: texts about what fits no schema but engines run, with these engines; then the code and text of
    the first fault, or None. bindings: the attributes of the call.
    """
    schema, tolerated = operator.schema, list[tuple[str, str]]()
    if schema is None:
        return tolerated, None
    label = f"{node.op_type}-{operator.since_version}"
    inputs = ["" if each is OMITTED else name or "_" for each, name in zip(given, node.input, strict=True)]
    known = {
        name: (bindings or {}).get(written.ref_attr_name) if written.ref_attr_name else written
        for name, written in attributes.items()
        if bindings is None or written.ref_attr_name in ("", *bindings)
    }
    told = (_misfit_text(misfit, schema, label, node) for misfit in misfits(schema, known, inputs, node.output))
    if (fault := next(filter(None, told), None)) is not None:
        return tolerated, ("SG212", fault)
    for name, bound in known.items():
        if bound is None or name not in operator.constrained_attributes or name not in schema.attributes:
            continue
        wrong = fault_of_value(schema.domain, schema.op, operator.since_version, name, attribute_value(bound))
        if wrong is not None and not wrong.run_by:
            return tolerated, ("SG302", f"{label}: {wrong.text}")
        if wrong is not None:
            tolerated.append((f"{label}: {wrong.text}", wrong.run_by))
    return tolerated, None


def _misfit_text(misfit: Misfit, schema: OperatorVersion, label: str, node: NodeProto) -> str | None:
    """Return the text about a misfit; None for one that runtimes pass over."""
    name, place = misfit.name, misfit.position
    if misfit.kind == "attribute":
        if misfit.what == "other":
            return f"attribute {name!r} of {label} has the wrong type"
        if misfit.what == "less":
            return f"{label} needs the attribute {name!r}"
        return None if name.startswith(_INTERNAL) else _unknown_attribute(schema, name)
    if misfit.kind == "output":
        allowed = _range(schema.min_outputs, schema.max_outputs)
        told = f"{label} has {allowed} {'output' if allowed == '1' else 'outputs'}, not {len(node.output)}"
        # An output without a name is one that nobody reads.
        return None if schema.min_outputs <= len(node.output) <= schema.max_outputs else told
    if not schema.min_inputs <= len(node.input) <= schema.max_inputs:
        return f"{label} takes {_range(schema.min_inputs, schema.max_inputs)} inputs, not {len(node.input)}"
    if name in _TAKEN_AS_OPTIONAL.get((schema.domain, schema.op), ()):
        return None
    # In the body of a function, an input that the call omits still has a name.
    called = ", which the function call omits" if node.input[place] else ""
    if schema.inputs[min(place, len(schema.inputs) - 1)].option == "single":
        return f"{label} needs the input {name!r}{called}"
    return f"{label} has an empty name for input {place}{called}; each of {name!r} must be given"


def _may_need_repair(schema: OperatorVersion, reading: Reading) -> bool:
    """Return True for a Split, which may lack something, and for a node with an attribute or a value that its version
    does not allow.
    """
    if schema.op == "Split" or not reading.attributes.keys() <= schema.attributes.keys():
        return True
    return any(
        not attribute.ref_attr_name
        and fault_of_value("", schema.op, schema.since_version, name, attribute_value(attribute)) is not None
        for name, attribute in reading.attributes.items()
        if name in reading.operator.constrained_attributes
    )


def _unknown_attribute(schema: OperatorVersion, name: str) -> str:
    """Return the text of an error about an attribute that the version does not have. To ignore it might change the
    node's meaning.
    """
    text = f"{schema.op}-{schema.since_version} has no attribute {name!r}"
    those = [version.since_version for version in versions_of(schema.domain, schema.op) if name in version.attributes]
    if not those:
        return text
    return f"{text}; {schema.op}-{(min if min(those) > schema.since_version else max)(those)} has it"


def _range(fewest: int, most: int) -> str:
    if most >= 2**31 - 1:
        return f"{fewest} or more"
    return str(fewest) if fewest == most else f"{fewest} to {most}"


@lru_cache(maxsize=4096)
def _how_it_is_run(schema: OperatorVersion, given: tuple[str | None, ...], opset: int) -> str | None:
    """Return how runtimes read a node with forbidden types; None if they do not read it, or disagree."""
    wide = as_int64(schema, given, opset)
    if wide is not None and wrong_type(schema, wide) is None:
        return "as if int32 were int64"
    newer = newer_version(schema, opset)
    if newer is not None and are_measured(schema, given) and wrong_type(newer, given) is None:
        return f"like {schema.op}-{newer.since_version}"
    return None


def types_fit(schema: OperatorVersion, given: Sequence[Knowledge]) -> bool:
    """Return True if a version takes inputs of these types, as far as they are known."""
    return wrong_type(schema, tuple([None if known is OMITTED else known.text for known in given])) is None
