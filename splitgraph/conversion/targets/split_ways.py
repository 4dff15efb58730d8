"""Lists the ways to write a split at the opset of its model, and finds the first one that a target is known to read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from splitgraph.conversion.plan import Replacement
from splitgraph.conversion.splits.lower import LENGTHS_INPUT, SplitNode
from splitgraph.inference.walk_results import SplitDetail
from splitgraph.model.onnx_proto import NodeProto, TensorProto
from splitgraph.model.places import operator_label, version_of
from splitgraph.model.value_type import UNKNOWN, Contents, ValueType, tensor
from splitgraph.model.values import tensor_contents
from splitgraph.runtimes.check import blamed
from splitgraph.runtimes.factors import factors
from splitgraph.runtimes.factors_of_splits import is_of_form
from splitgraph.runtimes.node_traits import NodeTraits
from splitgraph.runtimes.operator_traits import operator_traits
from splitgraph.runtimes.seen_values import BEFORE_THE_RUN, How, Seen
from splitgraph.runtimes.target import Target
from splitgraph.runtimes.verdicts import Factor, Judged
from splitgraph.splits import Variant, variant_at
from splitgraph.splits.canonical import CanonicalSplit
from splitgraph.splits.lowering import lengths_with_rest
from splitgraph.splits.slices import BoundsForm, open_bounds, slice_variant

# If one of these reads the data that is split, the target must be known to read it. Other nodes compute its operands.
_PARTS = frozenset({"Split", "Slice", "Gather"})


@dataclass(frozen=True, slots=True)
class SplitWay:
    """One way to write a split: the variant, and whether its lengths are written out. split: its canonical form, as the
    variant writes it.
    """

    variant: Variant
    split: CanonicalSplit
    explicit_lengths: bool


# Writes a split in a way, to be judged; None where that is not possible.
Write = Callable[[SplitWay], "Replacement | None"]


def first_read_way(
    split_node: SplitNode, node: NodeTraits, opset: int, target: Target, write: Write
) -> SplitWay | None:
    """Return the first way that the target is known to read; None if there is none. node: the split as it is in the
    model.
    """
    to_blame = blamed(node, target)
    for way in ways_to_write(split_node.detail, opset):
        replacement = write(way)
        if replacement is None:
            continue
        judged = _judge_way(replacement, split_node, way, node, opset, target)
        if all(_may_be_written(each, is_part, to_blame) for each, is_part in judged):
            return way
    return None


def _may_be_written(judged: Judged, is_part: bool, to_blame: Collection[Factor]) -> bool:
    """Return True for a node that the target reads. A node that was not measured counts as read if it is no part of the
    split, or if its form is known.

    is_part: the node is the split, or a part of it. to_blame: the factors for which the target did not read the split
    as it was.
    """
    if judged.verdict != "unmeasured":
        return judged.verdict == "reads"
    return not is_part or is_known_form(judged, to_blame)


def ways_to_write(detail: SplitDetail, opset: int) -> Iterator[SplitWay]:
    """Yield every way in which splitgraph can write a split, the plainest first: without lengths, with lengths, as
    slices.
    """
    split, variant = detail.split, variant_at("Split", opset)
    if split is None or variant is None:
        return
    lengths = split.static_lengths
    is_equal = split.form == "equal" or (split.form == "chunks" and detail.divisible)
    # From opset 18 on, a Split with num_outputs may have a shorter last part.
    needs_no_lengths = is_equal or (split.form == "chunks" and variant.since_version >= 18)
    if needs_no_lengths:
        yield SplitWay(variant, split, False)
    # From opset 13 on, lengths are an input, which may be computed.
    if lengths is not None or variant.since_version >= 13:
        yield SplitWay(variant, split if lengths is None else replace(split, form="lengths"), True)
    if not needs_no_lengths and lengths is not None and len(set(lengths)) == 1:
        yield SplitWay(variant, replace(split, form="equal"), False)
    if len(split.lengths or ()) == 1:
        # The only part is the whole value: an Identity.
        yield SplitWay(slice_variant(opset), split, False)
        return
    # From opset 10 on, the bounds of a Slice are inputs, which may be computed.
    forms: list[BoundsForm] = [] if opset < 10 else ["computed"]
    if lengths is not None:
        forms.insert(0, "constant")
    elif open_bounds(split) is not None and lengths_with_rest(split) is not None:
        forms.insert(0, "open")
    yield from (SplitWay(slice_variant(opset, (form,)), split, False) for form in forms)


def _judge_way(
    replacement: Replacement, split_node: SplitNode, way: SplitWay, node: NodeTraits, opset: int, target: Target
) -> Iterator[tuple[Judged, bool]]:
    """Yield what is known of each node of a way, and whether it is the split or a part of it."""
    assert node.seen is not None
    written = WrittenValues.of(replacement, node.seen, _given(split_node, node.seen))
    detail = replace(split_node.detail, variant=way.variant, split=way.split)
    for made in replacement.messages():
        split = detail if made.op_type == "Split" else None
        is_part = made.op_type in _PARTS and made.input[0] == split_node.node.input[0]
        yield judge_written(made, written, opset, target, split), is_part


def is_known_form(judged: Judged, to_blame: Collection[Factor]) -> bool:
    """Return True for a split, or a part of one, that was not measured only because of what is split. Any other way to
    write the split would not be measured, either.

    to_blame: the factors for which the target did not read the split as it was.
    """
    named, blamed_keys = {key for key, _ in judged.factors}, {key for key, _ in to_blame}
    return bool(named) and named.isdisjoint(blamed_keys) and not any(map(is_of_form, named))


def judge_written(
    node: NodeProto, written: WrittenValues, opset: int, target: Target, detail: SplitDetail | None = None
) -> Judged:
    """Return what is known of a node that would be written. detail: of a split."""
    version = version_of(node, {"": opset})
    traits = operator_traits(node, version, written.type_of, written.is_known, written.is_of_sizes)
    kind = tuple(sorted(factors(node, version, written, detail).items()))
    return target.judge(operator_label(node, version), traits, kind)


def _given(split_node: SplitNode, seen: Seen) -> How:
    """Return how values are given that are computed for a split: as its lengths are, or from sizes."""
    position = LENGTHS_INPUT[split_node.detail.variant.op_type]
    inputs, split = split_node.node.input, split_node.detail.split
    has_lengths = split is not None and split.form == "lengths" and len(inputs) > position and inputs[position]
    how = seen.how(inputs[position]) if has_lengths else "shape"
    return "shape" if how in BEFORE_THE_RUN else how


@dataclass(frozen=True, slots=True)
class WrittenValues:
    """What is known of the values of nodes that would be written, and of those of the model. constants: new ones; in
    functions they are nodes. computed: new values that nodes compute. given: how these are given.
    """

    seen: Seen
    constants: dict[str, TensorProto]
    in_nodes: Collection[str]
    computed: Collection[str]
    given: How

    @classmethod
    def of(cls, replacement: Replacement, seen: Seen, given: How) -> WrittenValues:
        """Return the values of a replacement."""
        nodes = replacement.messages()
        held = {node.output[0]: node.attribute[0].t for node in nodes if node.op_type == "Constant"}
        constants = {each.name: each for each in replacement.constants} | held
        read = {name for node in nodes for name in node.input}
        own = {name for node in nodes for name in node.output if name in read} - held.keys()
        return cls(seen, constants, held.keys(), own, given)

    def type_of(self, name: str) -> ValueType:
        """Return the type of a value, UNKNOWN where it is not known."""
        constant = self.constants.get(name)
        if name in self.computed:
            return UNKNOWN
        if constant is None:
            return self.seen.type_of(name)
        return tensor("int64", list(constant.dims))

    def how(self, name: str) -> How:
        """Return how the elements of a value are given."""
        if name in self.constants:
            return "node" if name in self.in_nodes else "init"
        return self.given if name in self.computed else self.seen.how(name)

    def is_known(self, name: str) -> bool:
        """Return True where the elements of a value are known before the run."""
        return self.how(name) in BEFORE_THE_RUN

    def is_of_sizes(self, name: str) -> bool:
        """Return True where the elements of a value follow from open sizes."""
        return self.how(name) == "shape"

    def contents(self, name: str) -> Contents | None:
        """Return the elements of a short value, as far as they are known."""
        constant = self.constants.get(name)
        return self.seen.contents(name) if constant is None else tensor_contents(constant)

    def maker(self, name: str) -> NodeProto | None:
        """Return the node that makes a value, None for a new one."""
        return None if name in self.computed else self.seen.maker(name)

    def readers(self, name: str) -> Collection[str]:
        """Return the operators that read a value, and "" for an output of the graph; nothing reads a new output."""
        return () if name in self.computed else self.seen.readers(name)
