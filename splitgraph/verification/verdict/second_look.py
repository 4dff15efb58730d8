"""Look once more at regions that differ: several as one, and one together with what its inputs are computed from.

1. A region may compute sizes in another form than the first model, such as a target of -1 and a number. So one that
   differs, and whose values say sizes, is compared together with the nodes that it tells them.
2. One region may undo what another one changes, so those that differ are compared as one. If a difference of that one
   could not be judged, nothing is known of its parts.
3. A region runs alone on drawn values, and the model may be unable to produce these: inputs may be functions of one
   value, such as `a` and `Neg(a)`, and elements of one input may depend on each other, such as those of a Softmax. So a
   region that differs at ordinary drawn numbers, and at no values of the first model, is compared with all nodes behind
   it, at all kinds of values for the inputs of the model, and where its results jump. If it is equal there, it is equal
   in the model: ordinary numbers show its difference, and no numbers of the model do. A difference at special numbers
   alone, such as a threshold, stays: draws for the inputs may not reach it.
4. Values of one name need not be one: `x - m` and `m - x` may be called alike, and a reader squares both; or two
   branches have other weights, and the reader of both gives the same. So where a region differs at values of the first
   model and all outputs are equal, regions are found again without these names. A reader may also hide a difference at
   most numbers, such as a Sigmoid of large ones. So they are compared where results jump, too, and a fault that is
   planted in each of the values must show (see `regions.checking.planted`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.verification.regions.checking.blame import differs_at_drawn, differs_at_values, grows, is_driven
from splitgraph.verification.regions.checking.check import LocalCheck
from splitgraph.verification.regions.checking.planted import PlantedFault, faults_in
from splitgraph.verification.regions.finding.find import FoundRegion, ModelRegions
from splitgraph.verification.regions.judging.lost_digits import Loss
from splitgraph.verification.verdict.region_notes import impossible_note
from splitgraph.verification.verification import Region

# So many regions at most are compared with what is behind them. So often, values of one name are found to be others.
_MOST_BEHIND, _MOST_APART = 8, 4
_UNDRIVEN = (
    "it differs on drawn values, and not with the nodes behind it, whose inputs could not be drawn so that all kinds "
    "of values and conditions are met"
)
_JUMPING = "it differs on drawn values, and with the nodes behind it only at inputs at which a result jumps"


@dataclass(slots=True)
class SecondLook:
    """What becomes of the regions that differ.

    local: the regions as they were checked. check: checks further ones. shows: tells whether each of several would be
    different with a fault. notes: get what is said of them. losses: of the further ones (see `LocalCheck.losses`).
    different: the first region that differs, with the name of its value and the case that shows it; None without one.
    found: the regions that were found again, None if those that were checked count.
    """

    local: LocalCheck
    check: Callable[..., LocalCheck]
    shows: Callable[[Mapping[FoundRegion, PlantedFault], ModelRegions, Set[FoundRegion]], bool]
    notes: list[Diagnostic]
    losses: list[tuple[str, Loss, str]] = field(default_factory=list)
    different: tuple[Region, str, int] | None = None
    found: ModelRegions | None = None

    def result(self, regions: Sequence[Region], *, is_equal: bool, is_near: bool) -> tuple[Region, ...]:
        """Return what became of the regions. is_equal: the outputs of the models are equal. is_near: they differ by no
        more than rounding may.
        """
        regions = self._through_sizes(regions)
        different = [number for number, region in enumerate(regions) if region.verdict == "different"]
        if is_near and different and (others := self._with_values_apart(regions)) is not None:
            return others
        if len(different) > 1:
            together = self._joined(regions, different)
            if together is not None:
                return together
        found = list(regions)
        if is_equal:
            for number in different[:_MOST_BEHIND]:
                found[number] = self._with_all_behind(number, found[number])
                if found[number].verdict == "different":
                    break
        left = next((number for number in different if found[number].verdict == "different"), None)
        if left is not None:
            self._blame(self.local, left, found[left])
        elif dropped := [found[number] for number in different if found[number].verdict == "equal"]:
            self.notes.append(impossible_note(dropped))
        return tuple(found)

    def _through_sizes(self, regions: Sequence[Region]) -> Sequence[Region]:
        """Return what became of the regions, those that tell sizes judged by what the nodes make of these."""
        found, made = self.local.found, list(regions)
        different = [number for number, region in enumerate(regions) if region.verdict == "different"]
        for wider, positions in found.through_sizes([self.local.members[number].region for number in different]):
            (result,) = self.check([wider], found).results()
            for number in (different[position] for position in positions):
                made[number] = replace(made[number], verdict=result.verdict, reason=result.reason, unread=result.unread)
        return made

    def _blame(self, local: LocalCheck, number: int, region: Region) -> None:
        self.different = region, local.members[number].region.outputs[0].before, local.members[number].case()

    def _joined(self, regions: Sequence[Region], different: Sequence[int]) -> tuple[Region, ...] | None:
        """Return the regions again, those that differ as one; None if together they do not compute the same, or could
        not be compared.
        """
        found = self.local.found
        together = self.check([found.joined([self.local.members[number].region for number in different])], found)
        (result,) = together.results()
        is_unjudged = result.verdict == "not-run" and result.cases > 0
        if result.verdict != "equal" and not is_unjudged and not result.unread and not together.members[0].is_noise():
            return None
        if result.verdict == "different":
            self._blame(together, 0, result)
        self.losses += together.losses()
        kept = [one for number, one in enumerate(regions) if number not in different]
        return (*kept[: different[0]], result, *kept[different[0] :])

    def _with_all_behind(self, number: int, region: Region) -> Region:
        """Return what became of a region: another verdict if it is equal with all nodes behind it."""
        found, question, member = self.local.found, self.local.question, self.local.members[number]
        if not differs_at_drawn(question, member):
            return region
        larger = found.with_all_behind(member.region)
        if larger is None:
            return region
        behind = self.check([larger], found, has_jumps=True)
        (result,) = behind.results()
        if result.unread:
            return replace(region, verdict="not-run", reason=result.reason, unread=result.unread)
        if result.verdict == "different":
            # Values of the model's inputs show it better.
            return replace(region, reason=result.reason)
        if result.verdict != "equal":
            return region
        if behind.members[0].differs_at_jumps():
            return replace(region, verdict="not-run", reason=f"{_JUMPING}: {region.reason}")
        if not is_driven(behind.question, behind.members[0]) or grows(question, member):
            return replace(region, verdict="not-run", reason=f"{_UNDRIVEN}: {region.reason}")
        return replace(region, verdict="equal", cases=region.cases + result.cases, max_abs_diff=result.max_abs_diff)

    def _with_values_apart(self, regions: Sequence[Region]) -> tuple[Region, ...] | None:
        """Return the regions of models in which the values that differ are not the same; None if some differ still, or
        if a fault in such a value would not show.
        """
        found, local = self.local.found, self.local
        known = {_nodes(member.region): region for member, region in zip(local.members, regions, strict=True)}
        apart = _values_of(local, found)
        for _ in range(_MOST_APART if apart else 0):
            other = found.with_values_apart(apart)
            new = [region for region in other.regions if _nodes(region) not in known]
            check = self.check(new, other, has_jumps=True)
            results = known | dict(zip(map(_nodes, new), check.results(), strict=True))
            ordered = tuple(results[_nodes(region)] for region in other.regions)
            if all(region.verdict == "equal" for region in ordered):
                are_open = (results[_nodes(region)].is_open for region in new)
                if (
                    any(are_open)
                    or any(member.differs_at_jumps() for member in check.members)
                    or not self._shows(apart, other, check)
                ):
                    break
                self.losses += check.losses()
                self.found = other
                return ordered
            more = {name: own for name, own in _values_of(check, found).items() if name not in apart}
            if not more:
                break
            apart |= more
        return None

    def _shows(self, apart: Mapping[str, str], found: ModelRegions, check: LocalCheck) -> bool:
        """Return True if faults show in the values that are not the same. found: the regions that these are within.
        check: of these.
        """
        clear = {member.region for member in check.members if not member.has_suspects()}
        own = {
            region: [
                fault
                for name in found.after.made_by(region.after)
                if name in apart.values()
                for fault in faults_in(name)
            ]
            for region in found.regions
        }
        turns = zip_longest(*own.values())
        at_once = ({region: fault for region, fault in zip(own, turn, strict=True) if fault} for turn in turns)
        return all(self.shows(faults, found, clear) for faults in at_once)


def _nodes(region: FoundRegion) -> tuple[Sequence[int], Sequence[int]]:
    return region.before, region.after


def _values_of(local: LocalCheck, found: ModelRegions) -> dict[str, str]:
    """Return the inner values of regions that differ at values of the first model, with their names in the second."""
    different = (member.region for member in local.members if differs_at_values(local.question, member))
    names = {border.before: border.after for region in different for border in region.outputs}
    return {name: own for name, own in names.items() if name not in found.before.results}
