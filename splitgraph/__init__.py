"""splitgraph: ONNX models at another opset, for a runtime, or of other sizes, with every dimension, verified.

>>> import splitgraph
>>> analysis = splitgraph.infer("model.onnx")
>>> splitgraph.save(splitgraph.upgrade("model.onnx", 18).model, "model.opset18.onnx")
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from splitgraph.api import (
        blockers,
        check,
        convert,
        diff,
        downgrade,
        find_target,
        infer,
        load,
        reshape,
        save,
        targets,
        upgrade,
        verify,
    )
    from splitgraph.conversion.opset import Blockers
    from splitgraph.conversion.rewrite import Change, Rewrite
    from splitgraph.differences import (
        ModelDifference,
        NodeDifference,
        NodeForm,
        PartDifference,
        ValueDifference,
    )
    from splitgraph.dim import Dim, Obligation
    from splitgraph.findings.diagnostics import (
        ConversionError,
        Diagnostic,
        InternalError,
        ModelError,
        SplitgraphError,
        VerificationError,
    )
    from splitgraph.findings.outcome import Outcome
    from splitgraph.formats.openvino_ir import OpenVINOModel
    from splitgraph.inference.analysis import Analysis, Completeness, SplitReport
    from splitgraph.many.map_models import map_models
    from splitgraph.model.value_type import ValueType
    from splitgraph.runtimes.check import NodeAnswer
    from splitgraph.runtimes.target import Target
    from splitgraph.runtimes.target_findings import TargetFindings
    from splitgraph.verification.verification import Difference, Region, Verification
    from splitgraph.work.reporting import report

# The public names, each imported when it is first used: `splitgraph --help` must not pay for onnx.
_HOMES = {
    "splitgraph.api": (
        "blockers",
        "check",
        "convert",
        "diff",
        "downgrade",
        "find_target",
        "infer",
        "load",
        "reshape",
        "save",
        "targets",
        "upgrade",
        "verify",
    ),
    "splitgraph.work.reporting": ("report",),
    "splitgraph.conversion.opset": ("Blockers",),
    "splitgraph.many.map_models": ("map_models",),
    "splitgraph.conversion.rewrite": ("Change", "Rewrite"),
    "splitgraph.findings.diagnostics": (
        "ConversionError",
        "Diagnostic",
        "InternalError",
        "ModelError",
        "SplitgraphError",
        "VerificationError",
    ),
    "splitgraph.differences": (
        "ModelDifference",
        "NodeDifference",
        "NodeForm",
        "PartDifference",
        "ValueDifference",
    ),
    "splitgraph.dim": ("Dim", "Obligation"),
    "splitgraph.verification.verification": ("Difference", "Region", "Verification"),
    "splitgraph.formats.openvino_ir": ("OpenVINOModel",),
    "splitgraph.inference.analysis": ("Analysis", "Completeness", "SplitReport"),
    "splitgraph.findings.outcome": ("Outcome",),
    "splitgraph.runtimes.check": ("NodeAnswer",),
    "splitgraph.runtimes.target_findings": ("TargetFindings",),
    "splitgraph.runtimes.target": ("Target",),
    "splitgraph.model.value_type": ("ValueType",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Analysis",
    "Blockers",
    "Change",
    "Completeness",
    "ConversionError",
    "Diagnostic",
    "Difference",
    "Dim",
    "InternalError",
    "ModelDifference",
    "ModelError",
    "NodeAnswer",
    "NodeDifference",
    "NodeForm",
    "Obligation",
    "OpenVINOModel",
    "Outcome",
    "PartDifference",
    "Region",
    "Rewrite",
    "SplitReport",
    "SplitgraphError",
    "Target",
    "TargetFindings",
    "ValueDifference",
    "ValueType",
    "Verification",
    "VerificationError",
    "blockers",
    "check",
    "convert",
    "diff",
    "downgrade",
    "find_target",
    "infer",
    "load",
    "map_models",
    "report",
    "reshape",
    "save",
    "targets",
    "upgrade",
    "verify",
]


# A type checker would take this for leave to use any name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module 'splitgraph' has no attribute {name!r}")
        from splitgraph.model.deferred import import_whole

        import_whole(home)
        value = getattr(sys.modules[home], name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
