"""The names of targets as people write them, and the nearest measured version for one that was not measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# Other names of targets, in lower case and without what stands between words.
_ALIASES: Mapping[str, str] = {
    "coremltools": "coreml",
    "cv": "opencv",
    "cv2": "opencv",
    "dml": "directml",
    "ort": "onnxruntime",
    "ortweb": "onnxruntime-web",
    "ov": "openvino",
    "qnn": "snpe",
    "trt": "tensorrt",
}
_BETWEEN_WORDS = re.compile(r"[-_ .]")
# The newest opset that releases of onnxruntime read, from the release on that began with it (docs of onnxruntime,
# "Compatibility"): 1.0 to 1.20.
_OPSETS_OF_ONNXRUNTIME = (
    *(((1, 0), 10), ((1, 1), 11), ((1, 2), 12), ((1, 6), 13), ((1, 8), 14), ((1, 9), 15)),
    *(((1, 11), 16), ((1, 12), 17), ((1, 14), 18), ((1, 15), 19), ((1, 17), 20), ((1, 18), 21)),
)


def plain_name(text: str, names: Sequence[str]) -> str:
    """Return the name of a target that a text means: "TensorRT" and "trt" mean "tensorrt". Return the text itself if it
    means none.
    """
    known = {_folded(name): name for name in names}
    folded = _folded(text)
    return known.get(folded) or _ALIASES.get(folded) or text


def _folded(text: str) -> str:
    return _BETWEEN_WORDS.sub("", text.lower())


def nearest(name: str, version: str, measured: Sequence[str]) -> str | None:
    """Return the measured version that stands for another one: the newest that is older, because what a release reads,
    later ones seldom refuse. None if all are newer: what such a release lacks is not known.

    measured: from the newest to the oldest. An older onnxruntime is an exception, because the opset that it reads is
    known: the oldest measured one stands for it.
    """
    wanted = numbers_of(version)
    if not wanted or not measured:
        return None
    older = next((each for each in measured if numbers_of(each) <= wanted), None)
    return measured[-1] if older is None and newest_opset_of(name, version) is not None else older


def numbers_of(version: str) -> list[int]:
    """Return the numbers of a version: [2024, 6] for "2024.6"; none for another text."""
    return [int(part) for part in version.split(".")] if re.fullmatch(r"\d+(\.\d+)*", version) else []


def leading_numbers(version: str) -> str:
    """Return the version without what follows its numbers: "0.27.0" for "0.27.0.post1"; "" for another text."""
    found = re.match(r"\d+(\.\d+)*", version)
    return "" if found is None else found[0]


def newest_opset_of(name: str, version: str) -> int | None:
    """Return the newest opset that a version of a runtime is known to read; None if that is not known. Only the
    documents of onnxruntime say it.
    """
    wanted = tuple(numbers_of(version)[:2])
    if name != "onnxruntime" or len(wanted) < 2 or not (1, 0) <= wanted < (1, 21):
        return None
    return next(opset for since, opset in reversed(_OPSETS_OF_ONNXRUNTIME) if wanted >= since)
