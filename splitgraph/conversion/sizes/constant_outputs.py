"""Gives each constant that is an output of the model a node that reads it.

A number in such a constant may say a size, and an axis may have one. Rules see nodes, so without a reader no rule would
ask about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference.walk_results import GraphDetail
from splitgraph.model.attributes import make_node
from splitgraph.model.names import FreshNames, used_names
from splitgraph.model.onnx_proto import ModelProto, TensorProto
from splitgraph.model.scopes import reads, scopes
from splitgraph.model.value_type import Contents, ValueType
from splitgraph.model.values import tensor_contents


def with_readers(model: ModelProto, known: GraphDetail) -> tuple[ModelProto, Mapping[str, str]]:
    """Return a copy of the model in which an Identity reads each constant that is an output and may have or say a size,
    and what the constants are called there, by output. known: the results for the main graph.
    """
    outputs = _constant_outputs(model, known)
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


def readers_of(model: ModelProto, names: Mapping[str, str]) -> dict[str, int]:
    """Return the number of the node that reads each constant, by output. names: as `with_readers` returned them."""
    return {name: index for index, name in enumerate(names, len(model.graph.node) - len(names))}


def spelled_outputs(findings: Iterable[Diagnostic], names: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield findings in which constants are called as in the model. names: as `with_readers` returned them."""
    for finding in findings:
        text = finding.message
        for name, constant in names.items():
            text = text.replace(repr(constant), repr(name))
        yield replace(finding, message=text)


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


def constant_output_notes(
    kept: Iterable[str], known: Mapping[str, TensorProto | Contents], answers: Sequence[str]
) -> Iterator[Diagnostic]:
    """Yield a note about each list of integers that is the same at all sizes, unless the user has said so. known: the
    elements of constants. answers: as the user gives them, "main/n[0]" and "main/n[0]=H*W".
    """
    for name in kept:
        is_said = any(answer.startswith(f"main/{name}[") for answer in answers)
        if _may_be_a_size(known.get(name)) and not is_said:
            text = f"the integer output {name!r} stays as it is at all sizes: nothing says whether it counts something"
            follow, keep = f'reshape --follow "main/{name}[0]=DIMENSION"', f'reshape --keep "main/{name}[0]"'
            help = f"If it follows from a size, say how: {follow}. If it stays: {keep}."
            yield diagnostic("SG424", text, f"main/{name}", severity="info", help=help)


def _constant_outputs(model: ModelProto, known: GraphDetail) -> list[str]:
    """Return the outputs that are constants and may have or say a size. A default is what a caller makes of it."""
    outputs = (value.name for value in model.graph.output)
    asked = [name for name in outputs if _may_be_a_size(known.constants.get(name)) or _has_sizes(known.types.get(name))]
    if not asked:
        return []
    constant = {tensor.name for tensor in model.graph.initializer} - {value.name for value in model.graph.input}
    for node in model.graph.node:
        if constant.issuperset(filter(None, reads(node))):
            constant.update(filter(None, node.output))
    return [name for name in dict.fromkeys(asked) if name in constant]


def _has_sizes(kind: ValueType | None) -> bool:
    return kind is not None and any(isinstance(size, int) and size > 1 for size in kind.shape or ())


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
