"""The environment of processes whose time is measured."""

from __future__ import annotations

import os
import tempfile

# Compiled modules are kept here, as an installation has them: compiling its own each time, a checkout on a
# machine that keeps none (PYTHONDONTWRITEBYTECODE) would take three times as long to import.
COMPILED = tempfile.TemporaryDirectory(prefix="splitgraph-benchmark-")
# NumPy's OpenBLAS starts a thread for each core, which spins for a while although nobody multiplies here: counted in,
# what onnx needs for a small model would be twice or three times as much.
ALONE = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": COMPILED.name, "PYTHONDONTWRITEBYTECODE": ""}
