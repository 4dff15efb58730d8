"""The IR version of a result: raised where its opset needs that, lowered by a downgrade, as exporters do."""

from __future__ import annotations

from splitgraph.conversion.finish.ir_needs import INITIALIZER_IR_VERSION, IRNeeds, Need, ir_needs
from splitgraph.conversion.prepare.inlining import inline_functions, told_inlined
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.diagnostics import ConversionError, Diagnostic, SplitgraphError, diagnostic
from splitgraph.graph.scopes import opset_imports
from splitgraph.onnx_proto import IR_VERSION, ModelProto, TensorProto, TypeProto
from splitgraph.options import IRVersion
from splitgraph.schemas.table import minimum_ir_version


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
    """Edit the model to have its new IR version. Returns the model and notes.

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
    least, what = max((wanted, ""), needs.of_others, of_opset)
    if is_asked and least > wanted:
        raise _refusal([each for each in (of_opset, needs.of_others) if each[0] > wanted], wanted, opset)
    found: list[Diagnostic] = []
    if least < needs.of_functions[0]:
        try:
            names = told_inlined(model)
            model = inline_functions(model, ours_too=True)
            found.append(diagnostic("SG413", f"IR version {least} has no local functions: {names}", severity="info"))
        except ValueError as error:
            reason = f"{needs.of_functions[1]}, which onnx cannot inline ({error})"
            if is_asked:
                raise _refusal([(needs.of_functions[0], reason)], wanted, opset) from error
            least, what = needs.of_functions[0], reason
    if least < INITIALIZER_IR_VERSION:
        _list_initializers(model)
    model.ir_version = least
    return model, [*found, *_told(needs, least, what, wanted)]


def told_kept(model: ModelProto, opset: int, version: IRVersion) -> list[Diagnostic]:
    """The note for a model that stays at its opset and has an IR version that runtimes of that time refuse."""
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
        older = max((each for each in range(1, opset) if minimum_ir_version(each) <= wanted), default=None)
        help += "" if older is None else f" Opsets up to {older} go with IR version {wanted} (--opset {older})."
    texts = [f"the model needs IR version {version}, for {what}; {wanted} was asked for" for version, what in needs]
    return ConversionError("; ".join(texts), [diagnostic("SG412", text, help=help) for text in texts])


def _told(needs: IRNeeds, least: int, what: str, wanted: int) -> list[Diagnostic]:
    found = []
    if least > wanted:
        text = f"the IR version is {least}, because of {what}; the opset came with {wanted}"
        found.append(diagnostic("SG415", text, severity="info"))
    skipped = [name for name, version in needs.skipped.items() if version > least]
    if skipped:
        text = f"readers of IR version {least} ignore these fields, which are kept: {', '.join(skipped)}"
        found.append(diagnostic("SG414", text, severity="info"))
    return found


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
