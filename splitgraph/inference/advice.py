"""What to do about an invalid node: advice that follows from what the finding says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from splitgraph.graph.scopes import plain_domain
from splitgraph.onnx_proto import NodeProto
from splitgraph.schemas import versions_of

_TYPE = re.compile(r"input (\d+) is \w[\w ]*; it must be (?:one of )?(\w+)")
_SAME_TYPE = re.compile(r"same (?:element )?type|types must be equal")
_INPUT = re.compile(r"\b(?:the )?input (\d+)\b")
_OF_BODIES = re.compile(r"\b(?:branch(?:es)?|then_branch|else_branch|body|bodies)\b")
_WORD = re.compile(r"\w+")
_MISSING = ("needs the attribute", "is required", "are required", "must be given", "none of the attributes")
_SUPERFLUOUS = ("only one is allowed", "only one of", "more than one of")
# Names that are shorter stand in texts for other things, too.
_SHORTEST_NAME = 4


def advise(node: NodeProto, message: str) -> str:
    """What to do about a finding of SG302 at a node. Advice names the attribute or input that the message is about."""
    found = _TYPE.search(message)
    if found is not None:
        return f"Insert a Cast to {found[2]} before {_input(node, int(found[1]))}, or correct what gives it."
    if _SAME_TYPE.search(message) and "kind" not in message:
        return f"Insert a Cast, so that {_listed(node.input)} have one element type."
    if _OF_BODIES.search(message):
        return "Correct the inputs and outputs of the graphs in the attributes of the node."
    named = _named_attributes(node, message)
    if named:
        return _of_attributes(named, message)
    positions = _named_inputs(node, message)
    if positions:
        given = " and ".join(_input(node, position) for position in positions)
        return f"Correct {given}, or what gives it; infer shows the types of all values."
    if not any(node.input):
        return "Export the node again with a newer exporter, or correct its attributes by the operator's specification."
    return (
        f"Correct the shape of {_listed(node.input, 'or')}, also where the model declares it; infer shows all shapes."
    )


def _of_attributes(names: Sequence[str], message: str) -> str:
    listed = _quoted(names[:2])
    if any(text in message for text in _MISSING):
        return f"Add {listed} to the node."
    if any(text in message for text in _SUPERFLUOUS):
        return f"Remove all but one of the attributes {listed}."
    if "changes nothing" in message:
        return f"Remove {listed} from the node; a conversion does so."
    if re.search(r"must be (?:at least|one of|less|[^;]* to )|must not|out of range|which is not", message):
        return f"Set {listed} of the node to an allowed value."
    return f"Set {listed} of the node to a value that fits its inputs."


def _named_attributes(node: NodeProto, message: str) -> list[str]:
    """The attributes of the operator that a message names, in the order of the message."""
    known = {attribute.name for attribute in node.attribute}
    known |= {name for version in versions_of(plain_domain(node.domain), node.op_type) for name in version.attributes}
    given = {attribute.name for attribute in node.attribute}
    found = dict.fromkeys(_WORD.findall(message.split(": ", 1)[-1]))
    # "shape" or "axis" of a text is the attribute only if the node has one.
    return [word for word in found if word in known and (word in given or f"'{word}'" in message or "_" in word)]


def _named_inputs(node: NodeProto, message: str) -> list[int]:
    """The positions of the inputs that a message names, by number or as the schema does."""
    positions = {int(number) for number in _INPUT.findall(message)}
    words = {word.lower() for word in _WORD.findall(message)}
    for version in versions_of(plain_domain(node.domain), node.op_type)[-1:]:
        for position, formal in enumerate(version.inputs):
            name = formal.name.lower()
            if len(name) >= _SHORTEST_NAME and name in words and name not in ("input", "data"):
                positions.add(position)
    return sorted(position for position in positions if position < len(node.input) and node.input[position])[:2]


def _input(node: NodeProto, position: int) -> str:
    name = node.input[position] if position < len(node.input) else ""
    return f"{name!r} (input {position})"


def _listed(names: Sequence[str], joint: str = "and") -> str:
    return _quoted([name for name in dict.fromkeys(names) if name][:4], joint)


def _quoted(names: Sequence[str], joint: str = "and") -> str:
    spelled = [repr(name) for name in names]
    return spelled[0] if len(spelled) == 1 else f"{', '.join(spelled[:-1])} {joint} {spelled[-1]}"
