"""Writing a model in operators of ai.onnx alone: what onnxruntime and its tools wrote as operators of their own."""

from __future__ import annotations

from dataclasses import replace

from splitgraph.conversion.imports import drop_imports, used_domains
from splitgraph.conversion.opset import convert_opset
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import model_imports
from splitgraph.options import STRICT, IRVersion, Leeway, Opset

# How the names of its domains begin: it imports all of them in each model that it saves.
_WRITTEN_BY_ONNXRUNTIME = ("com.microsoft", "com.ms.internal")


def convert_standard(
    model: ModelProto,
    opset: Opset | None = None,
    ir_version: IRVersion = None,
    leeway: Leeway = STRICT,
    *,
    owned: bool = False,
) -> Rewrite[ModelProto]:
    """Return a copy of a model whose operators of com.microsoft, and of ai.onnx.ml where they have a form, are written
    in operators of ai.onnx; the model itself is not changed.

    opset: of the result; None is the model's own. Other arguments and errors as `convert_opset`; a node of
    com.microsoft without a form is a blocker.
    """
    used = used_domains(model)
    rewrite = convert_opset(model, {} if opset is None else opset, ir_version, leeway, owned=owned, standard=True)
    left = used_domains(rewrite.model)
    drop_imports(
        rewrite.model,
        [
            domain
            for domain in model_imports(rewrite.model)
            if domain and domain not in left and (domain in used or domain.startswith(_WRITTEN_BY_ONNXRUNTIME))
        ],
    )
    return replace(rewrite, to_opset=model_imports(rewrite.model))
