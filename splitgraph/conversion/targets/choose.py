"""Choosing the form of a split that a target reads: the plainest of those that it is known to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from splitgraph.canonical import CanonicalSplit
from splitgraph.inference.walk_results import SplitDetail
from splitgraph.runtimes.node_traits import NodeTraits
from splitgraph.runtimes.target import Target
from splitgraph.runtimes.traits import FORMS, OVERRUNS, Given, data_traits, split_form
from splitgraph.schemas.history import version_at
from splitgraph.variants import Variant, variant_at
from splitgraph.variants.lowering import lengths_with_rest
from splitgraph.variants.slices import OPEN_END, BoundsForm, open_bounds, slice_variant

# Traits of a node that a new form does not take over: they are written in the plain way.
_REWRITTEN = {"axis-omitted", "axis-negative", "output-omitted", "input-unnamed"}
# Traits that only a node has whose outputs are all parts.
_OF_ALL_PARTS = {"output-unread", "outputs-mixed"}


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to write a split: the variant, whether its lengths are written out, and its traits."""

    variant: Variant
    split: CanonicalSplit
    explicit_lengths: bool
    traits: frozenset[str]


def choose(node: NodeTraits, detail: SplitDetail, opset: int, target: Target) -> Choice | None:
    """The first form that the target reads; None where it reads none of them, or where nothing is known of them."""
    return next((each for each in _choices(node, detail, opset) if _is_read(each, target)), None)


def _is_read(choice: Choice, target: Target) -> bool:
    # Not known is not read: what splitgraph itself writes must be known to be.
    written = {
        trait
        for trait in choice.traits
        if trait in FORMS or trait in OVERRUNS or trait.startswith(("Slice-", "bounds-"))
    }
    return written <= target.reads and not target.failures_of(choice.traits)


def _choices(node: NodeTraits, detail: SplitDetail, opset: int) -> Iterator[Choice]:
    """Every form that splitgraph can write, the plainest first."""
    split, variant = detail.split, variant_at("Split", opset)
    if split is None or variant is None:
        return
    kept = _kept_traits(node, detail, split)
    # Parts that overrun the dimension are empty parts where their lengths are written out.
    written_out = kept - OVERRUNS | ({"part-empty"} if OVERRUNS & kept else set())
    divisible = detail.divisible or (split.form == "equal")
    is_short = split.form == "equal" or (split.form == "chunks" and (variant.since_version >= 18 or divisible))
    if is_short:
        yield Choice(variant, split, False, kept | {split_form(variant.since_version, "", split, divisible)})
    given = _lengths_given(node, split, variant)
    if given is not None:
        explicit = replace(split, form="lengths") if split.static_lengths is not None else split
        form = split_form(variant.since_version, given, split, divisible)
        yield Choice(variant, explicit, True, written_out | {form})
    if not is_short and split.static_lengths is not None and len(set(split.static_lengths)) == 1:
        equal = replace(split, form="equal")
        yield Choice(variant, equal, False, kept | {split_form(variant.since_version, "", equal, True)})
    if len(split.lengths or ()) == 1:
        yield _whole(split, detail, opset)
        return
    yield from _slices(split, opset, written_out - _OF_ALL_PARTS, given == "input")


def _whole(split: CanonicalSplit, detail: SplitDetail, opset: int) -> Choice:
    """The only part of a split is the whole value: an Identity, whatever its shape."""
    version = version_at("Identity", opset)
    traits = {"Identity"} if version is None else {"Identity", f"Identity-{version.since_version}"}
    dtype = detail.data.dtype
    return Choice(slice_variant(opset), split, False, frozenset(traits | ({dtype} if dtype else set()) - {"float32"}))


def _slices(split: CanonicalSplit, opset: int, kept: frozenset[str], is_input: bool) -> Iterator[Choice]:
    """The forms with a Slice for each part. is_input: the lengths are a graph input."""
    computed = "slice-input" if is_input else "slice-computed"
    forms: list[tuple[BoundsForm, set[str]]] = []
    bounds = open_bounds(split)
    if split.static_lengths is not None:
        forms.append(("constant", set()))
    elif bounds is not None and lengths_with_rest(split) is not None:
        ends = [end for pair in bounds for end in pair]
        unusual = {"bounds-open"} if any(end == OPEN_END for end in ends) else set()
        forms.append(("open", unusual | ({"bounds-negative"} if any(end < 0 for end in ends) else set())))
    forms.append(("computed", set()))
    for form, unusual in forms:
        variant = slice_variant(opset, (form,))
        written = "slice-attributes" if opset < 10 else computed if form == "computed" else "slice-constant"
        if form == "computed" and opset < 10:
            continue
        traits = {f"Slice-{variant.since_version}", written, *unusual}
        yield Choice(variant, split, False, kept | traits)


def _kept_traits(node: NodeTraits, detail: SplitDetail, split: CanonicalSplit) -> frozenset[str]:
    """The traits that the split has in any form."""
    found = data_traits(detail.data, split.axis)
    own = {trait for trait in node.traits if trait in _OF_ALL_PARTS or trait.startswith("part")}
    return frozenset(found | own) - _REWRITTEN


def _lengths_given(node: NodeTraits, split: CanonicalSplit, variant: Variant) -> Given | None:
    """How the lengths would be given if they were written out; None where the version cannot have them."""
    if split.static_lengths is not None:
        return "attribute" if variant.since_version < 13 else "constant"
    if variant.since_version < 13:
        return None
    return "input" if any(trait.endswith("-input") for trait in node.traits & FORMS.keys()) else "computed"
