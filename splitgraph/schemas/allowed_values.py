"""Attributes that take one of a few values only. Schemas do not say which; the texts of the operators do.

Where versions differ, the values of all of them are here: runtimes take those of another version, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

_ML = "ai.onnx.ml"
_LOSS = ("none", "sum", "mean")
_SCATTERED = ("none", "add", "mul", "max", "min")
_TRANSFORMS = {"post_transform": ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")}
_KERNELS = {"kernel_type": ("LINEAR", "POLY", "RBF", "SIGMOID"), **_TRANSFORMS}
_NODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")
_TREES = {"nodes_modes": _NODES, **_TRANSFORMS}

# By domain and operator, the values by attribute; of a list, those that each element may be.
_ALLOWED: Mapping[tuple[str, str], Mapping[str, tuple[str, ...] | tuple[int, ...]]] = {
    ("", "BitShift"): {"direction": ("LEFT", "RIGHT")},
    ("", "Cast"): {"round_mode": ("up", "down", "nearest")},
    ("", "CastLike"): {"round_mode": ("up", "down", "nearest")},
    ("", "DepthToSpace"): {"mode": ("DCR", "CRD")},
    ("", "Gelu"): {"approximate": ("none", "tanh")},
    ("", "GridSample"): {
        "mode": ("linear", "nearest", "cubic", "bilinear", "bicubic"),
        "padding_mode": ("zeros", "border", "reflection"),
    },
    ("", "ImageDecoder"): {"pixel_format": ("RGB", "BGR", "Grayscale")},
    ("", "LpNormalization"): {"p": (1, 2)},
    ("", "MaxPool"): {"storage_order": (0, 1)},
    ("", "NegativeLogLikelihoodLoss"): {"reduction": _LOSS},
    ("", "NonMaxSuppression"): {"center_point_box": (0, 1)},
    ("", "Pad"): {"mode": ("constant", "reflect", "edge", "wrap")},
    ("", "Resize"): {
        "mode": ("nearest", "linear", "cubic"),
        "coordinate_transformation_mode": (
            "half_pixel",
            "half_pixel_symmetric",
            "pytorch_half_pixel",
            "align_corners",
            "asymmetric",
            "tf_half_pixel_for_nn",
            "tf_crop_and_resize",
        ),
        # onnxruntime runs an empty one.
        "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", ""),
        "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    },
    ("", "ReverseSequence"): {"batch_axis": (0, 1), "time_axis": (0, 1)},
    ("", "RoiAlign"): {"coordinate_transformation_mode": ("half_pixel", "output_half_pixel")},
    ("", "ScatterElements"): {"reduction": _SCATTERED},
    ("", "ScatterND"): {"reduction": _SCATTERED},
    ("", "SoftmaxCrossEntropyLoss"): {"reduction": _LOSS},
    ("", "StringNormalizer"): {"case_change_action": ("LOWER", "UPPER", "NONE")},
    ("", "TensorScatter"): {"mode": ("linear", "circular")},
    ("", "TfIdfVectorizer"): {"mode": ("TF", "IDF", "TFIDF")},
    ("", "Upsample"): {"mode": ("nearest", "linear", "bilinear", "cubic")},
    (_ML, "LinearClassifier"): _TRANSFORMS,
    (_ML, "LinearRegressor"): _TRANSFORMS,
    (_ML, "Normalizer"): {"norm": ("MAX", "L1", "L2")},
    (_ML, "SVMClassifier"): _KERNELS,
    (_ML, "SVMRegressor"): _KERNELS,
    (_ML, "TreeEnsembleClassifier"): _TREES,
    (_ML, "TreeEnsembleRegressor"): {"aggregate_function": ("AVERAGE", "SUM", "MIN", "MAX"), **_TREES},
}
# The least value of each attribute, or of each of its elements.
_LEAST: Mapping[tuple[str, str], Mapping[str, int]] = {
    ("", "DequantizeLinear"): {"block_size": 0},
    ("", "LRN"): {"size": 1},
    ("", "QuantizeLinear"): {"block_size": 0},
    ("", "RoiAlign"): {"sampling_ratio": 0},
}


def constrained_attributes(domain: str, op: str) -> Collection[str]:
    """Names of the attributes of an operator that take a few values only, or none below some number."""
    return {*_ALLOWED.get((domain, op), ()), *_LEAST.get((domain, op), ())}


def fault_of_value(domain: str, op: str, attribute: str, value: Any) -> str | None:
    """What is wrong with the value of such an attribute: int, str or a tuple of these; None for one that is allowed."""
    values = value if isinstance(value, tuple) else (value,)
    allowed = _ALLOWED.get((domain, op), {}).get(attribute)
    if allowed is None:
        least = _LEAST[domain, op][attribute]
        low = [each for each in values if each < least]
        return f"{attribute} is {low[0]}; it must be at least {least}" if low else None
    wrong = [each for each in values if each not in allowed]
    listed = ", ".join(str(each) for each in allowed if each != "")
    return f"{attribute} is {wrong[0]!r}; it must be one of {listed}" if wrong else None
