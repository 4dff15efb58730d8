"""Verify a model whose inputs have other sizes: at the old sizes, item by item for a batch, and whether it runs at
others.

What a batch means is what the model computes for each item. So the model before is repeated, once for each group of as
many items as it takes, and the results are joined: one model that the new one has to equal. Of any other dimension only
the old size has results to compare with.

Kernels add up in another order for another batch, and a deep model can make much of that. Where the results differ, the
new model runs with other items beside the same ones: if these give the same to the last bit, no item reaches another,
and the results may differ by more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from splitgraph.conversion.rewrite import GivenSizes
from splitgraph.conversion.sizes.convert import convert_to
from splitgraph.conversion.sizes.convert_ir import convert_ir_to, relabelled_mirror, with_shapes
from splitgraph.conversion.sizes.wanted import Wanted, read_wanted, renamed
from splitgraph.dim import Dim, DimLike, substitute_if_defined, symbols_of
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.formats.openvino_ir import OpenVINOModel
from splitgraph.inference import fix_model, infer_model
from splitgraph.inference.openvino_ir import infer_ir, mirror
from splitgraph.inference.openvino_ir.infer import analyse_mirror
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import MAIN
from splitgraph.model.values import value_type
from splitgraph.options import NewSizes, Sizes
from splitgraph.verification.models.model_files import Model
from splitgraph.verification.models.repeated import apart, axis_of, repeated, without_passed_on
from splitgraph.verification.models.repeated_ir import repeated_ir
from splitgraph.verification.verification import Difference, Verification

# As many groups of items are run.
_GROUPS = (2, 3)
# Between a batch and its items, where these are known to be apart, so many times the usual difference is allowed.
_ROUNDING = 1000
# Why two models have no verdict.
_WITHOUT_VERDICT = ("SG501", "SG506")
# Runs two models, and returns what came out.
Verify = Callable[..., Verification]


class _Check(NamedTuple):
    """Two models that have to be equal. at: the sizes, as people read them. is_alike: they have nodes in common. name,
    size: of the dimension whose items are checked. apart: makes two more models, which are equal to the last bit if no
    item reaches another.
    """

    at: str
    before: Model
    after: Model
    is_alike: bool = True
    name: str = ""
    size: int = 0
    apart: Callable[[], tuple[Model, Model]] | None = None


def verify_sizes(before: Model, after: Model, given: GivenSizes, verify: Verify) -> Verification:
    """Verify a model with new sizes, `after`. verify: runs two models."""
    sizes = given.asked
    case: _OnnxCase | _IrCase
    if isinstance(before, ModelProto) and isinstance(after, ModelProto):
        wanted = replace(read_wanted(before, sizes), batch=given.items)
        case = _OnnxCase(without_passed_on(before), without_passed_on(after), sizes, wanted)
    else:
        assert isinstance(before, OpenVINOModel) and isinstance(after, OpenVINOModel)
        wanted = read_wanted(mirror(before).model, sizes)
        case = _IrCase(before, after, sizes, replace(wanted, batch=given.items))
    wanted = case.wanted
    named: Any = case.after if not wanted.new else case.with_names()
    done: list[tuple[_Check, Verification]] = []
    for check in _checks(case, named):
        if check.name and check.name not in wanted.batch:
            continue
        verification = _verified(check, verify)
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
    return name in wanted.asked or set(wanted.axes[name].values()) == {0}


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
    for is_smaller in (True, False):
        for sizes in others:
            if (sum(sizes.values()) < sum(wanted.old[name] for name in sizes)) != is_smaller:
                continue
            fixed: Any = case.fixed_if_right(named, {**old, **sizes})
            if fixed is not None and verify(fixed, fixed, by_regions=False).cases:
                yield sizes
                break


def _verified(check: _Check, verify: Verify) -> Verification:
    verification = verify(check.before, check.after, by_regions=check.is_alike)
    if verification.verdict != "different" or check.apart is None:
        return verification
    if verify(*check.apart(), by_regions=False, allowed=0).verdict != "equal":
        return verification
    # No item reaches another, so that a small difference is one of rounding.
    return verify(check.before, check.after, by_regions=False, allowed=_ROUNDING)


def _checks(case: _OnnxCase | _IrCase, named: Any) -> Iterator[_Check]:
    """Yield what is to be run. named: the model after, with names in place of the numbers that are wanted."""
    wanted = case.wanted
    own: Any = case.renamed()
    yield _Check("the old sizes", own, case.fixed(named, wanted.old))
    for name in sorted(wanted.batch):
        for groups in _GROUPS:
            size = groups * wanted.old[name]
            repeated = case.repeated(own, named, name, groups)
            larger: Any = case.fixed(named, {**wanted.old, name: size})
            apart = partial(case.apart, larger, named, name, groups) if isinstance(case, _OnnxCase) else None
            yield _Check(f"{name} = {size}", repeated, larger, is_alike=False, name=name, size=size, apart=apart)
    if wanted.new:
        yield _Check("the new sizes", case.fixed(named, wanted.new), case.after)


@dataclass(frozen=True, slots=True)
class _OnnxCase:
    before: ModelProto
    after: ModelProto
    sizes: NewSizes
    wanted: Wanted

    def with_names(self) -> ModelProto:
        """Return the model after with names in place of numbers."""
        return convert_to(self.before, self.wanted.named(), self.sizes)[0].model

    def renamed(self) -> ModelProto:
        """Return the model before with the values for its own symbols."""
        model = renamed(self.before, self.wanted)
        known = {str(dim) for value in model.graph.input for dim in value_type(value.type).shape or ()}
        return self.fixed(model, {name: size for name, size in self.wanted.old.items() if name in known})

    def fixed(self, model: ModelProto, sizes: Mapping[str, int]) -> ModelProto:
        """Return a model with numbers for names."""
        return fix_model(model, Sizes(sizes), owned=False) if sizes else model

    def fixed_if_right(self, model: ModelProto, sizes: Mapping[str, int]) -> ModelProto | None:
        """Return a model with numbers for names; None if these have errors."""
        found = infer_model(model, Sizes(sizes), fill=False).diagnostics
        return None if any(finding.severity == "error" for finding in found) else self.fixed(model, sizes)

    def repeated(self, before: ModelProto, named: ModelProto, name: str, groups: int) -> ModelProto:
        """Return the model that runs the one before for each group of items."""
        return repeated(before, named, name, groups, self.wanted)

    def apart(self, larger: ModelProto, named: ModelProto, name: str, groups: int) -> tuple[ModelProto, ModelProto]:
        """Return two models that are equal if no item reaches another."""
        return apart(larger, named, name, groups, self.wanted)


@dataclass(frozen=True, slots=True)
class _IrCase:
    """The same for an IR, whose inputs have no names for dimensions."""

    before: OpenVINOModel
    after: OpenVINOModel
    sizes: NewSizes
    wanted: Wanted

    def with_names(self) -> OpenVINOModel:
        return convert_ir_to(self.before, self.wanted.named(), self.sizes)[0].model

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

    def repeated(self, before: OpenVINOModel, named: OpenVINOModel, name: str, groups: int) -> OpenVINOModel:
        mirrored = relabelled_mirror(mirror(named), self.wanted)
        names, types, sources = mirrored.names[MAIN], analyse_mirror(mirrored).types, named.graph.sources
        axes: dict[int, int] = {}
        for layer in named.graph.layers:
            source = sources.get((layer.id, layer.inputs[0].id)) if layer.type == "Result" else None
            axis = None if source is None else axis_of(types[names[source]].shape, name)
            if axis is not None:
                axes[layer.id] = axis
        inputs = {value for value in mirrored.given[MAIN] if _has_items(value, name, self.wanted)}
        return repeated_ir(before, inputs, axes, self.wanted.old[name], groups)


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


def _has_items(input: str, name: str, wanted: Wanted) -> bool:
    """Return True for an input whose first dimension is a symbol."""
    first = (*wanted.shapes.get(input, ()), None)[0]
    return isinstance(first, Dim) and symbols_of(first) == {name}
