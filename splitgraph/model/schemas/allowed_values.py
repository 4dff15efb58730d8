"""Attributes that take one of a few values only. Schemas do not say which; the texts of the operators do.

Where the text of a version allows other values than that of another version, each version has its own. The entries were
compared with what onnxruntime, OpenVINO and the reference evaluator run, but for these, which rest on the texts alone:
the modes of RoiAlign in capitals, CausalConvWithState, LinearAttention, CastMap, TreeEnsemble-5, SpaceToDepth-28, the
directions of Scan, and qk_matmul_output_mode of Attention.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

from splitgraph.model.schemas.kinds import names

Values = tuple[str, ...] | tuple[int, ...]
# The values from each version on.
ByVersion = Mapping[int, Values]

_ML = "ai.onnx.ml"
_LOSS = ("none", "sum", "mean")
_SCATTERED = ("none", "add", "mul", "max", "min")
_TRANSFORMS = {"post_transform": ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")}
_KERNELS = {"kernel_type": ("LINEAR", "POLY", "RBF", "SIGMOID"), **_TRANSFORMS}
_NODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")
_TREES = {"nodes_modes": _NODES, **_TRANSFORMS}

_FLAG = (0, 1)
# Attributes that are 0 or 1 in every operator of ai.onnx that has them, but for the keepdims of SplitToSequence:
# onnxruntime and the reference evaluator take every number but 0 as 1.
_FLAGS = names(
    "ceil_mode center_point_box exclusive fmod inverse keepdims largest layout periodic reverse select_last_index "
    "sorted storage_order upper"
)
_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")

# By domain and operator, the allowed values of each attribute; for a list, the values of each element.
_ALLOWED: Mapping[tuple[str, str], Mapping[str, Values | ByVersion]] = {
    ("", "AffineGrid"): {"align_corners": _FLAG},
    ("", "Attention"): {"qk_matmul_output_mode": (0, 1, 2, 3)},
    ("", "BitShift"): {"direction": ("LEFT", "RIGHT")},
    ("", "Cast"): {"round_mode": ("up", "down", "nearest")},
    ("", "CastLike"): {"round_mode": ("up", "down", "nearest")},
    ("", "CausalConvWithState"): {"activation": ("silu", "swish", "none")},
    ("", "DFT"): {"onesided": _FLAG},
    ("", "DepthToSpace"): {"mode": ("DCR", "CRD")},
    ("", "Gelu"): {"approximate": ("none", "tanh")},
    ("", "GridSample"): {
        "mode": {16: ("bilinear", "nearest", "bicubic"), 20: ("linear", "nearest", "cubic")},
        "padding_mode": ("zeros", "border", "reflection"),
    },
    ("", "ImageDecoder"): {"pixel_format": ("RGB", "BGR", "Grayscale")},
    ("", "LinearAttention"): {"update_rule": ("linear", "gated", "delta", "gated_delta")},
    ("", "LpNormalization"): {"p": (1, 2)},
    ("", "NegativeLogLikelihoodLoss"): {"reduction": _LOSS},
    ("", "Pad"): {"mode": {1: ("constant", "reflect", "edge"), 19: ("constant", "reflect", "edge", "wrap")}},
    ("", "Resize"): {
        "mode": {10: ("nearest", "linear"), 11: ("nearest", "linear", "cubic")},
        "coordinate_transformation_mode": {
            11: (*_COORDINATES, "tf_half_pixel_for_nn"),
            13: _COORDINATES,
            19: (*_COORDINATES, "half_pixel_symmetric"),
        },
        # onnxruntime runs an empty one.
        "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", ""),
        "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    },
    ("", "ReverseSequence"): {"batch_axis": _FLAG, "time_axis": _FLAG},
    ("", "RoiAlign"): {
        "mode": ("avg", "max"),
        "coordinate_transformation_mode": ("half_pixel", "output_half_pixel"),
    },
    ("", "Scan"): dict.fromkeys(("directions", "scan_input_directions", "scan_output_directions"), _FLAG),
    ("", "ScatterElements"): {"reduction": {16: _SCATTERED[:3], 18: _SCATTERED}},
    ("", "ScatterND"): {"reduction": {16: _SCATTERED[:3], 18: _SCATTERED}},
    ("", "SoftmaxCrossEntropyLoss"): {"reduction": _LOSS},
    ("", "SpaceToDepth"): {"mode": ("DCR", "CRD")},
    ("", "StringNormalizer"): {"case_change_action": ("LOWER", "UPPER", "NONE")},
    ("", "TensorScatter"): {"mode": ("linear", "circular")},
    ("", "TfIdfVectorizer"): {"mode": ("TF", "IDF", "TFIDF")},
    ("", "Upsample"): {"mode": {1: ("nearest", "bilinear"), 7: ("nearest", "linear")}},
    (_ML, "CastMap"): {"cast_to": ("TO_FLOAT", "TO_STRING", "TO_INT64"), "map_form": ("DENSE", "SPARSE")},
    (_ML, "LinearClassifier"): _TRANSFORMS,
    (_ML, "LinearRegressor"): _TRANSFORMS,
    (_ML, "Normalizer"): {"norm": ("MAX", "L1", "L2")},
    (_ML, "SVMClassifier"): _KERNELS,
    (_ML, "SVMRegressor"): _KERNELS,
    (_ML, "TreeEnsemble"): {"aggregate_function": (0, 1, 2, 3), "post_transform": (0, 1, 2, 3, 4)},
    (_ML, "TreeEnsembleClassifier"): _TREES,
    (_ML, "TreeEnsembleRegressor"): {"aggregate_function": ("AVERAGE", "SUM", "MIN", "MAX"), **_TREES},
}
# The least value of each attribute, or of each of its elements.
_LEAST: Mapping[tuple[str, str], Mapping[str, int]] = {
    ("", "DequantizeLinear"): {"block_size": 0},
    ("", "GlobalLpPool"): {"p": 1},
    ("", "LRN"): {"size": 1},
    ("", "LpPool"): {"p": 1},
    ("", "QuantizeLinear"): {"block_size": 0},
    ("", "RoiAlign"): {"sampling_ratio": 0, "output_height": 1, "output_width": 1},
}

_ORT_AND_REFERENCE = "onnxruntime and the reference evaluator"
_EVERY_ENGINE = "onnxruntime, OpenVINO and the reference evaluator"
_FLAGS_RUN = dict.fromkeys((-1, 2), "OpenVINO and the reference evaluator")
_SCATTERED_RUN = dict.fromkeys(("max", "min"), _EVERY_ENGINE)
# Values that the text of the version does not allow and that at least two engines run, all in one way; and these
# engines. What the others do is refuse the node.
_RUN: Mapping[tuple[str, str], Mapping[str, Mapping[Any, str]]] = {
    ("", "CumSum"): {"exclusive": _FLAGS_RUN, "reverse": _FLAGS_RUN},
    ("", "Pad"): {"mode": {"wrap": _ORT_AND_REFERENCE}},
    ("", "Resize"): {
        "coordinate_transformation_mode": {
            "half_pixel_symmetric": _ORT_AND_REFERENCE,
            "tf_half_pixel_for_nn": "onnxruntime and OpenVINO",
        }
    },
    ("", "ScatterElements"): {"reduction": _SCATTERED_RUN},
    ("", "ScatterND"): {"reduction": _SCATTERED_RUN},
}
# Values that no version allows under this name, or another version only, and the name of the version; by the rank of
# the first input at which the two mean the same. All engines that accept such a value take it so.
_RENAMED: Mapping[tuple[str, str], Mapping[str, Mapping[str, tuple[str, int | None]]]] = {
    ("", "GridSample"): {
        "mode": {
            "linear": ("bilinear", 4),
            "cubic": ("bicubic", 4),
            "bilinear": ("linear", 4),
            "bicubic": ("cubic", 4),
        }
    },
    ("", "RoiAlign"): {"mode": {"AVG": ("avg", None), "MAX": ("max", None)}},
    ("", "Upsample"): {"mode": {"linear": ("bilinear", 4), "bilinear": ("linear", 4), "trilinear": ("linear", 5)}},
}


class Fault(NamedTuple):
    """What is wrong with the value of an attribute. run_by: the engines that run it, all in one way; "" if too few."""

    text: str
    run_by: str = ""


def constrained_attributes(domain: str, op: str) -> Collection[str]:
    """Return names of the attributes of an operator that take a few values only, or none below some number."""
    flags = () if domain else _FLAGS
    return {*_ALLOWED.get((domain, op), ()), *_LEAST.get((domain, op), ()), *flags}


def fault_of_value(domain: str, op: str, version: int, attribute: str, value: Any) -> Fault | None:
    """Return what is wrong with the value of such an attribute: int, str or a tuple of these. Return None if the value
    is allowed, or of another type; types are checked elsewhere.
    """
    values = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(item, (int, str)) for item in values):
        return None
    allowed = allowed_values(domain, op, version, attribute)
    if allowed is None:
        least = _LEAST.get((domain, op), {}).get(attribute)
        low = [] if least is None else [item for item in values if item < least]
        return Fault(f"{attribute} is {low[0]}; it must be at least {least}") if low else None
    if set(values).issubset(allowed):
        return None
    wrong = [item for item in values if item not in allowed]
    listed = ", ".join(str(value) for value in allowed if value != "")
    run = _RUN.get((domain, op), {}).get(attribute, {})
    run_by = run.get(wrong[0], "") if wrong[0] in run and len(wrong) == 1 else ""
    return Fault(f"{attribute} is {wrong[0]!r}; it must be one of {listed}", run_by)


@cache
def allowed_values(domain: str, op: str, version: int, attribute: str) -> Values | None:
    """Return the values that an attribute of a version takes; None where any is allowed, or any number from the least
    on.
    """
    values = _ALLOWED.get((domain, op), {}).get(attribute)
    if not domain and attribute in _FLAGS and op != "SplitToSequence":
        return _FLAG
    if not isinstance(values, Mapping):
        return values
    return values[max((since for since in values if since <= version), default=min(values))]


def meant_value(domain: str, op: str, version: int, attribute: str, value: Any, rank: int | None) -> str | None:
    """Return the allowed value that a wrong one can only mean, for a first input of this rank; None if there is
    none.
    """
    if not isinstance(value, str):
        return None
    renamed = _RENAMED.get((domain, op), {}).get(attribute, {}).get(value)
    allowed = allowed_values(domain, op, version, attribute) or ()
    if renamed is None or value in allowed or renamed[0] not in allowed:
        return None
    return renamed[0] if renamed[1] in (None, rank) else None
