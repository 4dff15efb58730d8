"""Does once what several conversions of a model share: all that does not depend on the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from splitgraph.conversion.folding.fold import convert_folded
from splitgraph.conversion.known_values import LeftOut, find_left_out
from splitgraph.conversion.opset import convert_opset
from splitgraph.conversion.plan import Plan
from splitgraph.conversion.repair import repaired
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.conversion.standard import convert_standard
from splitgraph.conversion.targets.refusals import UserNames
from splitgraph.findings.diagnostics import ConversionError
from splitgraph.inference import later_leeway
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import model_imports
from splitgraph.options import Leeway
from splitgraph.runtimes.check import Examined, examine


class Prepared:
    """A model with its inference, and what becomes of it at each opset before a target has a say.

    model: it must not change while this lives. leeway: what the user permits. examined: the model, where the caller has
    it. user, begun: the model of the user, and how this one was made of it; None where it is the user's. All that is
    kept depends on these only, and is forgotten with the object.
    """

    def __init__(
        self,
        model: ModelProto,
        leeway: Leeway,
        examined: Examined | None = None,
        user: Prepared | None = None,
        begun: Rewrite | None = None,
    ) -> None:
        self.model, self.leeway = model, leeway
        self.later = later_leeway(model, leeway)
        self.user, self.begun = user or self, begun
        self._source = examined
        self._rewrites: dict[int | None, Rewrite | ConversionError] = {}
        # By the identity of a model, which is kept so that no other one gets its identity.
        self._examined: dict[int, tuple[ModelProto, Examined]] = {}
        self._left_out: dict[int, tuple[Examined, LeftOut]] = {}

    @property
    def source(self) -> Examined:
        """The model as the user has it."""
        if self._source is None:
            self._source = examine(self.model, self.leeway)
        return self._source

    @cached_property
    def names(self) -> UserNames:
        """What finds the node of this model that a node of a converted one stands for."""
        return UserNames(self.model)

    @cached_property
    def user_locations(self) -> Mapping[str, Sequence[str]]:
        """The locations of the user's nodes by those of this model's nodes; empty for the user's model."""
        return {} if self.user is self else self.user.names.locations(self.model)

    def at(self, opset: int | None) -> Rewrite:
        """Return the model at an opset; at its own one, or without one, it is only repaired. Raises ConversionError
        each time.
        """
        key = None if opset in (None, model_imports(self.model).get("")) else opset
        if key not in self._rewrites:
            try:
                self._rewrites[key] = (
                    self._repaired()
                    if key is None
                    else convert_opset(self.model, key, leeway=self.leeway, walked=self.source.walked)
                )
            except ConversionError as refused:
                self._rewrites[key] = refused
        known = self._rewrites[key]
        if isinstance(known, ConversionError):
            raise known
        return known if self.begun is None else self.begun.then(known)

    @cached_property
    def folded(self) -> Sequence[Prepared]:
        """The model folded: exactly; and then so that it relies on no dimension being 0, if that says more. Empty for a
        model that folding does not change, and for one that cannot be folded.
        """
        if self.source.errors:
            return ()
        try:
            exact = self._folded()
            nonempty = self._folded(nonempty=True)
        except ConversionError:
            # Folding is one way of several: what it would have to change has a finding that the user accepts.
            return ()
        ways = [exact] * bool(exact.changes) + [nonempty] * (nonempty.model != exact.model)
        return [self._after(way) for way in ways]

    @cached_property
    def rounded(self) -> Sequence[Prepared]:
        """The model folded as far as anything is known, and constants computed that a runtime may round otherwise: for
        a runtime that does not read what computes them. Empty if there is no such constant.
        """
        if self.source.errors:
            return ()
        try:
            way = self._folded(nonempty=True, rounds=True)
        except ConversionError:
            return ()
        return [self._after(way)] if way.rounding else ()

    @cached_property
    def standard(self) -> Sequence[Prepared]:
        """The model with the operators of other domains that have a standard form in operators of ai.onnx; empty where
        one of com.microsoft has none, and for a model that is wrong.
        """
        if self.source.errors:
            return ()
        try:
            way = convert_standard(self.model, leeway=self.leeway)
        except ConversionError:
            return ()
        return [self._after(way)] if way.changes else ()

    def at_versions(self, versions: Mapping[str, int]) -> Sequence[Prepared]:
        """Return the model at other versions of domains beside ai.onnx; nothing if it cannot be converted to these."""
        if self.source.errors:
            return ()
        try:
            return [self._after(convert_opset(self.model, versions, "keep", self.leeway))]
        except ConversionError:
            return ()

    def _after(self, way: Rewrite[ModelProto]) -> Prepared:
        """Return what a rewrite makes of the model."""
        begun = way if self.begun is None else self.begun.then(way)
        return Prepared(way.model, self.later, user=self.user, begun=begun)

    def _folded(self, *, nonempty: bool = False, rounds: bool = False) -> Rewrite[ModelProto]:
        return convert_folded(self.model, self.leeway, nonempty=nonempty, rounds=rounds, walked=self.source.walked)

    def _repaired(self) -> Rewrite[ModelProto]:
        """Return the model with its nodes repaired. Raises ConversionError for a model that is wrong."""
        rewrite, walked = repaired(self.model, self.leeway, self.source.walked)
        plan = Plan()
        plan.refuse_errors(walked)
        plan.raise_blockers("the model is wrong", rewrite.diagnostics)
        return rewrite

    def examine(self, model: ModelProto) -> Examined:
        """Return a result of `at`, or what became of it, as checks see it."""
        if model is self.model and self.later == self.leeway:
            return self.source
        known = self._examined.get(id(model))
        if known is None:
            known = self._examined[id(model)] = model, examine(model, self.later)
        return known[1]

    def left_out(self, examined: Examined) -> LeftOut:
        """Return what calls of functions leave out. examined: a result of `examine`, or a model of one round."""
        known = self._left_out.get(id(examined))
        if known is None or known[0] is not examined:
            known = self._left_out[id(examined)] = examined, find_left_out(examined.model, examined.walked.scopes)
        return known[1]
