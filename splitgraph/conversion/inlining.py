"""Inlining model-local functions, which some runtimes cannot read, with onnx's own inliner.

The inliner ignores the defaults of a function's attributes, confuses an output that is also an input with that input,
and forgets the opset imports of functions. All of these are written out before it runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from google.protobuf.message import DecodeError

from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.model.attributes import make_node
from splitgraph.model.names import FreshNames
from splitgraph.model.onnx_proto import FunctionProto, ModelProto, NodeProto, TensorProto
from splitgraph.model.scopes import (
    MOST_NESTED,
    FunctionKey,
    called_function,
    function_key,
    function_location,
    inlined_nodes,
    model_imports,
    nested_depth,
    node_label,
    opset_imports,
    plain_domain,
    subgraphs,
)
from splitgraph.splits.variadic_split_1 import is_variadic_function

_MOST_TOLD = 3
# With functions that call functions twice, a file of a few lines can have more nodes than fit into memory.
_MOST_NODES = 1_000_000


def inlined_text(model: ModelProto, *, ours_too: bool = True) -> str:
    """Return one line about the functions that inlining replaces: how many, and the first names."""
    gone = [
        f"{function.domain}.{function.name}"
        for function in model.functions
        if ours_too or not is_variadic_function(function)
    ]
    named = ", ".join(gone[:_MOST_TOLD]) + (", ..." if len(gone) > _MOST_TOLD else "")
    return f"inlined {len(gone)} local function{'s' if len(gone) > 1 else ''}: {named}"


def inline_functions(model: ModelProto, *, ours_too: bool = False) -> ModelProto:
    """Return a copy of a valid model with every call of a local function replaced by the function's nodes; the model
    itself where there are none. ours_too: inline our VariadicSplit functions, too.

    The inliner does not get the weights, because it takes at most 2 GiB. The result imports the domains of all its
    nodes. Raises ValueError where it refuses the model, where nodes need two versions of one domain, where a default
    would be lost, and where the result would have too many nodes or too deeply nested graphs.
    """
    ours = [(local.domain, local.name) for local in model.functions if not ours_too and is_variadic_function(local)]
    if len(ours) == len(model.functions):
        return model
    _require_size(model)
    # Imported here, because it loads onnx's C++ library.
    from onnx import inliner
    from onnx.checker import ValidationError

    light = _without_weights(model)
    functions = {function_key(function): function for function in light.functions}
    for function in light.functions:
        _give_outputs_of_its_own(function, light)
    # A call may omit these.
    without_default = {name for function in light.functions for name in function.attribute}
    for nodes in (light.graph.node, *(function.node for function in light.functions)):
        _write_defaults(nodes, functions, without_default)
    _bring_imports(light, functions, ours)
    try:
        inlined: ModelProto = inliner.inline_selected_functions(light, ours, exclude=True)
    except (RuntimeError, ValidationError, DecodeError) as error:
        # Newer onnx also limits how deep functions call each other.
        raise ValueError(str(error)) from error
    del inlined.graph.initializer[:]
    inlined.graph.initializer.extend(model.graph.initializer)
    return inlined


def without_functions(model: ModelProto) -> ModelProto:
    """Return a model with the nodes of all functions where they are called, to be looked at; the model itself where
    there are none, and where the inliner refuses it.
    """
    try:
        return inline_functions(model, ours_too=True) if model.functions else model
    except ValueError:
        return model


class Called(NamedTuple):
    """How the user knows the nodes of functions that were inlined: locations and names of values by those of now."""

    locations: Mapping[str, str]
    names: Mapping[str, str]

    def told(self, finding: Diagnostic) -> Diagnostic:
        """Return a finding about the inlined model with what the user knows."""
        if finding.location not in self.locations:
            return finding
        message = finding.message
        for name, known in self.names.items():
            message = message.replace(repr(name), repr(known))
        return replace(finding, location=self.locations[finding.location], message=message)


def called_nodes(model: ModelProto, inlined: ModelProto) -> Called:
    """Return what the nodes of the main graph of an inlined model were before; nothing where the two do not fit."""
    functions = {function_key(function): function for function in model.functions}

    def nodes_of(nodes: Sequence[NodeProto], path: str) -> Iterator[tuple[str, NodeProto]]:
        for index, node in enumerate(nodes):
            location, function = f"{path}/{node_label(node, index)}", functions.get(called_function(node))
            yield from [(location, node)] if function is None else nodes_of(function.node, location)

    before, after = list(nodes_of(model.graph.node, "main")), list(nodes_of(inlined.graph.node, "main"))
    if [node.op_type for _, node in before] != [node.op_type for _, node in after]:
        return Called({}, {})
    own = {name for node in model.graph.node for name in (*node.input, *node.output)}
    locations, names = dict[str, str](), dict[str, str]()
    for (location, old), (new_location, new) in zip(before, after, strict=True):
        if location != new_location:
            locations[new_location] = location
            values = zip((*new.input, *new.output), (*old.input, *old.output), strict=False)
            names.update((name, known) for name, known in values if name not in own)
    return Called(locations, names)


def _require_size(model: ModelProto) -> None:
    """Raise ValueError for a model with too many nodes or too deeply nested graphs after inlining."""
    depth = nested_depth(model)
    if depth > MOST_NESTED:
        raise ValueError(f"{depth:,} graphs would be nested in one another; at most {MOST_NESTED} are looked into")
    count = inlined_nodes(model)
    if count > _MOST_NODES:
        raise ValueError(f"the model would have {count:,} nodes; at most {_MOST_NODES:,} are written")


def _write_defaults(
    nodes: Iterable[NodeProto], functions: Mapping[FunctionKey, FunctionProto], without_default: Collection[str]
) -> None:
    """Write into every call the attributes that it omits and the function has a default for. Raises ValueError for a
    call that passes on an attribute of the enclosing function that may be missing: then the default applies.

    without_default: the names of attributes without one, of all functions.
    """
    for node in _all_nodes(nodes):
        function = functions.get(called_function(node))
        if function is None:
            continue
        given = {attribute.name: attribute for attribute in node.attribute}
        for default in function.attribute_proto:
            given_value = given.get(default.name)
            if given_value is None:
                node.attribute.append(default)
            elif given_value.ref_attr_name in without_default:
                text = f"{function.name!r} is called with {given_value.ref_attr_name!r} of the enclosing function for"
                raise ValueError(f"{text} {default.name!r}, which has a default where that is not given")


def _bring_imports(model: ModelProto, functions: Mapping[FunctionKey, FunctionProto], kept: Collection[object]) -> None:
    """Import into the model what the inlined nodes need. Functions keep only these imports, because the inliner leaves
    a function as it is when any of its imports differs from the model's. Raises ValueError for two versions of a
    domain. kept: domain and name of the functions that are not inlined.
    """
    imports = model_imports(model)
    origins = dict.fromkeys(imports, "the model")
    called = _called(model, functions)
    for index in range(len(model.functions) - 1, -1, -1):
        function = model.functions[index]
        if (function.domain, function.name) not in kept and function_key(function) not in called:
            del model.functions[index]
    for function in model.functions:
        if (function.domain, function.name) in kept:
            continue
        own = opset_imports(function.opset_import)
        needed = {_remaining(node, functions, kept) for node in _all_nodes(function.node)}
        del function.opset_import[:]
        for domain in sorted(domain for domain in needed if domain is not None):
            # A body without the import is an error of its own (SG110).
            version = own.get(domain, imports.get(domain, 1))
            if imports.setdefault(domain, version) != version:
                name, first = function_location(function), origins[domain]
                text = f"the function {name} imports version {version} of {domain or 'ai.onnx'}"
                raise ValueError(f"{text}, and {first} imports version {imports[domain]}")
            if domain not in origins:
                origins[domain] = f"the function {function_location(function)}"
                model.opset_import.add(domain=domain, version=version)
            function.opset_import.add(domain=domain, version=version)


def _called(model: ModelProto, functions: Mapping[FunctionKey, FunctionProto]) -> Collection[FunctionKey]:
    """Return the functions that the main graph calls, directly or through other functions."""
    called: set[FunctionKey] = set()
    waiting = [model.graph.node]
    while waiting:
        for node in _all_nodes(waiting.pop()):
            key = called_function(node)
            if key in functions and key not in called:
                called.add(key)
                waiting.append(functions[key].node)
    return called


def _remaining(node: NodeProto, functions: Mapping[FunctionKey, FunctionProto], kept: Collection[object]) -> str | None:
    """Return the domain of a node that is still there after inlining; None for a call of a function that is inlined."""
    function = functions.get(called_function(node))
    is_inlined = function is not None and (function.domain, function.name) not in kept
    return None if is_inlined else plain_domain(node.domain)


def _give_outputs_of_its_own(function: FunctionProto, model: ModelProto) -> None:
    """Copy outputs of a function that are also inputs, or the same output twice."""
    own = (name for node in _all_nodes(function.node) for name in (*node.input, *node.output))
    names = FreshNames((*function.input, *function.output, *own))
    handed_out = {"", *function.input}
    copied = 0
    for index, name in enumerate(function.output):
        if name in handed_out:
            function.output[index] = names.new(name)
            function.node.append(make_node("Identity", [name], [function.output[index]]))
            copied += 1
        handed_out.add(name)
    if copied and "" not in opset_imports(function.opset_import):
        function.opset_import.add(domain="", version=model_imports(model).get("", 1))


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Return the nodes and those in their subgraphs."""
    for node in nodes:
        yield node
        for _, _, graph in subgraphs(node):
            yield from _all_nodes(graph.node)


def _without_weights(model: ModelProto) -> ModelProto:
    """Return the model with empty initializers: only their names matter, which new names must avoid."""
    light = ModelProto()
    for field, content in model.ListFields():
        if field.name != "graph":
            _set(light, field.name, content)
    for field, content in model.graph.ListFields():
        if field.name != "initializer":
            _set(light.graph, field.name, content)
    light.graph.initializer.extend(
        TensorProto(name=tensor.name, data_type=tensor.data_type, dims=[0]) for tensor in model.graph.initializer
    )
    return light


def _set(message: object, name: str, content: object) -> None:
    value = getattr(message, name)
    if hasattr(value, "extend"):
        value.extend(content)
    elif hasattr(value, "CopyFrom"):
        value.CopyFrom(content)
    else:
        setattr(message, name, content)
