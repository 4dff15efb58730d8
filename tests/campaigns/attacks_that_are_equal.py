"""Pairs of models that are equal by construction, for `attacks.py`: the same computation, written in another way."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path

import onnx
from attacks_pairs import PLACES, Pair, bases, changed
from onnx import helper, inliner

MODELS = Path(__file__).resolve().parents[2] / "models"
_DRAWING = {
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
    "Dropout",
}
Change = Callable[[onnx.ModelProto], onnx.ModelProto | None]


def equal_pairs() -> Iterator[Pair]:
    """Yield all pairs."""
    return chain(_whole_models(), _single_nodes(), _identities())


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _has_bodies(model: onnx.ModelProto) -> bool:
    return any(attribute.HasField("g") for node in model.graph.node for attribute in node.attribute)


def renamed(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Give all inner values other names, and nodes none."""
    if _has_bodies(model):
        return None
    copy = _copy(model)
    kept = {value.name for value in (*copy.graph.input, *copy.graph.output)} | {
        tensor.name for tensor in copy.graph.initializer
    }
    for node in copy.graph.node:
        node.name = ""
        node.input[:] = [name if name in kept or not name else f"other/{name}" for name in node.input]
        node.output[:] = [name if name in kept or not name else f"other/{name}" for name in node.output]
    del copy.graph.value_info[:]
    return copy


