"""Decide whether two models can be compared, and by which engines.

- A model in OpenVINO IR runs in OpenVINO only. If the other model is ONNX, another engine runs that one if possible.
- The reference evaluator loads no libraries of operators and has no providers, so that it is not asked if there are
  any.
- "auto" asks OpenVINO about two ONNX models only for devices that OpenVINO alone has.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from splitgraph.conversion.apply import apply_plan
from splitgraph.conversion.repair import plan_repairs
from splitgraph.findings.diagnostics import Diagnostic, Severity, diagnostic
from splitgraph.inference import walk_model
from splitgraph.model.scopes import sort_nodes
from splitgraph.options import Engine
from splitgraph.verification.engine_settings import OLDEST_OPSET, EngineSettings, memory_limit, provider_of
from splitgraph.verification.help_texts import MORE_MEMORY, installing, is_installed
from splitgraph.verification.models.model_files import is_default_domain, scoped_nodes, weights_of
from splitgraph.verification.models.model_pair import ComparedModel

# A cycle, an opset that does not exist or is not imported, a name defined twice, a value that nothing defines. Engines
# may run such a model, but its outputs prove nothing.
_MEANINGLESS = frozenset({"SG102", "SG103", "SG104", "SG105", "SG110"})
# Faults that can be repaired in one way only; engines need not accept them.
_REPAIRABLE = frozenset({"SG207", "SG208", "SG209", "SG416"})
_TOO_DEEP, _WITHOUT_WEIGHTS, _UNSORTED = "SG114", "SG113", "SG112"


def with_sorted_nodes(compared: ComparedModel) -> ComparedModel:
    """Return the model with its nodes in topological order, as the reference evaluator needs them."""
    if not isinstance(compared.model, onnx.ModelProto) or _first_fault(compared, {_UNSORTED}) is None:
        return compared
    copy = onnx.ModelProto()
    copy.CopyFrom(compared.model)
    sort_nodes(copy)
    return compared.with_onnx(copy)


def with_order(first: ComparedModel, second: ComparedModel) -> ComparedModel:
    """Return the first model with sorted TopK, if the second model has no other: sorted=0 allows any order, so that the
    second model may sort.
    """
    if not isinstance(first.model, onnx.ModelProto) or not isinstance(second.model, onnx.ModelProto):
        return first
    if not any(_unsorted(first.model)) or any(_unsorted(second.model)):
        return first
    copy = onnx.ModelProto()
    copy.CopyFrom(first.model)
    for attribute in _unsorted(copy):
        attribute.i = 1
    return first.with_onnx(copy)


def _unsorted(model: onnx.ModelProto) -> Iterator[onnx.AttributeProto]:
    """Yield the attribute of each TopK that may give its elements in any order."""
    for node, _ in scoped_nodes(model):
        if node.op_type == "TopK":
            yield from (each for each in node.attribute if each.name == "sorted" and not each.i)


def find_too_deep(first: ComparedModel, second: ComparedModel) -> Diagnostic | None:
    """Return why one of the models cannot be analysed: its graphs or types are nested too deeply; None otherwise."""
    for which, compared in (("first", first), ("second", second)):
        fault = _first_fault(compared, {_TOO_DEEP})
        if fault is not None:
            return _bad_model(f"the {which} model cannot be analysed", fault)
    return None


def find_incomparable(first: ComparedModel, second: ComparedModel) -> Diagnostic | None:
    """Return why the models cannot be compared: one has no meaning, no weights or no outputs; None otherwise."""
    for which, compared in (("first", first), ("second", second)):
        fault = _first_fault(compared, _MEANINGLESS, "error")
        if fault is not None:
            return _bad_model(f"the {which} model has no defined meaning", fault)
        fault = _first_fault(compared, {_WITHOUT_WEIGHTS})
        if fault is not None:
            return _bad_model(f"the {which} model cannot be run", fault)
        if not compared.interface.graph.output:
            missing = "outputs" if compared.is_ir or compared.interface.HasField("graph") else "graph"
            text = f"the {which} model has no {missing}, so there is nothing to compare"
            return diagnostic("SG501", text, help="Give models that have outputs; export the model again.")
    return None


def repair_first(first: ComparedModel, second: ComparedModel) -> tuple[ComparedModel, Diagnostic | None]:
    """Repair the splits of the first model; return it with why it is still invalid, or None.

    A Split-18 without `split` and `num_outputs` can only mean one thing, so that `num_outputs` is filled in. Any other
    invalid split has no meaning to compare with.
    """
    fault = _first_fault(first, _REPAIRABLE)
    if fault is not None and isinstance(first.model, onnx.ModelProto):
        second_fault = _first_fault(second, _REPAIRABLE)
        if second_fault is not None:
            return first, _bad_model("both models are invalid", second_fault)
        plan = plan_repairs(first.model, walk_model(first.model))
        first = first if plan is None else first.with_onnx(apply_plan(plan, first.model).model)
    faults = (
        finding
        for finding in first.analysis.diagnostics
        if finding.severity == "error" and finding.code.startswith("SG2")
    )
    invalid = next(faults, None)
    return first, None if invalid is None else _bad_model("the first model is invalid", invalid)


def find_missing_memory(*pair: ComparedModel) -> Diagnostic | None:
    """Return why a model is too large to run: its weights alone exceed the memory limit; None if both fit.

    The weights are counted before any of them is read.
    """
    needed = max(weights_of([compared.model]) for compared in pair)
    allowed = memory_limit(needed)
    if needed <= allowed:
        return None
    text = (
        f"a model has {needed / 2**30:,.3g} GiB of weights, more than the {allowed / 2**30:.3g} GiB that a run may use"
    )
    return diagnostic("SG501", text, severity="warning", help=MORE_MEMORY)


def _first_fault(
    compared: ComparedModel, codes: frozenset[str] | set[str], severity: Severity | None = None
) -> Diagnostic | None:
    """Return the first finding with one of the codes. severity: of the finding, None for any."""
    faults = (fault for fault in compared.analysis.diagnostics if fault.code in codes)
    return next((fault for fault in faults if severity in (None, fault.severity)), None)


def _bad_model(which: str, fault: Diagnostic) -> Diagnostic:
    """Report why a model was not run, with the help for the fault that was found in it."""
    return diagnostic("SG501", f"{which}: {fault.location or 'main'}: {fault.message}", help=fault.help)


def find_missing_engine(engine: Engine, *pair: ComparedModel) -> Diagnostic | None:
    """Return why no engine can run the models if one is an IR; None if one can."""
    if not any(compared.is_ir for compared in pair):
        return None
    if engine not in ("auto", "openvino"):
        text, help = f"{engine} does not run OpenVINO IR; only openvino does", 'Use the engine "auto" or "openvino".'
    elif not is_installed("openvino"):
        text, help = "OpenVINO is not installed, and no other engine runs OpenVINO IR", installing("openvino")
    else:
        return None
    return diagnostic("SG501", text, severity="warning", help=help)


def engines_for(engine: Engine, settings: EngineSettings, *pair: ComparedModel) -> list[str]:
    """Return the engines to ask, in this order; "a+b" means a for the first model and b for the second."""
    if engine != "auto":
        return [engine]
    models = [compared.model for compared in pair if isinstance(compared.model, onnx.ModelProto)]
    if not models:
        return ["openvino"]
    has_all = {
        name: all(provider_of(name, provider) for provider in settings.providers)
        for name in ("onnxruntime", "openvino")
    }
    if len(models) == len(pair):
        return ["openvino"] if has_all["openvino"] and not has_all["onnxruntime"] else _for_onnx(models, settings)
    names = _for_onnx(models, settings)
    combined = ["+".join("openvino" if compared.is_ir else name for compared in pair) for name in names]
    return [*combined, "openvino"] if has_all["openvino"] else combined


def _for_onnx(models: list[onnx.ModelProto], settings: EngineSettings) -> list[str]:
    """Return the engines for ONNX models, the one that decides most reliably first."""
    if settings.custom_ops or settings.providers:
        return ["onnxruntime"]
    opsets = [item.version for model in models for item in model.opset_import if is_default_domain(item.domain)]
    order = ["onnxruntime", "reference"]
    if opsets and min(opsets) < OLDEST_OPSET:
        order.reverse()
    return [name for name in order if is_installed(name)]


def refuse_unfit_providers(engines: list[str], settings: EngineSettings) -> None:
    """Raise ValueError for a provider that none of these engines has."""
    asked = list(dict.fromkeys(name for engine in engines for name in engine.split("+") if name != "reference"))
    for name in settings.providers:
        if not any(provider_of(engine, name) for engine in asked):
            owner = "onnxruntime" if provider_of("onnxruntime", name) else "OpenVINO"
            runs = " and ".join("OpenVINO" if engine_name == "openvino" else engine_name for engine_name in asked)
            raise ValueError(f"the provider {name!r} is one of {owner}, but {runs} runs these models")
