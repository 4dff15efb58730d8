"""Models for the tests of the memo: layers that almost repeat, and trees of function calls."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator

import numpy as np
import onnx
from onnx import numpy_helper, parser

INPUTS = {
    "x": "float[N, M, 8]",
    "same": "float[N, M, 8]",
    "other": "float[N, K, 8]",
    "one": "float[N, 1, 8]",
    "fixed": "float[12, M, 8]",
    "cond": "bool",
}
CONSTANTS = {
    "zero": np.array([0]),
    "unit": np.array([1]),
    "two": np.array([2]),
    "three": np.array([3]),
    "minus": np.array([-1]),
    "eight": np.array([8]),
    "rows": np.array([4, 4]),
    "plain": np.array([1, 1, 1], np.float32),
    "wide": np.array([1, 1, 3], np.float32),
}

# What one layer is made of. It is given h, of the layer before; v, an input; t, a constant; z, scales; A, an axis.
LAYER = {
    "shape": "s = Shape (h)  n = Gather <axis = 0> (s, zero)  m = Gather <axis = 0> (s, unit)",
    "half": "half = Div (m, t)  front = Slice (h, zero, half, unit)",
    "split": "p, q = Split <axis = 2, num_outputs = 2> (h)  c = Concat <axis = A> (q, p)",
    "rows": "k = Concat <axis = 0> (n, minus, eight)  l = Reshape (c, k)",
    "join": "j = Concat <axis = 1> (front, l)  back = Slice (j, zero, m, unit)",
    # What this is hangs on what is known of N, and of M and K.
    "asks": "a = Add (x, fixed)  b = Add (x, other)  i = Resize (a, , z)  d = Dropout (i)",
    "add": "w = Add (v, v)  y = Add (back, w)",
    "shown": "e = Expand (h, s)",
}

# What is other in a layer than in those around it: of which part, what is replaced by what.
MUTATIONS: dict[str, tuple[str, str, str]] = {
    "an attribute": ("split", "axis = 2, num_outputs = 2> (h)", "axis = 1, num_outputs = 2> (h)"),
    "a wrong attribute": ("join", "axis = 1> (front", "axis = 7> (front"),
    "an input": ("add", "(v, v)", "(v, one)"),
    "a symbol": ("add", "(v, v)", "(other, other)"),
    "a size": ("add", "(v, v)", "(v, fixed)"),
    "an element": ("half", "(m, t)", "(m, three)"),
    "an input more": ("half", "half, unit)", "half, unit, two)"),
    "an output more": ("asks", "d = Dropout", "d, mask = Dropout"),
    "a constant": ("split", "c = Concat", "o = Constant <value_ints = [4]> ()  c = Concat"),
    "a name that is defined again": ("add", "w = Add", "s = Add"),
    "symbols of its own": ("shown", "(h, s)", "(h, s)  r = NonZero (x)  u = Concat <axis = 1> (r, r)"),
    "symbols that are reported": ("shown", "(h, s)", "(h, s)  r = NonZero (x)  u, g = Split <num_outputs = 2> (r)"),
    "an operator that nobody knows": ("shape", "s = Shape", "f = nobody.Knows (h)  s = Shape"),
}

# What is learnt between two layers, or in one of them.
FACTS = {
    "M is even": "f, g = Split <axis = 1, num_outputs = 2> (x)",
    "N is 8": "f, g = Split <axis = 0> (x, rows)",
    "M is K": "f = Concat <axis = 0> (x, other)",
    "N is 12": "f = Concat <axis = 1> (x, fixed)",
    "nothing": "f, g = Split <axis = 2> (x, rows)",
}
MUTATIONS |= {f"{fact} from here on": ("shape", "s = Shape", f"{nodes}  s = Shape") for fact, nodes in FACTS.items()}

# How the layers stand in a model.
WAYS = ("nodes", "calls", "calls in calls", "branches", "calls in branches")

_IMPORTS = 'opset_import: ["": 18, "l": 1, "nobody": 1]'


def almost_repeating(seed: int) -> onnx.ModelProto:
    """Layers of which some differ from the others in one thing."""
    draw = random.Random(seed)
    way = WAYS[seed % len(WAYS)]
    first, second = draw.sample(sorted(MUTATIONS), 2)
    mutations = [None, None, None, first, first, second]
    draw.shuffle(mutations)
    learns = draw.randrange(len(mutations))
    nodes, given = [], "x"
    for number, mutation in enumerate(mutations):
        if number == learns:
            nodes.append(re.sub(r"\b[fg]\b", r"between_\g<0>", draw.choice(list(FACTS.values()))))
        values = {"h": given, "v": "x", "t": "two", "z": "plain", "A": "2"}
        values.update(
            [draw.choice([("h", "x"), ("v", "same"), ("v", "one"), ("t", "three"), ("z", "wide"), ("A", "1")])]
        )
        nodes.append(_layer(way, number, mutation, values))
        given = draw.choice(["x", "x", given, f"y_{number}"])
    called = "\n".join(_functions(way, dict.fromkeys(mutations))) if "calls" in way else ""
    inputs = ", ".join(f"{type} {name}" for name, type in INPUTS.items())
    model = parser.parse_model(f"<ir_version: 10, {_IMPORTS}> g ({inputs}) => () {{ {'  '.join(nodes)} }} {called}")
    model.graph.initializer.extend(numpy_helper.from_array(held, name) for name, held in CONSTANTS.items())
    return model


def _layer(way: str, number: int, mutation: str | None, values: dict[str, str]) -> str:
    """The nodes that a layer is."""
    into = f"y_{number}"
    if "calls" in way:
        function = ("twice_" if way == "calls in calls" else "") + _name(mutation)
        given = ", ".join([values[name] for name in "hvtz"] + _passed())
        text = f"{into} = l.{function} <axis = {values['A']}> ({given})"
    else:
        text = _inline(number, mutation, values)
    if "branches" not in way:
        return text
    then, other = (re.sub(rf"\b{into}\b", f"{side}_{into}", text) for side in ("then", "else"))
    return (
        f"{into} = If (cond) <then_branch = a{number} () => (float[A, B, 8] then_{into}) {{ {then} }}, "
        f"else_branch = b{number} () => (float[A, B, 8] else_{into}) {{ {other} }}>"
    )


def _functions(way: str, mutations: Iterable[str | None]) -> Iterator[str]:
    head = f'<{_IMPORTS}, domain: "l">'
    taken = ", ".join([*"hvtz", *_passed()])
    for mutation in mutations:
        name = _name(mutation)
        body = "  ".join(_parts(mutation)).replace("axis = A", "axis: int = @axis")
        yield f"{head} {name} <axis> ({taken}) => (y) {{ {body} }}"
        if way == "calls in calls":
            call = f"l.{name} <axis: int = @axis> ({taken})"
            yield f"{head} twice_{name} <axis> ({taken}) => (y) {{ again = {call}  y = {call} }}"


def _name(mutation: str | None) -> str:
    return "layer" if mutation is None else "layer_" + mutation.replace(" ", "_")


def _passed() -> list[str]:
    return [*INPUTS, *CONSTANTS]


def _parts(mutation: str | None) -> list[str]:
    parts = dict(LAYER)
    if mutation is not None:
        part, old, new = MUTATIONS[mutation]
        assert old in parts[part]
        parts[part] = parts[part].replace(old, new)
    return list(parts.values())


def _inline(number: int, mutation: str | None, values: dict[str, str]) -> str:
    """The nodes of a layer, with names of its own."""
    parts = _parts(mutation)
    names = {name: f"{name}_{number}" for part in parts for name in _outputs(part)} | values
    return "  ".join(re.sub(r"\w+", lambda word: names.get(word[0], word[0]), part) for part in parts)


def _outputs(part: str) -> Iterator[str]:
    for node in part.split("  "):
        yield from (name.strip() for name in node.split("=")[0].split(","))


def tree_of_calls(
    depth: int, leaf: str, *, passes: str = "x", attributes: str = "", joined: str = "Add (a, b)"
) -> onnx.ModelProto:
    """A function that calls another twice, which calls another twice, and so on down to the leaf, which gives y.

    passes: the inputs of each function: x of [N, M, 8], a boolean c, a constant `few` of three floats. attributes: that
    each has, and hands on. joined: what each gives of the two calls.
    """
    head = 'opset_import: ["": 18, "l": 1, "nobody": 1], domain: "l"'
    named = f"<{attributes}>" if attributes else ""
    handed = f"<{', '.join(f'{name} = @{name}' for name in attributes.split(', '))}>" if attributes else ""
    given = f"<{', '.join(f'{name} = 1' for name in attributes.split(', '))}>" if attributes else ""
    functions = [f"<{head}> f0 {named} ({passes}) => (y) {{ {leaf} }}"]
    for level in range(1, depth + 1):
        call = f"l.f{level - 1} {handed} ({passes})"
        functions.append(f"<{head}> f{level} {named} ({passes}) => (y) {{ a = {call}  b = {call}  y = {joined} }}")
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 18, "l": 1, "nobody": 1]> g (float[N, M, 8] x, bool c) => (y) '
        f"{{ y = l.f{depth} {given} ({passes}) }} " + "\n".join(functions)
    )
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "few"))
    return model


def in_functions(model: onnx.ModelProto, *, is_older: bool = False) -> onnx.ModelProto:
    """A model that calls three functions with the nodes of the model's graph. is_older: the third imports the opset
    before.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    own = {name for node in graph.node for name in node.output if name}
    read = dict.fromkeys(name for node in graph.node for name in node.input if name and name not in own)
    outputs = [value.name for value in graph.output if value.name in own]
    imports = list(model.opset_import)
    older = [onnx.helper.make_opsetid(entry.domain, entry.version - (entry.domain == "")) for entry in imports]
    del graph.node[:], graph.value_info[:], graph.output[:]
    for name, opsets in (("first", imports), ("second", imports), ("third", older if is_older else imports)):
        body = onnx.helper.make_function("f", name, [*read], outputs, model.graph.node, opsets)
        made.functions.append(body)
        given = [f"{name}_{output}" for output in outputs]
        graph.node.append(onnx.helper.make_node(name, [*read], given, domain="f"))
    made.opset_import.append(onnx.helper.make_opsetid("f", 1))
    return made
