"""Choose the engines that are asked about two models.

- A model in OpenVINO IR runs in OpenVINO only. If the other model is ONNX, another engine runs that one if possible.
- The reference evaluator loads no libraries of operators and has no providers, so that it is not asked if there are
  any.
- "auto" asks OpenVINO about two ONNX models only for devices that OpenVINO alone has.
"""

from __future__ import annotations

import onnx

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.execution.engine_settings import EngineSettings
from splitgraph.execution.help_texts import installing, is_installed
from splitgraph.execution.limits import OLDEST_OPSET
from splitgraph.execution.models.model_edits import is_default_domain
from splitgraph.execution.models.model_pair import ComparedModel
from splitgraph.execution.providers import provider_of
from splitgraph.options import Engine


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
        name: all(provider_of(name, each) for each in settings.providers) for name in ("onnxruntime", "openvino")
    }
    if len(models) == len(pair):
        return ["openvino"] if has_all["openvino"] and not has_all["onnxruntime"] else _for_onnx(models, settings)
    found = _for_onnx(models, settings)
    combined = ["+".join("openvino" if compared.is_ir else name for compared in pair) for name in found]
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
            runs = " and ".join("OpenVINO" if each == "openvino" else each for each in asked)
            raise ValueError(f"the provider {name!r} is one of {owner}, but {runs} runs these models")
