"""The end of a conversion: the IR version of the result, raised where its opset needs that, lowered by a downgrade, as
exporters do; names for omitted outputs; the refusal of operators that are newer than this release.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from splitgraph.conversion.inlining import inline_functions, inlined_text
from splitgraph.conversion.operators.registry import UNDECIDED, decision
from splitgraph.conversion.plan import Plan, opset_of
from splitgraph.conversion.rewrite import Change, Rewrite
from splitgraph.findings.diagnostics import ConversionError, Diagnostic, SplitgraphError, diagnostic
from splitgraph.inference import Walked
from splitgraph.model.names import FreshNames, named_outputs, used_names
from splitgraph.model.onnx_proto import IR_VERSION, AttributeProto, ModelProto, NodeProto, TensorProto, TypeProto
from splitgraph.model.schemas import OperatorVersion
from splitgraph.model.schemas.fit import unnamed_outputs
from splitgraph.model.schemas.history import meant_version, versions_between
from splitgraph.model.schemas.table import minimum_ir_version
from splitgraph.model.scopes import GraphPath, Scope, node_label, opset_imports, plain_domain, scopes
from splitgraph.model.tensor_data import is_in_other_file
from splitgraph.options import IRVersion
from splitgraph.splits import SPLIT_OPERATORS, variadic_split_1, variant_at, variant_of
from splitgraph.splits.variadic_split_1 import variadic_function


def check_ir_version(version: IRVersion) -> None:
    """Raise SplitgraphError for an IR version that does not exist."""
    if version is None or version == "keep":
        return
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= IR_VERSION:
        text = f"there is no IR version {version!r}; this onnx knows 1 to {IR_VERSION}, and 'keep' for the model's own"
        raise SplitgraphError(text)


def convert_ir_version(model: ModelProto, version: IRVersion) -> Rewrite:
    """Return a copy of the model with another IR version, and with nothing else changed that readers of this version
    understand; the model itself is not changed. Raises ConversionError with every part that needs a newer version,
    SplitgraphError for a version that does not exist.
    """
    check_ir_version(version)
    converted = ModelProto()
    converted.CopyFrom(model)
    opset = opset_imports(model.opset_import)
    if version != model.ir_version:
        converted, told = fit_ir_version(converted, version, opset.get(""), model.ir_version, lowers=False)
    else:
        told = []
    return Rewrite(converted, (), tuple(told), None, dict(opset), dict(opset))


def fit_ir_version(
    model: ModelProto, version: IRVersion, opset: int | None, own: int, *, lowers: bool
) -> tuple[ModelProto, list[Diagnostic]]:
    """Edit the model to have its new IR version. Return the model and notes.

    version: the requested one. opset: of the model; None where it imports no ai.onnx. own: the IR version before the
    conversion. lowers: whether the conversion went to an older opset, which never raises the IR version.
    Raises ConversionError with every part of the model that needs a newer version.
    """
    if version is None or version == "keep":
        if lowers:
            model.ir_version = own
        if version == "keep" or not lowers or opset is None or own <= minimum_ir_version(opset):
            return model, []
    wanted = version if isinstance(version, int) else minimum_ir_version(opset or 1)
    is_asked = version is not None
    needs = ir_needs(model, wanted)
    of_opset = (minimum_ir_version(opset or 1), f"opset {opset}") if is_asked else (1, "")
    least, reason_of_version = max((wanted, ""), needs.of_others, of_opset)
    if is_asked and least > wanted:
        raise _refusal([need for need in (of_opset, needs.of_others) if need[0] > wanted], wanted, opset)
    notes: list[Diagnostic] = []
    if least < needs.of_functions[0]:
        try:
            names = inlined_text(model)
            model = inline_functions(model, ours_too=True)
            notes.append(diagnostic("SG413", f"IR version {least} has no local functions: {names}", severity="info"))
        except ValueError as error:
            reason = f"{needs.of_functions[1]}, which onnx cannot inline ({error})"
            if is_asked:
                raise _refusal([(needs.of_functions[0], reason)], wanted, opset) from error
            least, reason_of_version = needs.of_functions[0], reason
    if least < INITIALIZER_IR_VERSION:
        _list_initializers(model)
    model.ir_version = least
    return model, [*notes, *_told(needs, least, reason_of_version, wanted)]


def kept_version_notes(model: ModelProto, opset: int, version: IRVersion) -> list[Diagnostic]:
    """Return the note for a model that stays at its opset and has an IR version that runtimes of that time refuse."""
    came_with = minimum_ir_version(opset)
    if version is not None or model.ir_version <= came_with:
        return []
    text = f"the IR version {model.ir_version} stays, and opset {opset} came with {came_with}"
    help = f"Give --ir-version {came_with} (ir_version={came_with}) for runtimes that read nothing newer."
    return [diagnostic("SG415", text, severity="info", help=help)]


def _refusal(needs: list[Need], wanted: int, opset: int | None) -> ConversionError:
    least = max(needs)[0]
    help = f"Ask for IR version {least} or newer."
    if opset is not None and minimum_ir_version(opset) > wanted:
        older = max((past for past in range(1, opset) if minimum_ir_version(past) <= wanted), default=None)
        help += "" if older is None else f" Opsets up to {older} go with IR version {wanted} (--opset {older})."
    texts = [f"the model needs IR version {version}, for {reason}; {wanted} was asked for" for version, reason in needs]
    return ConversionError("; ".join(texts), [diagnostic("SG412", text, help=help) for text in texts])


def _told(needs: IRNeeds, least: int, reason: str, wanted: int) -> list[Diagnostic]:
    notes = []
    if least > wanted:
        text = f"the IR version is {least}, because of {reason}; the opset came with {wanted}"
        notes.append(diagnostic("SG415", text, severity="info"))
    # Each export of torch notes where its nodes come from, which means nothing to any reader.
    told = (name for name, version in needs.skipped.items() if version > least)
    if skipped := [name for name in told if not name.startswith("metadata_props ")]:
        text = f"readers of IR version {least} ignore these fields, which are kept: {', '.join(skipped)}"
        notes.append(diagnostic("SG414", text, severity="info"))
    return notes


def _list_initializers(model: ModelProto) -> None:
    """Make every initializer of the main graph an input, too. Readers of old IR versions treat it as a constant."""
    graph = model.graph
    inputs = {value.name for value in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in inputs:
            value = graph.input.add(name=tensor.name)
            value.type.CopyFrom(_type_of(tensor))


def _type_of(tensor: TensorProto) -> TypeProto:
    made = TypeProto()
    made.tensor_type.elem_type = tensor.data_type
    # A scalar has a shape without dimensions.
    made.tensor_type.shape.SetInParent()
    for size in tensor.dims:
        made.tensor_type.shape.dim.add(dim_value=size)
    return made


# What an IR version cannot hold ---------------------------------------------------------------------------------------

# From this IR version on an initializer need not be an input, and one that is an input is a default.
INITIALIZER_IR_VERSION = 4

# The IR version that brought each message or field, where that is not the first. Source: onnx.proto. A reader skips a
# field of a number that it does not know. Skipped, these leave the meaning as it is.
_SKIPPED = {
    ("GraphProto", "quantization_annotation"): 5,
    ("ModelProto", "training_info"): 7,
    ("ModelProto", "configuration"): 11,
    ("NodeProto", "device_configurations"): 11,
    ("FunctionProto", "value_info"): 10,
    **{(message, "metadata_props"): 10 for message in ("NodeProto", "GraphProto", "FunctionProto", "ValueInfoProto")},
}
# Skipped, these change the meaning.
_MISREAD = {
    ("GraphProto", "sparse_initializer"): 6,
    ("AttributeProto", "sparse_tensor"): 6,
    ("AttributeProto", "sparse_tensors"): 6,
    ("AttributeProto", "tp"): 8,
    ("AttributeProto", "type_protos"): 8,
    ("TypeProto", "optional_type"): 8,
    ("TypeProto", "sparse_tensor_type"): 8,
}
# Inlining the functions removes these.
_OF_FUNCTIONS = {
    ("ModelProto", "functions"): 8,
    ("FunctionProto", "attribute_proto"): 9,
    ("FunctionProto", "overload"): 10,
    ("NodeProto", "overload"): 10,
}
_TYPES = {
    TensorProto.BFLOAT16: 4,
    **dict.fromkeys(range(TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2FNUZ + 1), 9),
    TensorProto.UINT4: 10,
    TensorProto.INT4: 10,
    # By number: an older onnx has no names for these.
    23: 11,
    24: 12,
    25: 13,
    26: 13,
    27: 14,
    28: 14,
}
# Attributes without messages, and messages without relevant ones: most of a model.
_PLAIN = frozenset(
    (
        AttributeProto.FLOAT,
        AttributeProto.INT,
        AttributeProto.STRING,
        AttributeProto.FLOATS,
        AttributeProto.INTS,
        AttributeProto.STRINGS,
    )
)
_LEAVES = frozenset({"TensorShapeProto", "StringStringEntryProto", "OperatorSetIdProto", "TensorAnnotation"})

Need = tuple[int, str]


@dataclass(slots=True)
class IRNeeds:
    """The IR versions that a model needs, each with a phrase for its reason: for its functions and for all other parts.
    skipped: by name, the parts that older readers skip.
    """

    of_functions: Need = (1, "")
    of_others: Need = (1, "")
    skipped: dict[str, int] = field(default_factory=dict)


def ir_needs(model: ModelProto, version: int) -> IRNeeds:
    """Return the parts of a model that are newer than an IR version."""
    needs = IRNeeds()
    pending: list[Any] = [model]
    while pending:
        message = pending.pop()
        name = message.DESCRIPTOR.name
        if name in _LEAVES or (name == "AttributeProto" and message.type in _PLAIN):
            continue
        if name == "TensorProto":
            # Listing the fields of a tensor would copy its weights.
            _note_type(needs, message.data_type, version)
            if version < 4 and is_in_other_file(message):
                needs.of_others = max(needs.of_others, (4, f"the external data of the tensor {message.name!r}"))
            continue
        for entry, value in message.ListFields():
            _note_field(needs, (name, entry.name), value, version)
            # Nothing runs what training_info holds.
            if entry.type == FieldDescriptor.TYPE_MESSAGE and entry.name != "training_info":
                pending.extend(_messages(value))
            elif entry.name == "elem_type":
                _note_type(needs, value, version)
    if version < INITIALIZER_IR_VERSION:
        needs.of_others = max((needs.of_others, *_initializers(model)))
    return needs


def _note_field(needs: IRNeeds, key: tuple[str, str], value: Any, version: int) -> None:
    text = f"{key[1]} of {key[0]}"
    if value and _SKIPPED.get(key, 0) > version:
        needs.skipped[text] = _SKIPPED[key]
    elif value and _OF_FUNCTIONS.get(key, 0) > version:
        if key[1] == "functions":
            text = f"local functions, such as {value[0].name!r}"
        needs.of_functions = max(needs.of_functions, (_OF_FUNCTIONS[key], text))
    elif _MISREAD.get(key, 0) > version:
        needs.of_others = max(needs.of_others, (_MISREAD[key], text))


def _note_type(needs: IRNeeds, number: int, version: int) -> None:
    if _TYPES.get(number, 0) > version:
        text = f"the element type {TensorProto.DataType.Name(number)}"
        needs.of_others = max(needs.of_others, (_TYPES[number], text))


def _initializers(model: ModelProto) -> Iterator[Need]:
    """Return what keeps initializers from being inputs: an input that has a default, and subgraphs, whose inputs are
    given.
    """
    for scope in scopes(model):
        if scope.is_function:
            continue
        inputs, path = {value.name for value in scope.proto.input}, scope.path
        named = (tensor.name for tensor in scope.proto.initializer if (tensor.name in inputs) == (not path))
        name = next(named, None)
        if name is not None and model.ir_version >= INITIALIZER_IR_VERSION:
            yield INITIALIZER_IR_VERSION, _kind(path, name)


def _kind(path: GraphPath, name: str) -> str:
    if path:
        return f"the initializer {name!r} of a subgraph, which is no input"
    return f"the default of the input {name!r}, which older readers treat as a constant"


def _messages(value: Any) -> Iterable[Any]:
    return (value,) if hasattr(value, "DESCRIPTOR") else value


# Names for omitted outputs --------------------------------------------------------------------------------------------

_WHY = "an output without a name makes onnxruntime crash"
_WHY_OF_OTHERS = "onnxruntime refuses a node without this output"


def has_unnamed_parts(walked: Walked) -> bool:
    """Return True where a node of the model omits an output that needs a name: of a split, or one that is not
    optional.
    """
    graphs = [(scope, detail) for scope in walked.scopes if (detail := walked.graphs.get(scope.path)) is not None]
    return any(detail.unnamed or any("" in scope.nodes[i].output for i in detail.splits) for scope, detail in graphs)


def name_parts(model: ModelProto) -> list[Change]:
    """Edit the model: each omitted output of a split, and each other one that is not optional, gets a name that is new
    in every scope.
    """
    names, changes = FreshNames(used_names(model)), list[Change]()
    for scope in scopes(model):
        for index, node in enumerate(scope.nodes):
            if "" not in node.output:
                continue
            location = f"{scope.location}/{node_label(node, index)}"
            if (form := _form(scope, node)) is not None:
                node.output[:] = named_outputs(node, node.output, names)
                changes.append(Change(location, form, form, _WHY))
            elif (version := _version(scope, node)) is not None:
                positions = unnamed_outputs(version, node.output)
                for position in positions:
                    node.output[position] = names.new(f"{node.name or node.op_type}_output{position}")
                label = f"{node.op_type}-{version.since_version}"
                changes += [Change(location, label, label, _WHY_OF_OTHERS)] if positions else []
    return changes


def _version(scope: Scope, node: NodeProto) -> OperatorVersion | None:
    domain = plain_domain(node.domain)
    return meant_version(node.op_type, scope.imports.get(domain, 1), domain)


def _form(scope: Scope, node: NodeProto) -> str | None:
    """Return the operator and version of a split, None for another operator."""
    domain = plain_domain(node.domain)
    if domain == variadic_split_1.DOMAIN:
        return "VariadicSplit-1"
    variant = variant_at(node.op_type, opset_of(scope.imports)) if domain == "" else None
    return None if variant is None else f"{variant.op_type}-{variant.since_version}"


# Operators newer than this release ----------------------------------------------------------------------------------


def unknown_version(op_type: str, opset: int) -> int | None:
    """Return the version of an operator of ai.onnx at an opset, if splitgraph does not know it; otherwise None."""
    version = meant_version(op_type, opset)
    if version is None:
        return None
    since = version.since_version
    if op_type in SPLIT_OPERATORS:
        return since if variant_of(op_type, since) is None else None
    is_first = len(versions_between(op_type, 1, opset)) == 1
    return since if not is_first and decision(op_type, since) is UNDECIDED else None


def refusal(op_type: str, since_version: int, location: str, *, is_target: bool) -> Diagnostic:
    """Return the blocker for a node of a version that splitgraph does not know. is_target: a lower target opset would
    help.
    """
    text = f"{op_type} changes at opset {since_version}: {UNDECIDED.reason}"
    newer = f"a splitgraph that knows {op_type}-{since_version}"
    help = f"Ask for opset {since_version - 1} or older, or install {newer}." if is_target else f"Install {newer}."
    blocking_opset = since_version if is_target else None
    return diagnostic("SG405", text, location, help=help, blocking_opset=blocking_opset)


def refuse_unknown_versions(plan: Plan, scopes: Sequence[Scope]) -> None:
    """Block new nodes with such a version. Nodes that replace splits are written for the target opset and cross no
    boundary, so that the climb does not see them.
    """
    scope_of: Mapping[object, Scope] = {scope.path: scope for scope in scopes}
    for path, edits in plan.edits.items():
        scope = scope_of[path]
        opset = opset_of(scope.imports) if plan.opset is None else plan.opset
        for index, made in edits.replaced.items():
            _refuse(
                plan,
                [node for node in made if isinstance(node, NodeProto)],
                opset,
                f"{scope.location}/{node_label(scope.nodes[index], index)}",
            )
    if plan.variadic_parts:
        opset = opset_of(scopes[0].imports)
        _refuse(plan, variadic_function(min(plan.variadic_parts), opset).node, opset, scopes[0].location)


def _refuse(plan: Plan, nodes: Iterable[NodeProto], opset: int, location: str) -> None:
    for op_type in dict.fromkeys(node.op_type for node in nodes if plain_domain(node.domain) == ""):
        since = unknown_version(op_type, opset)
        if since is not None:
            plan.blockers.append(refusal(op_type, since, location, is_target=plan.opset is not None))
