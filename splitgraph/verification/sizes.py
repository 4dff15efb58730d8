"""Verify a model whose inputs have other sizes: at the old sizes, item by item for a batch, and whether it runs at
others.

What a batch means is what the model computes for each item. So the model before is repeated, once for each group of as
many items as it takes, and the results are joined: one model that the new one has to equal. Of any other dimension only
the old size has results to compare with.

The sizes of a batch are those of `batch_sizes`. Also, two items change places, and so do their results.

Kernels add up in another order for another batch, and a deep model can make much of that. So models whose results
differ run once more in float64: rounding is gone there, and a mistake is not. If no engine runs them so, a second model
takes the items of each node in groups. Its values are those of the new model, so that each node is a region of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from splitgraph.conversion.rewrite import GivenSizes
from splitgraph.conversion.sizes.convert import convert_to
from splitgraph.conversion.sizes.convert_ir import convert_ir_to, read_wanted_ir, relabelled_mirror, with_shapes
from splitgraph.conversion.sizes.wanted import Wanted, read_wanted, renamed
from splitgraph.dim import Dim, DimLike, substitute_if_defined
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.formats.openvino_ir import OpenVINOModel
from splitgraph.inference import fix_model, infer_model
from splitgraph.inference.openvino_ir import infer_ir, mirror
from splitgraph.inference.openvino_ir.infer import analyse_mirror
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import MAIN
from splitgraph.model.values import value_type
from splitgraph.options import Sizes
from splitgraph.verification.batch_sizes import TIMES, batch_sizes
from splitgraph.verification.models.model_files import weights_of
from splitgraph.verification.models.repeated import (
    Arrangement,
    arranged,
    axis_of,
    exchanged,
    groups,
    outputs_along,
    passed_on,
    some_groups,
    values_along,
    without_outputs,
)
from splitgraph.verification.models.repeated_ir import repeated_ir
from splitgraph.verification.regions.judging.widening import in_float64
from splitgraph.verification.verification import Difference, Verification

if TYPE_CHECKING:
    from splitgraph.formats import Model

# An IR is run with so many groups of items.
_GROUPS = (2, 3, 5)
# What runs whole models in float64, and the most bytes of weights that are written so.
_EXACT, _LARGEST_WIDENED = "onnxruntime", 2**28
# A length runs at so many other sizes.
_RUNS = 2
# Of a batch of more groups, three are compared.
_MOST_GROUPS = 8
# Why two models have no verdict.
_WITHOUT_VERDICT = ("SG501", "SG506")
# Runs two models, and returns what came out.
Verify = Callable[..., Verification]


class _Check(NamedTuple):
    """Two models that have to be equal. at: the sizes, as people read them. is_alike: they have nodes in common. name,
    size: of the dimension whose items are checked. by_node: makes two more models, in which each node takes the items
    in groups, and that are equal for the same reason.
    """

    at: str
    before: Model
    after: Model
    is_alike: bool = True
    name: str = ""
    size: int = 0
    by_node: Callable[[], tuple[Model, Model]] | None = None


def verify_sizes(
    before: Model, after: Model, given: GivenSizes, verify: Verify, folder: Path | None = None
) -> Verification:
    """Verify a model with new sizes, `after`. verify: runs two models. folder: of the external data of both."""
    sizes = given.asked
    case: _OnnxCase | _IrCase
    if isinstance(before, ModelProto) and isinstance(after, ModelProto):
        wanted = replace(read_wanted(before, sizes).with_followers(given.followers), batch=given.items)
        idle = frozenset(passed_on(before) & passed_on(after))
        case = _OnnxCase(before, without_outputs(after, idle), given, wanted, idle)
    else:
        assert isinstance(before, OpenVINOModel) and isinstance(after, OpenVINOModel)
        wanted = read_wanted_ir(before, sizes)
        case = _IrCase(before, after, given, replace(wanted, batch=given.items))
    wanted = case.wanted
    named: Any = case.after if not wanted.new else case.with_names()
    done: list[tuple[_Check, Verification]] = []
    for check in _checks(case, named):
        if check.name and check.name not in wanted.batch:
            continue
        verification = _verified(check, verify, folder)
        if verification.verdict == "different" and check.name and not _is_batch(check.name, wanted):
            # It only looked as if its items were apart.
            wanted = replace(wanted, batch=wanted.batch - {check.name})
            continue
        if verification.verdict == "different":
            return _refused(check, verification)
        # A check that proves nothing does not end the others: they may still find a difference.
        done.append((check, verification))
    done = [(check, verification) for check, verification in done if not check.name or check.name in wanted.batch]
    joined = replace(_joined(done), compared=_compared(done, wanted))
    if not joined.cases or wanted.old.keys() <= wanted.batch:
        return joined
    ran = tuple(_others_that_run(replace(case, wanted=wanted), named, verify))
    return _with_lengths(joined, ran, wanted, given)


def _is_batch(name: str, wanted: Wanted) -> bool:
    """Return True for a dimension that has to have items apart: the caller calls it a batch, or it is the first one."""
    return name in wanted.batch_of_caller or set(wanted.axes[name].values()) == {0}


def _is_first(name: str, wanted: Wanted, given: GivenSizes) -> bool:
    """Return True for a length that is the first dimension of inputs, where people expect a batch."""
    return name in given.lengths and 0 in wanted.axes[name].values()


def _compared(done: Sequence[tuple[_Check, Verification]], wanted: Wanted) -> dict[str, tuple[int, ...]]:
    """Return the sizes of each dimension that changes at which there was something to compare with."""
    sizes = {name: {size} for name, size in wanted.old.items()}
    for check, verification in done:
        if check.name and verification.cases:
            sizes[check.name].add(check.size)
    return {wanted.spelled(name): tuple(sorted(sizes[name])) for name in sorted(sizes)}


def _with_lengths(
    joined: Verification, ran: Sequence[Mapping[str, int]], wanted: Wanted, given: GivenSizes
) -> Verification:
    """Return the verification of a model with lengths. ran: their other sizes at which it runs."""
    lengths = sorted(wanted.old.keys() - wanted.batch)
    if not ran:
        text = f"the model with any {', '.join(lengths)} runs at none of the other sizes that were tried"
        difference = Difference("", 0, text)
        return replace(
            joined, verdict="different", first_difference=difference, diagnostics=(diagnostic("SG422", text),)
        )
    spelled = tuple({wanted.spelled(name): sizes[name] for name in lengths} for sizes in ran)
    told = replace(joined, only_ran=spelled)
    if told.verdict != "equal":
        return told
    reasons = [f"{name} is no batch ({given.lengths[name]})" for name in lengths if _is_first(name, wanted, given)]
    note = diagnostic("SG512", wanted.spelled("; ".join([told.said, *reasons])), severity="info")
    return replace(told, diagnostics=(*told.diagnostics, note))


def _others_that_run(case: _OnnxCase | _IrCase, named: Any, verify: Verify) -> Iterator[Mapping[str, int]]:
    """Run a model at other sizes of its lengths: at numbers that are wanted, or at smaller and at larger ones. Yield
    those at which it runs, a smaller one first.
    """
    wanted = case.wanted
    old = {name: size for name, size in wanted.old.items() if name in wanted.batch}
    others = [{name: wanted.new.get(name, size) for name, size in sizes.items()} for sizes in wanted.others()]
    if all(name in wanted.new for name in wanted.old.keys() - wanted.batch):
        # They ran with the batch that is wanted.
        yield others[0]
        return
    smaller = [sizes for sizes in others if sum(sizes.values()) < sum(wanted.old[name] for name in sizes)]
    count = 0
    for sizes in [*smaller, *(sizes for sizes in others if sizes not in smaller)]:
        fixed: Any = case.fixed_if_right(named, {**old, **sizes})
        if count < _RUNS and fixed is not None and verify(fixed, fixed, by_regions=False).cases:
            yield sizes
            count += 1


def _verified(check: _Check, verify: Verify, folder: Path | None) -> Verification:
    """Run two models, and return what came out; a difference that rounding explains is none."""
    found = verify(check.before, check.after, by_regions=check.is_alike)
    if found.verdict != "different" or check.by_node is None:
        return found
    exact: Verification | None = None
    pair = [each for each in (check.before, check.after) if isinstance(each, ModelProto)]
    if weights_of(pair) <= _LARGEST_WIDENED:
        exact = verify(*(in_float64(each, folder) for each in pair), by_regions=False, engine=_EXACT)
    if exact is not None and exact.verdict == "equal":
        text = f"at {check.at}, outputs differ by more than the tolerances ({found.difference_text}); not so in float64"
        return replace(
            found, verdict="equal", cases=exact.cases, first_difference=None, diagnostics=(diagnostic("SG504", text),)
        )
    if exact is not None and exact.verdict == "different":
        return found
    by_node = verify(*check.by_node(), by_regions=True)
    return found if by_node.verdict == "different" else by_node


def _checks(case: _OnnxCase | _IrCase, named: Any) -> Iterator[_Check]:
    """Yield what is to be run. named: the model after, with names in place of the numbers that are wanted."""
    wanted = case.wanted
    own: Any = case.renamed()
    yield _Check("the old sizes", own, case.fixed(named, wanted.old))
    for name in sorted(wanted.batch):
        yield from case.batches(own, named, name)
    if wanted.new:
        yield _Check("the new sizes", case.fixed(named, wanted.new), case.after)


@dataclass(frozen=True, slots=True)
class _OnnxCase:
    """A model, and one with other sizes. idle: the outputs that nothing computes, which are not compared; the model
    after is without them.
    """

    before: ModelProto
    after: ModelProto
    given: GivenSizes
    wanted: Wanted
    idle: frozenset[str]

    def with_names(self) -> ModelProto:
        """Return the model after with names in place of numbers."""
        given = self.given
        made = convert_to(self.before, self.wanted.named(), given.asked, taken=given.readings)[0].model
        return without_outputs(made, self.idle)

    def renamed(self) -> ModelProto:
        """Return the model before with the values for its own symbols."""
        model = without_outputs(renamed(self.before, self.wanted), self.idle)
        known = {str(dim) for value in model.graph.input for dim in value_type(value.type).shape or ()}
        return self.fixed(model, {name: size for name, size in self.wanted.old.items() if name in known})

    def fixed(self, model: ModelProto, sizes: Mapping[str, int]) -> ModelProto:
        """Return a model with numbers for names."""
        return fix_model(model, Sizes(sizes), owned=False) if sizes else model

    def fixed_if_right(self, model: ModelProto, sizes: Mapping[str, int]) -> ModelProto | None:
        """Return a model with numbers for names; None if these have errors."""
        found = infer_model(model, Sizes(sizes), fill=False).diagnostics
        return None if any(finding.severity == "error" for finding in found) else self.fixed(model, sizes)

    def batches(self, own: ModelProto, named: ModelProto, name: str) -> Iterator[_Check]:
        """Yield what is to be run of a batch: some sizes against single runs, and other places for its items."""
        wanted, old = self.wanted, self.wanted.old[name]
        open_one = self.fixed(named, {each: size for each, size in wanted.old.items() if each != name})
        outputs, inputs = outputs_along(open_one, name, old), wanted.axes[name]

        def by_node(runs: ModelProto, larger: ModelProto, arrangement: Arrangement) -> tuple[ModelProto, ModelProto]:
            return arranged(runs, arrangement, inputs, values_along(open_one, name) | outputs), larger

        has_parts = all(along.places is not None for along in outputs.values())
        for size in batch_sizes(open_one, name, old):
            larger = self.fixed(open_one, {name: size})
            at = f"{name} = {size}"
            if not has_parts and (size % old or size > _MOST_GROUPS * old):
                continue
            if size > _MOST_GROUPS * old:
                pair = zip((own, larger), some_groups(size, old), strict=True)
                before, after = (arranged(model, each, inputs, outputs) for model, each in pair)
                yield _Check(at, before, after, is_alike=False, name=name, size=size)
                continue
            arrangement = groups(size, old)
            before = arranged(own, arrangement, inputs, outputs)
            yield _Check(at, before, larger, False, name, size, partial(by_node, own, larger, arrangement))
        if has_parts:
            size = max(TIMES) * old
            larger = self.fixed(open_one, {name: size})
            moved = exchanged(size)
            at = f"{name} = {size}, with its first two items exchanged"
            after = arranged(larger, moved, inputs, outputs)
            yield _Check(at, larger, after, False, name, size, partial(by_node, larger, larger, moved))


@dataclass(frozen=True, slots=True)
class _IrCase:
    """The same for an IR, whose inputs have no names for dimensions."""

    before: OpenVINOModel
    after: OpenVINOModel
    given: GivenSizes
    wanted: Wanted

    def with_names(self) -> OpenVINOModel:
        return convert_ir_to(self.before, self.wanted.named(), self.given.asked, self.given.readings)[0].model

    def renamed(self) -> OpenVINOModel:
        return self.fixed(self.before, self.wanted.old)

    def fixed(self, model: OpenVINOModel, sizes: Mapping[str, int]) -> OpenVINOModel:
        shapes = {name: [_number(dim, sizes) for dim in shape] for name, shape in self.wanted.shapes.items()}
        made: OpenVINOModel = with_shapes(model.copy(), shapes).model
        return made

    def fixed_if_right(self, model: OpenVINOModel, sizes: Mapping[str, int]) -> OpenVINOModel | None:
        fixed = self.fixed(model, sizes)
        found = infer_ir(fixed, fill=False).diagnostics
        return None if any(finding.severity == "error" for finding in found) else fixed

    def batches(self, own: OpenVINOModel, named: OpenVINOModel, name: str) -> Iterator[_Check]:
        old = self.wanted.old[name]
        for times in _GROUPS:
            larger = self.fixed(named, {**self.wanted.old, name: times * old})
            before = self._repeated(own, named, name, times)
            yield _Check(f"{name} = {times * old}", before, larger, is_alike=False, name=name, size=times * old)

    def _repeated(self, before: OpenVINOModel, named: OpenVINOModel, name: str, groups: int) -> OpenVINOModel:
        mirrored = relabelled_mirror(mirror(named), self.wanted)
        names, types, sources = mirrored.names[MAIN], analyse_mirror(mirrored).types, named.graph.sources
        axes: dict[int, int] = {}
        for layer in named.graph.layers:
            source = sources.get((layer.id, layer.inputs[0].id)) if layer.type == "Result" else None
            axis = None if source is None else axis_of(types[names[source]].shape, name)
            if axis is not None:
                axes[layer.id] = axis
        return repeated_ir(before, self.wanted.axes[name], axes, self.wanted.old[name], groups)


def _number(dim: DimLike | None, sizes: Mapping[str, int]) -> int | None:
    number = substitute_if_defined(dim, sizes) if isinstance(dim, Dim) else dim
    return number if isinstance(number, int) else None


def _refused(check: _Check, verification: Verification) -> Verification:
    """Return what is to be said of two models that are different."""
    difference = verification.first_difference
    if difference is None:
        return verification
    difference = replace(difference, reason=f"at {check.at}: {difference.reason}")
    if check.is_alike:
        # Not the model, but its new form is wrong.
        return replace(verification, first_difference=difference)
    text = f"{difference.name}: {difference.reason}" if difference.name else difference.reason
    told = diagnostic("SG422", text)
    return replace(verification, first_difference=difference, diagnostics=(*verification.diagnostics, told))


def _joined(done: Sequence[tuple[_Check, Verification]]) -> Verification:
    """Return several verifications, none of which found a difference, as one: "equal" if all of them are."""
    all_done = [verification for _, verification in done]
    absolute = [each.max_abs_diff for each in all_done if each.max_abs_diff is not None]
    relative = [each.max_rel_diff for each in all_done if each.max_rel_diff is not None]
    notes = dict.fromkeys(_at(check, finding) for check, each in done for finding in each.diagnostics)
    open_one = next((each for each in all_done if each.verdict != "equal"), None)
    return replace(
        open_one or all_done[-1],
        cases=sum(each.cases for each in all_done),
        max_abs_diff=max(absolute, default=None),
        max_rel_diff=max(relative, default=None),
        diagnostics=tuple(notes),
        proofs=all_done[0].proofs,
        regions=all_done[0].regions,
    )


def _at(check: _Check, finding: Diagnostic) -> Diagnostic:
    """Return a finding that a verdict is missing, with the sizes at which it is."""
    return (
        replace(finding, message=f"at {check.at}: {finding.message}") if finding.code in _WITHOUT_VERDICT else finding
    )