def reordered(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Write the nodes in another order that is allowed."""
    if _has_bodies(model):
        return None
    copy = _copy(model)
    waiting = list(copy.graph.node)
    made = {value.name for value in copy.graph.input} | {tensor.name for tensor in copy.graph.initializer} | {""}
    drawn, order = random.Random(3), []
    while waiting:
        ready = [node for node in waiting if made.issuperset(node.input)]
        if not ready:
            return None
        node = drawn.choice(ready)
        waiting = [each for each in waiting if each is not node]
        made.update(node.output)
        order.append(changed(node))
    del copy.graph.node[:]
    copy.graph.node.extend(order)
    return copy


def repeated(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Compute twice what several nodes read: each second reader reads the copy."""
    if _has_bodies(model):
        return None
    copy = _copy(model)
    results = {value.name for value in copy.graph.output}
    nodes = []
    for node in copy.graph.node:
        readers = [other for other in copy.graph.node if set(other.input) & set(node.output)]
        nodes.append(node)
        if len(readers) < 2 or node.op_type in _DRAWING or node.op_type == "Constant" or results & set(node.output):
            continue
        twin = changed(node)
        twin.name = ""
        twin.output[:] = [f"{name}.twin" if name else "" for name in node.output]
        nodes.append(twin)
        for reader in readers[1::2]:
            reader.input[:] = [f"{name}.twin" if name and name in node.output else name for name in reader.input]
    if len(nodes) == len(model.graph.node):
        return None
    held = [changed(node) for node in nodes]
    del copy.graph.node[:]
    copy.graph.node.extend(held)
    return copy


def as_nodes(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Write initializers as Constant nodes."""
    copy = _copy(model)
    inputs = {value.name for value in copy.graph.input}
    tensors = [tensor for tensor in copy.graph.initializer if tensor.name not in inputs]
    version = next((entry.version for entry in copy.opset_import if not entry.domain), 0)
    if not tensors or version < 9:
        return None
    nodes = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in tensors]
    kept = [tensor for tensor in copy.graph.initializer if tensor.name in inputs]
    nodes += [changed(node) for node in copy.graph.node]
    for field, held in ((copy.graph.node, nodes), (copy.graph.initializer, kept)):
        del field[:]
        field.extend(held)
    return copy


def as_initializers(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Write Constant nodes as initializers."""
    copy = _copy(model)
    results = {value.name for value in copy.graph.output}
    kept = []
    for node in copy.graph.node:
        tensor = next((attribute.t for attribute in node.attribute if attribute.name == "value"), None)
        if node.op_type == "Constant" and tensor is not None and node.output[0] not in results:
            copy.graph.initializer.add().CopyFrom(tensor)
            copy.graph.initializer[-1].name = node.output[0]
        else:
            kept.append(changed(node))
    if len(kept) == len(copy.graph.node):
        return None
    del copy.graph.node[:]
    copy.graph.node.extend(kept)
    return copy


def _has_sequences(model: onnx.ModelProto) -> bool:
    """Return True for a model that no Identity may be put into at will: Identity takes no sequences below 14."""
    return any("Sequence" in node.op_type for node in model.graph.node)


def with_identities(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Put an Identity before the first input of each third node."""
    if _has_bodies(model) or _has_sequences(model):
        return None
    copy = _copy(model)
    nodes = []
    for number, node in enumerate(copy.graph.node):
        held = changed(node)
        if number % 3 == 0 and held.input and held.input[0]:
            nodes.append(helper.make_node("Identity", [held.input[0]], [f"identity.{number}"]))
            held.input[0] = f"identity.{number}"
        nodes.append(held)
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def with_dead_nodes(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Add nodes that nothing reads."""
    if _has_sequences(model):
        return None
    copy = _copy(model)
    for number, node in enumerate(list(copy.graph.node)[:5]):
        copy.graph.node.append(helper.make_node("Identity", [node.output[0]], [f"dead.{number}"]))
    return copy if onnx.TensorProto.UNDEFINED not in [v.type.tensor_type.elem_type for v in copy.graph.input] else None


def inlined(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Write the bodies of functions in the place of calls."""
    return inliner.inline_local_functions(model) if model.functions else None


CHANGES: Mapping[str, Change] = {
    "renamed": renamed,
    "reordered": reordered,
    "repeated": repeated,
    "constants as nodes": as_nodes,
    "constants as initializers": as_initializers,
    "with Identity": with_identities,
    "with dead nodes": with_dead_nodes,
    "inlined": inlined,
}


def _whole_models() -> Iterator[Pair]:
    for path in sorted(MODELS.glob("*.onnx")):
        if path.stem == "split18_neither":
            # An invalid model, which verification repairs first.
            continue
        model = onnx.load(path)
        for name, change in CHANGES.items():
            after = change(model)
            if after is None:
                continue
            yield Pair(f"{name}/{path.stem}", model, after, differs=False)
            if name == "repeated":
                yield Pair(f"shared/{path.stem}", after, model, differs=False)


def _single_nodes() -> Iterator[Pair]:
    for number, base in enumerate(bases()):
        if base.node.op_type in _DRAWING:
            continue
        place = list(PLACES)[number % len(PLACES)]
        before = PLACES[place](base)
        for name in ("renamed", "constants as nodes", "with Identity"):
            after = CHANGES[name](before)
            if after is not None:
                yield Pair(f"{name}/{base.name}/{place}", before, after, differs=False)


# Formulas that give the same bits -------------------------------------------------------------------------------------

FORMULAS = (
    ("a + b, b + a", "y = Add(a, b)", "y = Add(b, a)"),
    ("a * b, b * a", "y = Mul(a, b)", "y = Mul(b, a)"),
    ("a - b, a + -b", "y = Sub(a, b)", "c = Neg(b) y = Add(a, c)"),
    ("a > b, b < a", "y = Greater(a, b)", "y = Less(b, a)"),
    ("a >= b, b <= a", "y = GreaterOrEqual(a, b)", "y = LessOrEqual(b, a)"),
    ("- - a", "y = Identity(a)", "c = Neg(a) y = Neg(c)"),
    ("a twice transposed", "y = Identity(a)", "c = Transpose(a) y = Transpose(c)"),
    ("sin a + sin a", "c = Sin(a) y = Add(c, c)", "c = Sin(a) d = Sin(a) y = Add(c, d)"),
    ("exp a * exp a", "c = Exp(a) y = Mul(c, c)", "c = Exp(a) d = Exp(a) y = Mul(d, c)"),
    ("a, through float64", "y = Identity(a)", "c = Cast<to = 11>(a) y = CastLike(c, a)"),
    ("a or b", "c = Greater(a, b) y = Where(c, a, b)", "c = Greater(a, b) d = Not(c) y = Where(d, b, a)"),
    ("parts together", "y = Identity(a)", "c, d = Split<axis = 1, num_outputs = 2>(a) y = Concat<axis = 1>(c, d)"),
    ("smallest", "v, y = TopK<largest = 0>(a, k)", "c = Neg(a) v, y = TopK(c, k)"),
    ("relu, and again", "y = Relu(a)", "c = Relu(a) y = Relu(c)"),
    ("flattened", "y = Flatten(a)", "y = Reshape(a, rows)"),
)
# Not of int64: float64 does not hold 2**63 - 1, and -(-2**63) is -2**63.
_OF_FLOATS = {"a, through float64", "smallest"}


def _identities() -> Iterator[Pair]:
    for name, before, after in FORMULAS:
        for type_name in ("float", "double") if name in _OF_FLOATS else ("float", "double", "int64"):
            pair = [_formula(nodes, type_name) for nodes in (before, after)]
            for way, (one, other) in {"": pair, ", the other way round": pair[::-1]}.items():
                if one is not None and other is not None:
                    yield Pair(f"formula/{name} of {type_name}{way}", one, other, differs=False)


def _formula(nodes: str, type_name: str) -> onnx.ModelProto | None:
    """Return a model of two inputs, or None where the operators do not take the type."""
    text = f"""<ir_version: 9, opset_import: ["": 18]>
        g ({type_name}[n, 6] a, {type_name}[n, 6] b) => ({type_name}[n, m] y)
        <int64[1] k = {{3}}, int64[2] rows = {{0, 6}}> {{ {nodes} }}"""
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("elem_type")
    try:
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        onnx.checker.check_model(inferred, full_check=True)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
        return None
    model.graph.output[0].type.CopyFrom(inferred.graph.output[0].type)
    return model
