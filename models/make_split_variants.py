"""Write one hand-made model per split variant: `python models/make_split_variants.py [--check]`.

Needs onnx and numpy only (`--check` also onnxruntime). The files are the same, byte for byte, wherever they are made.
"""

from __future__ import annotations

import argparse
import sys

import catalogue
import check_models
import onnx
import onnx.parser
from split_variants import MODELS


def main() -> int:
    """Write the models and the index; with `--check`, check them; the exit code is 1 when one fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="check every model, in a child process each")
    options = parser.parse_args()
    for entry, text in MODELS:
        model = onnx.parser.parse_model(text)
        (catalogue.FOLDER / entry.file).write_bytes(model.SerializeToString(deterministic=True))
    entries = [entry for entry, _ in MODELS]
    catalogue.write(entries, "make_split_variants.py")
    return 1 if options.check and check_models.check([entry.file for entry in entries]) else 0


if __name__ == "__main__":
    sys.exit(main())
