"""Constants that are outputs: such a number may say a size, and no node reads it that could say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.model.attributes import make_node
from splitgraph.model.names import FreshNames, used_names
from splitgraph.model.onnx_proto import ModelProto, TensorProto
from splitgraph.model.scopes import scopes, subgraphs
from splitgraph.model.value_type import Contents
from splitgraph.model.values import tensor_contents


def with_readers(
    model: ModelProto, known: Mapping[str, TensorProto | Contents]
) -> tuple[ModelProto, Mapping[str, str]]:
    """Return a copy of the model in which an Identity reads each list of integers that is an output, and what the
    constants are called there, by output. known: the elements of values of the main graph.
    """
    outputs = _integer_outputs(model, known)
    if not outputs:
        return model, {}
    copy = ModelProto()
    copy.CopyFrom(model)
    fresh = FreshNames(used_names(copy, [*scopes(copy)]))
    names = {name: fresh.new(f"{name}_constant") for name in outputs}
    _rename(copy, names)
    labels = {node.name for node in copy.graph.node}
    for name, constant in names.items():
        copy.graph.node.append(make_node("Identity", [constant], [name], fresh.new(name) if name in labels else name))
    return copy, names


def without_idle_readers(model: ModelProto, names: Mapping[str, str]) -> list[str]:
    """Take out the nodes that still read the constants, and return their outputs: these are what they were. names: as
    `with_readers` returned them.
    """
    idle = {
        names[node.output[0]]: (index, node.output[0])
        for index, node in enumerate(model.graph.node)
        if node.op_type == "Identity" and [*node.input] == [names.get(node.output[0])]
    }
    for index in sorted((index for index, _ in idle.values()), reverse=True):
        del model.graph.node[index]
    _rename(model, {constant: name for constant, (_, name) in idle.items()})
    return [name for _, name in idle.values()]


def told_outputs(kept: Sequence[str], answers: Sequence[str]) -> Iterator[Diagnostic]:
    """Yield a note about each output that is the same at all sizes, unless the user has said so. answers: as the user
    gives them, "main/n[0]".
    """
    for name in kept:
        if not any(answer.startswith(f"main/{name}[") for answer in answers):
            text = f"the integer output {name!r} stays as it is at all sizes: nothing says whether it counts something"
            yield diagnostic("SG424", text, f"main/{name}", severity="info")


def _integer_outputs(model: ModelProto, known: Mapping[str, TensorProto | Contents]) -> list[str]:
    """Return the outputs that are constants of which a number may be a size. A default is what a caller makes of it."""
    asked = [value.name for value in model.graph.output if _may_be_a_size(known.get(value.name))]
    if not asked:
        return []
    constant = {tensor.name for tensor in model.graph.initializer} - {value.name for value in model.graph.input}
    for node in model.graph.node:
        if not any(subgraphs(node)) and constant.issuperset(filter(None, node.input)):
            constant.update(filter(None, node.output))
    return [name for name in dict.fromkeys(asked) if name in constant]


def _may_be_a_size(known: TensorProto | Contents | None) -> bool:
    found = tensor_contents(known) if isinstance(known, TensorProto) else known
    return found is not None and any(number > 1 for number in found.integers or ())


def _rename(model: ModelProto, names: Mapping[str, str]) -> None:
    """Give constants of the main graph other names, wherever they are read."""
    for scope in scopes(model) if names else ():
        if scope.is_function:
            continue
        for node in scope.nodes:
            for held in (node.input, node.output):
                held[:] = [names.get(name, name) for name in held]
        if scope.path:
            for value in scope.proto.output:
                value.name = names.get(value.name, value.name)
    for tensor in model.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
