"""What each rewriting verb makes of a model that is open: one conversion for ONNX models, one for OpenVINO IRs.

`rewrites.rewritten` opens a model, calls the conversion of its verb, and verifies the result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from splitgraph.findings.diagnostics import ConversionError, SplitgraphError, diagnostic
from splitgraph.model.deferred import import_whole
from splitgraph.model.scopes import VERSIONED_DOMAINS, model_imports, named_opset, plain_domain
from splitgraph.options import Converting, IRVersion, Leeway, NewSizes, Opset, Running, opsets_of

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Rewrite

NO_OPSET = "OpenVINO IR has no opset of ONNX; only ONNX models go from opset to opset"
_NO_FOLDING = "OpenVINO folds an IR itself when it loads one; fold is for ONNX models"
_NO_STANDARD = "OpenVINO IR has no operators of com.microsoft; standard is for ONNX models"
_NO_ZIP_MAPS = "OpenVINO IR has no maps; drop_zipmap is for ONNX models"
_NO_IR_VERSION = "OpenVINO IR has no IR version of ONNX; leave ir_version out"


class StartingModel(NamedTuple):
    """What a conversion starts from.

    leeway: what the user permits. folder: of the model's data files; None if it is not known. owned: no one else uses
    the model, so it may be edited.
    """

    model: Any
    leeway: Leeway
    folder: Path | None
    owned: bool


class Conversion(NamedTuple):
    """What a verb does with an ONNX model, and with an OpenVINO IR. Both raise ConversionError with every blocker."""

    onnx: Callable[[StartingModel], Rewrite]
    ir: Callable[[StartingModel], Rewrite]


# None: there was nothing to do.
_Step = Callable[[StartingModel], "Rewrite | None"]


def to_opset(opset: Any, ir_version: IRVersion, *, newer: bool) -> Conversion:
    """Return the conversion of `upgrade` or `downgrade`. Raises SplitgraphError as `wanted_opset`."""
    return Conversion(partial(_in_direction, newer, wanted_opset(opset), ir_version), _refuse_opset)


def to_sizes(wanted: NewSizes, leeway: Leeway) -> Conversion:
    """Return the conversion of `reshape`."""
    steps: list[_Step] = [*_own_form(leeway), partial(_at_sizes, wanted)]
    return Conversion(partial(_in_turn, steps), partial(_ir_at_sizes, wanted))


def in_steps(
    wanted: Converting, leeway: Leeway, running: Running | None = None, say: Callable[[str], None] = lambda text: None
) -> Conversion:
    """Return the conversion of `convert`, which may take several steps. Raises SplitgraphError for what no model can
    become, and if nothing is asked for.

    running: how the result is run in the runtime of the target; None for not at all. say: is told each step of that.
    """
    wanted = _checked(wanted, leeway)
    steps = tuple(_steps(wanted, leeway, running, say))
    return Conversion(partial(_in_turn, steps), partial(_ir_as_wanted, wanted))


def wanted_opset(opset: Any) -> Opset:
    """Return an opset as an int, or those of several domains by their names, "" for ai.onnx. Raises SplitgraphError for
    what is no integer, and for a domain that has no opsets to convert to.
    """
    if not isinstance(opset, Mapping):
        return _integer_opset(opset)
    opsets: dict[str, int] = {}
    for name, version in opset.items():
        domain = plain_domain(name) if isinstance(name, str) else None
        if domain not in VERSIONED_DOMAINS:
            known = " and ".join(each or "ai.onnx" for each in VERSIONED_DOMAINS)
            raise SplitgraphError(f"{name!r} is not a domain with opsets to convert to; those are {known}")
        if domain in opsets:
            raise SplitgraphError("the opset of ai.onnx is given twice")
        opsets[domain] = _integer_opset(version)
    if not opsets:
        raise SplitgraphError('the opset is {}; give one such as {"": 17, "ai.onnx.ml": 3}')
    return opsets[""] if opsets.keys() == {""} else opsets


def _integer_opset(opset: Any) -> int:
    """Return an opset as an int. Raises SplitgraphError for anything that is no integer."""
    if isinstance(opset, bool) or not hasattr(opset, "__index__"):
        import_whole("splitgraph.model.schemas")
        from splitgraph.model.schemas import newest_opset

        raise SplitgraphError(f"the opset is {opset!r}; it must be an integer, such as {newest_opset()}")
    return operator.index(opset)


def _checked(wanted: Converting, leeway: Leeway) -> Converting:
    """Return what `convert` is asked for, with its opset as an int."""
    for name in ("fold", "standard", "drop_zipmap"):
        if not isinstance(getattr(wanted, name), bool):
            raise SplitgraphError(f"{name} is {getattr(wanted, name)!r}; it must be True or False")
    if wanted.target is not None:
        import_whole("splitgraph.runtimes.target")
        from splitgraph.runtimes.target import find_target

        if wanted.to is not None or wanted.explicit_lengths:
            raise SplitgraphError("a target says which forms of splits it reads; leave `to` and explicit_lengths out")
        find_target(wanted.target)
        return wanted if wanted.opset is None else wanted._replace(opset=wanted_opset(wanted.opset))
    if wanted.opset is not None:
        return wanted._replace(opset=wanted_opset(wanted.opset))
    asked = wanted.ir_version is not None or wanted.fold or wanted.standard or wanted.drop_zipmap
    asked = asked or leeway.fix_defaults or leeway.read_by_form
    if wanted.to is None and (not asked or wanted.explicit_lengths):
        text = "convert needs a form of the splits (to), an opset, both, a target, standard, fold, or an IR version"
        raise SplitgraphError(text)
    return wanted


# ONNX models ----------------------------------------------------------------------------------------------------------


def _steps(wanted: Converting, leeway: Leeway, running: Running | None, say: Callable[[str], None]) -> Iterator[_Step]:
    """Yield the steps of `convert`."""
    # On its way to an opset a node needs no other form between; all other conversions read the model's own opset.
    if wanted.opset is None or wanted.target is not None:
        yield from _own_form(leeway, may_move=wanted.target is not None)
    if wanted.drop_zipmap:
        yield _without_zip_maps
    if wanted.standard:
        yield partial(_as_standard, wanted)
    if wanted.fold:
        yield _folded
    if wanted.target is not None:
        others = {domain: version for domain, version in wanted.opsets.items() if domain}
        if others:
            yield partial(_at_opset, others, None)
        yield partial(_for_target, wanted._replace(opset=wanted.opsets.get("")), running, say)
        return
    if wanted.opset is not None and not wanted.standard:
        yield partial(_at_opset, wanted.opset, wanted.ir_version)
    if wanted.to is not None:
        yield partial(_in_form, wanted)
    elif wanted.opset is None and not (
        (wanted.fold or wanted.standard or wanted.drop_zipmap) and wanted.ir_version is None
    ):
        yield partial(_at_ir_version, wanted)


def _in_turn(steps: Sequence[_Step], start: StartingModel) -> Rewrite:
    """Return the rewrite of all steps; each step converts the result of the one before."""
    import_whole("splitgraph.inference")
    from splitgraph.inference import later_leeway

    first, *others = steps
    # A step moves nodes, and may edit the model in place. So the nodes that the caller accepts are looked up before.
    later = later_leeway(start.model, start.leeway) if others else start.leeway
    rewrite = first(start)
    if not others:
        assert rewrite is not None
        return rewrite
    if rewrite is None:
        return _in_turn(others, start)
    owned = start.owned or rewrite.model is not start.model
    return rewrite.then(_in_turn(others, start._replace(model=rewrite.model, leeway=later, owned=owned)))


def _own_form(leeway: Leeway, *, may_move: bool = False) -> Iterator[_Step]:
    """Yield the step that reads nodes by their form, if the leeway permits it. may_move: see `in_own_form`."""
    if leeway.read_by_form:
        yield partial(_in_own_form, may_move)


def _in_own_form(may_move: bool, start: StartingModel) -> Rewrite | None:
    import_whole("splitgraph.conversion.opset")
    from splitgraph.conversion.opset import in_own_form

    return in_own_form(start.model, start.leeway, may_move=may_move)


def _as_standard(wanted: Converting, start: StartingModel) -> Rewrite:
    import_whole("splitgraph.conversion.standard")
    from splitgraph.conversion.standard import convert_standard

    # A target has an opset of its own, which the step for it goes to.
    opset = wanted.opset if wanted.target is None else None
    return convert_standard(start.model, opset, wanted.ir_version, start.leeway, owned=start.owned)


def _without_zip_maps(start: StartingModel) -> Rewrite:
    import_whole("splitgraph.conversion.zip_maps")
    from splitgraph.conversion.zip_maps import without_zip_maps

    return replace(without_zip_maps(start.model, start.leeway), without_zip_maps=True)


def _folded(start: StartingModel) -> Rewrite:
    import_whole("splitgraph.conversion.folding.fold")
    from splitgraph.conversion.folding.fold import convert_folded

    return convert_folded(start.model, start.leeway)


def _in_direction(newer: bool, opset: Opset, ir_version: IRVersion, start: StartingModel) -> Rewrite:
    """Convert a model to an opset. An upgrade refuses an older opset, and a downgrade a newer one."""
    import_whole("splitgraph.model.schemas")
    from splitgraph.model.schemas import newest_opset
    from splitgraph.model.schemas.table import newest_in_table

    imports = model_imports(start.model)
    for domain, wanted in opsets_of(opset).items():
        source = imports.get(domain, wanted)
        newest = newest_in_table(domain) if domain else newest_opset(max(source, wanted))
        # An opset that does not exist is a finding about the model, which the conversion reports.
        both_exist = 1 <= source <= newest and 1 <= wanted <= newest
        if both_exist and wanted != source and newer != (wanted > source):
            raise _other_way(domain, source, wanted)
    return _at_opset(opset, ir_version, start)


def _other_way(domain: str, source: int, opset: int) -> ConversionError:
    """Return the error of an upgrade to an older opset, or of a downgrade to a newer one."""
    way, verb = ("older", "downgrade") if opset < source else ("newer", "upgrade")
    text = f"the model is at {named_opset(domain, source)}, and {opset} is {way}; use {verb}"
    option = f"--opset {domain}={opset}" if domain else f"--opset {opset}"
    help = f"Run splitgraph {verb} {option}, or convert {option}, which converts in both directions."
    return ConversionError(text, [diagnostic("SG418", text, help=help)])


def _at_opset(opset: Opset, ir_version: IRVersion, start: StartingModel) -> Rewrite:
    import_whole("splitgraph.conversion.opset")
    from splitgraph.conversion.opset import convert_opset

    return convert_opset(start.model, opset, ir_version, start.leeway, owned=start.owned)


def _in_form(wanted: Converting, start: StartingModel) -> Rewrite:
    import_whole("splitgraph.conversion.splits.forms")
    from splitgraph.conversion.splits.forms import convert_forms

    lengths = wanted.explicit_lengths
    return convert_forms(start.model, wanted.to, start.leeway, explicit_lengths=lengths, ir_version=wanted.ir_version)


def _at_ir_version(wanted: Converting, start: StartingModel) -> Rewrite:
    import_whole("splitgraph.conversion.ir_version")
    from splitgraph.conversion.ir_version import convert_ir_version

    return convert_ir_version(start.model, start.model.ir_version if wanted.ir_version is None else wanted.ir_version)


def _at_sizes(wanted: NewSizes, start: StartingModel) -> Rewrite:
    import_whole("splitgraph.conversion.sizes.convert")
    from splitgraph.conversion.sizes.convert import convert_sizes

    return convert_sizes(start.model, wanted._replace(folder=start.folder), start.leeway)


def _for_target(
    wanted: Converting, running: Running | None, say: Callable[[str], None], start: StartingModel
) -> Rewrite:
    """Convert a model for a target, and run the result there if its runtime is here."""
    import_whole("splitgraph.conversion.targets.convert")
    from splitgraph.conversion.targets.convert import convert_for_target
    from splitgraph.runtimes.target import find_target

    assert wanted.target is not None
    target = find_target(wanted.target)
    by_table = partial(convert_for_target, start.model, target, wanted.opsets.get(""), wanted.ir_version, start.leeway)
    if running is None:
        return by_table()
    import_whole("splitgraph.verification.in_runtime.ways")
    from splitgraph.runtimes.runners.interpreters import KINDS
    from splitgraph.runtimes.runners.result import RuntimeRun
    from splitgraph.verification.in_runtime.run import trials_of
    from splitgraph.verification.in_runtime.ways import convert_in_runtime

    kind = KINDS.get(target.name)
    if kind is None:
        return by_table()
    try:
        with trials_of(start.model, kind, running, folder=start.folder, version=target.asked) as trials:
            if isinstance(trials, RuntimeRun):
                return replace(by_table(), ran=trials)
            here = target.as_installed(trials.host.runner.version)
            return convert_in_runtime(start.model, here, wanted, start.leeway, trials, say)
    except ValueError as error:
        raise SplitgraphError(str(error)) from error


# OpenVINO IRs ---------------------------------------------------------------------------------------------------------


def _refuse_opset(start: StartingModel) -> NoReturn:
    raise SplitgraphError(NO_OPSET)


def _ir_at_sizes(wanted: NewSizes, start: StartingModel) -> Rewrite:
    import_whole("splitgraph.conversion.sizes.convert_ir")
    from splitgraph.conversion.sizes.convert_ir import convert_ir_sizes

    return convert_ir_sizes(start.model, wanted._replace(folder=start.folder))


def _ir_as_wanted(wanted: Converting, start: StartingModel) -> Rewrite:
    if wanted.opset is not None:
        raise SplitgraphError(NO_OPSET)
    if wanted.fold:
        raise SplitgraphError(_NO_FOLDING)
    if wanted.standard:
        raise SplitgraphError(_NO_STANDARD)
    if wanted.drop_zipmap:
        raise SplitgraphError(_NO_ZIP_MAPS)
    if (wanted.to is None and wanted.target is None) or wanted.ir_version is not None:
        raise SplitgraphError(_NO_IR_VERSION)
    if wanted.target is not None:
        import_whole("splitgraph.conversion.targets.convert_ir")
        from splitgraph.conversion.targets.convert_ir import convert_ir_for_target
        from splitgraph.runtimes.target import find_target

        return convert_ir_for_target(start.model, find_target(wanted.target), start.leeway)
    import_whole("splitgraph.conversion.openvino_ir")
    from splitgraph.conversion.openvino_ir import convert_ir

    assert wanted.to is not None
    return convert_ir(start.model, wanted.to, explicit_lengths=wanted.explicit_lengths, leeway=start.leeway)
