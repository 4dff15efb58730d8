"""A pass for Olive (the package olive-ai; tested with 0.13.0): convert an ONNX model with splitgraph inside a workflow.

Olive finds passes in a package configuration. `package_config()` is Olive's own with this pass added:

    olive.run(run_config, package_config=package_config())

For the command `olive run --package-config olive_config.json`, write the file with

    python -m splitgraph.pipelines.olive_pass > olive_config.json
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any, Literal

from olive.model import ONNXModelHandler
from olive.model.utils import resolve_onnx_path
from olive.package_config import OlivePackageConfig
from olive.passes import Pass
from olive.passes.onnx.common import get_external_data_file_names
from olive.passes.pass_config import PassConfigParam
from olive.resource_path import LocalFile, LocalFolder

import splitgraph
from splitgraph.findings.diagnostics import SplitgraphError

_LOG = logging.getLogger(__name__)


def _switch(description: str, default: bool = False) -> PassConfigParam:
    return PassConfigParam(type_=bool, default_value=default, description=description)


_PARAMETERS: dict[str, PassConfigParam] = {
    "opset": PassConfigParam(type_=int, description="The ai.onnx opset to convert to, newer or older."),
    "target": PassConfigParam(
        type_=str,
        description="The runtime that the model is for, such as onnxruntime or openvino@2023.3.",
    ),
    "to": PassConfigParam(type_=Literal["split", "variadic-split", "slice"], description="The form of the splits."),
    "explicit_lengths": _switch("With `to`: give every split explicit lengths, and inline local functions."),
    "fold": _switch("Write what is known: constants in place of the nodes that make them."),
    "standard": _switch("Write operators of com.microsoft in those of ai.onnx."),
    "drop_zipmap": _switch(
        "Give the numbers of a classifier as a tensor, and not as maps from labels to numbers (ZipMap)."
    ),
    "ir_version": PassConfigParam(
        type_=int | Literal["keep"],
        description="The IR version of the result; the default keeps the model's own, or raises it if necessary.",
    ),
    "read_by_form": _switch("Read a node in the form of another version of its operator as that version."),
    "fix_defaults": _switch("Take initializers out of the inputs, so that they are constants."),
    "verify": _switch(
        "Run the model and the result. A difference fails the pass; if nothing can run them, a warning.", default=True
    ),
    "save_as_external_data": _switch(
        "Write the weights to a file beside the model. External data stays external in any case."
    ),
}
_WANTED = ("opset", "target", "to", "fold", "standard", "drop_zipmap", "ir_version", "read_by_form", "fix_defaults")


class SplitgraphConversion(Pass):  # type: ignore[misc]  # Olive has no types
    """Convert an ONNX model to another opset, for a runtime, or its splits to another form, exactly or not at all.

    The parameters are those of `splitgraph.convert`. A blocker raises ConversionError, a result that differs
    VerificationError: Olive logs the error, and the workflow gives no model; a search goes on without this candidate.
    """

    @classmethod
    def _default_config(cls, accelerator_spec: Any) -> dict[str, PassConfigParam]:
        return dict(_PARAMETERS)

    @classmethod
    def validate_config(cls, config: Any, accelerator_spec: Any) -> bool:
        """Return whether the parameters say what to convert to; Olive drops a pass whose parameters do not."""
        try:
            if all(getattr(config, name) in (None, False) for name in _WANTED):
                raise SplitgraphError(
                    "give an opset, a target, a form of the splits (to), fold, standard, drop_zipmap, an IR "
                    "version, read_by_form or fix_defaults"
                )
            if config.target is not None and (config.to is not None or config.explicit_lengths):
                raise SplitgraphError("a target says which forms it reads; leave to and explicit_lengths out")
            if config.target is not None:
                from splitgraph.runtimes.target import find_target

                find_target(config.target)
        except SplitgraphError as error:
            _LOG.error("%s: %s", cls.__name__, error)
            return False
        return True

    def _run_for_config(self, model: ONNXModelHandler, config: Any, output_model_path: str) -> ONNXModelHandler:
        if model.external_initializers_path or model.constant_inputs_path:
            raise SplitgraphError("the model has weights in files that are not external data; run this pass before")
        rewrite = splitgraph.convert(
            model.model_path,
            config.to,
            opset=config.opset,
            target=config.target,
            explicit_lengths=config.explicit_lengths,
            fold=config.fold,
            standard=config.standard,
            drop_zipmap=config.drop_zipmap,
            ir_version=config.ir_version,
            read_by_form=config.read_by_form,
            fix_defaults=config.fix_defaults,
            verify=config.verify,
        )
        for finding in rewrite.diagnostics:
            _LOG.warning("%s %s: %s", finding.code, finding.location, finding.message)
        path = Path(resolve_onnx_path(output_model_path, Path(model.model_path).name))
        rewrite.save(path, external_data="beside" if config.save_as_external_data else None)
        # The files of weights belong to the model, so that the model is the folder.
        is_folder = bool(get_external_data_file_names(path))
        resource = LocalFolder({"path": path.parent}) if is_folder else LocalFile({"path": path})
        return ONNXModelHandler(
            model_path=resource,
            onnx_file_name=path.name if is_folder else None,
            inference_settings=model.inference_settings,
            use_ort_extensions=model.use_ort_extensions,
        )


def package_config() -> dict[str, Any]:
    """Return Olive's package configuration with this pass added, for `package_config` of `olive.run`."""
    text = Path(OlivePackageConfig.get_default_config_path()).read_text(encoding="utf-8")
    config: dict[str, Any] = json.loads(text)
    everything = {f"supported_{kind}": ["*"] for kind in ("providers", "accelerators", "precisions")}
    home = f"splitgraph.pipelines.olive_pass.{SplitgraphConversion.__name__}"
    config["passes"][SplitgraphConversion.__name__] = {"module_path": home, **everything}
    return config


if __name__ == "__main__":
    json.dump(package_config(), sys.stdout, indent=2)
