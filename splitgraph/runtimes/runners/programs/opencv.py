"""OpenCV: its module dnn. OpenCV 5 chooses one of its two engines by itself."""

from __future__ import annotations

from typing import Any

import cv2

cv2.setNumThreads(1)


def version() -> str:
    """Return the version of the library."""
    return str(cv2.__version__)


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model."""
    net = cv2.dnn.readNetFromONNX(path)
    stage("prepare")
    # Newer releases take an array as it is; older ones need to be told that the last axis holds no channels.
    is_old = tuple(map(int, cv2.__version__.split(".")[:2])) < (4, 11)
    for name, array in inputs.items():
        try:
            net.setInput(cv2.Mat(array, wrap_channels=False) if is_old else array, name)
        except cv2.error as error:
            if "Overload resolution failed" not in str(error):
                raise
            raise BufferError(f"OpenCV takes no array of {array.dtype}") from error
    stage("run")
    return list(net.forward(outputs))
