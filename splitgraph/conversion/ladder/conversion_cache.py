"""What a node became, kept for those that are like it: models repeat the same few layers.

Two nodes are alike when operator, attributes, which inputs and outputs they have, and the types of these are the same.
What the conversion of the first one looked at besides, the elements of constants, is compared before its result is
used again, in other names; the constants that were made for the first one serve the others, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from splitgraph.conversion.boundary_crossing import AttributeEdit
from splitgraph.conversion.ladder.guard import attribute_edits
from splitgraph.conversion.ladder.node_form import NodeForm
from splitgraph.conversion.ladder.values import Values
from splitgraph.conversion.planning.emission import Emission
from splitgraph.conversion.planning.plan import InPlace
from splitgraph.diagnostics import Diagnostic
from splitgraph.graph.names import FreshNames
from splitgraph.graph.scopes import OPERATORS_WITH_BODIES
from splitgraph.inference.walk_results import Visit
from splitgraph.onnx_proto import AttributeProto, NodeProto
from splitgraph.value_type import ValueType

Key = tuple[object, ...]

_WRITTEN = AttributeProto.SerializeToString
# Longer constants are not compared: reading them again and again costs more than a conversion.
_MOST_BYTES = 4096
# Of nodes that are alike but for their constants; where all differ, none is found among those before.
_MOST_RECIPES = 8
# Attributes so long hold weights.
MOST_ATTRIBUTE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Carried:
    """A node at the target opset.

    forms: the nodes that it became, in order; None when edits of its attributes are enough, or of the node as another
    was edited (in_place). blockers: why it cannot go; then nothing else is given. why: of the change, in words.
    """

    forms: Sequence[NodeForm] | None = None
    in_place: InPlace | None = None
    edits: Sequence[AttributeEdit] = ()
    blockers: Sequence[Diagnostic] = ()
    why: str = ""

    @property
    def is_kept(self) -> bool:
        """True for a node that means the same as it stands."""
        return self.forms is None and self.in_place is None and not self.edits and not self.blockers


class NameLog(FreshNames):
    """New names as `FreshNames` gives them, each noted with what it was asked for by."""

    def __init__(self, names: FreshNames) -> None:
        self._names = names
        self.hints: dict[str, str] = {}

    def new(self, hint: str) -> str:
        """A new name that begins with the hint."""
        name = self._names.new(hint)
        self.hints[name] = hint
        return name


class _Written(NamedTuple):
    """A form with places for its names: of inputs, outputs, the node itself; the name itself for a constant that was
    made. is_node: it is the node, edited.
    """

    op_type: str
    inputs: Sequence[int | str]
    outputs: Sequence[int]
    attributes: dict[str, AttributeProto]
    name: int
    is_node: bool


class _Recipe(NamedTuple):
    """What a node became. read: by input, the fingerprint of the elements that it depends on. hints: what
    follows the prefix in each name that is to be made. Names are places: first the node's inputs, then its outputs,
    then those that are made; -1 is "". edits: of the attributes, where the node stays one and gives what it gave.
    """

    read: dict[int, bytes]
    hints: Sequence[str]
    forms: Sequence[_Written]
    edits: Sequence[AttributeEdit] | None
    why: str


@dataclass(slots=True)
class Repeats:
    """What the nodes of one graph became so far.

    unchanged: those that were kept, and those of which attributes were edited and nothing else.
    """

    values: Values
    unchanged: dict[Key, Carried] = field(default_factory=dict)
    _recipes: dict[Key, list[_Recipe]] = field(default_factory=dict)
    # A number for each type, and for each object that is one: types are hashed once, their identity often.
    _types: dict[ValueType, int] = field(default_factory=dict)
    _known: dict[int, tuple[int, ValueType]] = field(default_factory=dict)

    def key_of(self, node: NodeProto, visit: Visit | None) -> Key | None:
        """What makes nodes alike; None for one that is like no other. visit: what inference found them to have in
        common.
        """
        inputs, outputs = node.input[:], node.output[:]
        names = inputs + outputs
        # A name that stands twice must do so again.
        twice = () if len(set(names)) == len(names) else tuple(map(names.index, names))
        if visit is not None:
            # Operator, attributes and all types are the same then. Inference holds the visit: no other has its id.
            return id(visit), twice
        op_type = node.op_type
        if op_type in OPERATORS_WITH_BODIES or node.ByteSize() > MOST_ATTRIBUTE_BYTES:
            return None
        types = [self._number(self.values.type_of(name)) if name else -1 for name in names]
        return op_type, len(inputs), twice, *types, *map(_WRITTEN, node.attribute[:])

    def _number(self, type: ValueType) -> int:
        known = self._known.get(id(type))
        if known is None:
            known = self._known[id(type)] = self._types.setdefault(type, len(self._types)), type
        return known[0]

    def again(self, key: Key, node: NodeProto) -> Carried | None:
        """What a node becomes, without new nodes, because one like it did; None where there was none."""
        carried = self.unchanged.get(key)
        if carried is None:
            recipe = self._recipe_of(key, node)
            carried = None if recipe is None or recipe.edits is None else _edited(recipe, recipe.edits, node)
        return carried

    def written_again(self, key: Key, node: NodeProto, emission: Emission) -> Carried | None:
        """What a node becomes, with new nodes, because one like it did; None where there was none."""
        recipe = self._recipe_of(key, node)
        return None if recipe is None else _followed(recipe, node, emission)

    def _recipe_of(self, key: Key, node: NodeProto) -> _Recipe | None:
        for recipe in self._recipes.get(key, ()):
            if all(self.values.fingerprint(node.input[i], _MOST_BYTES) == held for i, held in recipe.read.items()):
                return recipe
        return None

    def learn(self, key: Key, node: NodeProto, carried: Carried, emission: Emission, log: NameLog) -> None:
        """Keep what a node became, where nothing but what is compared can have had a part in it."""
        if carried.forms is None:
            self.unchanged[key] = carried
            return
        recipes = self._recipes.setdefault(key, [])
        recipe = _recipe(node, carried, emission, log, self.values) if len(recipes) < _MOST_RECIPES else None
        if recipe is not None:
            recipes.append(recipe)


def _recipe(node: NodeProto, carried: Carried, emission: Emission, log: NameLog, values: Values) -> _Recipe | None:
    """The recipe of a node, None when it depends on more than a recipe can say."""
    inputs, outputs = node.input[:], node.output[:]
    constants = {tensor.name: tensor.name for tensor in emission.initializers}
    hints = {name: hint for name, hint in log.hints.items() if name not in constants}
    place: dict[str, int | str] = {name: index for index, name in enumerate([*inputs, *outputs, *hints])}
    place.update(constants)
    place[""] = -1
    asked = [name for name in values.asked if name not in log.hints]
    read = {inputs.index(name): values.fingerprint(name, _MOST_BYTES) for name in asked if name in inputs}
    forms = carried.forms or ()
    names = {name for form in forms for name in (*form.inputs, *form.outputs)}
    names |= {form.name for form in forms if form.original is None}
    if (
        len(read) < len(set(asked))
        or None in read.values()
        or not names <= place.keys()
        or not all(hint.startswith(emission.prefix) for hint in log.hints.values())
        or any(form.wrap is not None or form.has_graphs for form in forms)
        or any(name and repr(name) in carried.why for name in place)
    ):
        return None
    made = {name: index for name, index in place.items() if isinstance(index, int)}
    written = [
        _Written(
            form.op_type,
            [place[name] for name in form.inputs],
            [made[name] for name in form.outputs],
            form.attributes,
            -1 if form.original is not None else made[form.name],
            form.original is not None,
        )
        for form in forms
    ]
    return _Recipe(
        {index: found for index, found in read.items() if found is not None},
        [hint[len(emission.prefix) :] for hint in hints.values()],
        written,
        _edits(node, forms, carried.why),
        carried.why,
    )


def _edits(node: NodeProto, forms: Sequence[NodeForm], why: str) -> Sequence[AttributeEdit] | None:
    """How a node's attributes are edited where it stays one node with the same outputs, None for any other."""
    if len(forms) != 1 or forms[0].original is None or forms[0].outputs != node.output[:]:
        return None
    return attribute_edits(node, forms[0].attributes, why)


def _edited(recipe: _Recipe, edits: Sequence[AttributeEdit], node: NodeProto) -> Carried:
    own, form = node.input[:], recipe.forms[0]
    inputs = ["" if place == -1 else own[place] if isinstance(place, int) else place for place in form.inputs]
    return Carried(in_place=InPlace(form.op_type, inputs, edits), why=recipe.why)


def _followed(recipe: _Recipe, node: NodeProto, emission: Emission) -> Carried:
    names = [*node.input[:], *node.output[:]]
    names += [emission.names.new(emission.prefix + hint) for hint in recipe.hints]
    # The last place is that of "", which has the index -1.
    names.append("")
    forms = []
    for form in recipe.forms:
        inputs = [names[place] if isinstance(place, int) else place for place in form.inputs]
        outputs = [names[place] for place in form.outputs]
        original, name = (node, node.name) if form.is_node else (None, names[form.name])
        forms.append(NodeForm(form.op_type, inputs, outputs, dict(form.attributes), original, name))
    return Carried(forms, why=recipe.why)
