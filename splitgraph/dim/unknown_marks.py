"""Texts in `dim_param` that mark a dimension as unknown. They are no names: two dimensions with the same mark need not
be equal. `docs/dimensions.md` says who writes which.
"""

from __future__ import annotations

import re

_MARKS = frozenset(
    {
        # The empty text and "*" meant "unknown" in the first versions of the ONNX specification.
        "",
        "*",
        # Paddle2ONNX, the text form of ONNX, and TensorFlow 1 where it prints a shape.
        "?",
        # ML.NET, CNTK, and the converters for scikit-learn and Keras: Python's None as a text.
        "none",
        # The same of other languages and of tables.
        "null",
        "nan",
        "undefined",
        # The word itself, as scripts that edit shapes write it. tf2onnx's `unk__12` is a name: each has its own number.
        "unk",
        "unknown",
        "dyn",
        "dynamic",
        # OpenVINO's editor of ONNX models.
        "__dynamic_dimension__",
    }
)
# -1 is the unknown dimension of most frameworks, and others have other negative numbers.
_NEGATIVE = re.compile(r"-[0-9]+")


def marks_unknown(text: str) -> bool:
    """True for a `dim_param` that says that the dimension is unknown, in letters of either case and with any spaces."""
    word = text.strip().lower()
    return word in _MARKS or _NEGATIVE.fullmatch(word) is not None
