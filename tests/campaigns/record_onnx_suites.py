"""Records the cases of onnx's own tests of shape inference and of its version converter from onnx's source package.

    python tests/campaigns/record_onnx_suites.py [--onnx 1.23.2]

Downloads the source package of that version with pip, runs its tests against the onnx that is installed (it should be
the same version), and writes `tests/conformance/onnx_suites.jsonl.gz`, which `test_onnx_suites.py` beside it reads.
Takes about half a minute. The package is under the Apache-2.0 licence.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import click
import onnx

HERE = Path(__file__).resolve().parent
RECORD = HERE.parent / "conformance" / "onnx_suites.jsonl.gz"
SUITES = [
    "shape_inference_test.py",
    "split_shape_inference_test.py",
    "data_propagation_test.py",
    "symbolic_shape_test.py",
    "function_inference_test.py",
    "model_inference_test.py",
    "version_converter_test.py",
    "version_converter",
]


@click.command()
@click.option("--onnx", "version", default=onnx.__version__, show_default=True, help="Version of the source package.")
def main(version: str) -> None:
    """Record onnx's own tests."""
    with tempfile.TemporaryDirectory() as scratch:
        tests = _source(version, Path(scratch)) / "tests" / "python"
        # Two of the tests use schemas of their own, which no model can name.
        command = [sys.executable, "-m", "pytest", "-q", "-p", "onnx_suites_recorder", "-p", "no:cacheprovider"]
        command += ["-k", "not CustomSchema", "--import-mode=importlib", "--rootdir", ".", *SUITES]
        path = os.pathsep.join([str(HERE), str(tests), str(tests / "version_converter")])
        environment = {**os.environ, "PYTHONPATH": path, "ONNX_SUITES_RECORD": str(RECORD)}
        subprocess.run(command, cwd=tests, env=environment, check=True)
    click.echo(f"wrote {RECORD} ({RECORD.stat().st_size:,} bytes)")


def _source(version: str, scratch: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "onnx"]
    subprocess.run([*command, f"onnx=={version}", "--dest", str(scratch)], check=True)
    (archive,) = scratch.glob("*.tar.gz")
    with tarfile.open(archive) as held:
        held.extractall(scratch, filter="data")
    return scratch / archive.name.removesuffix(".tar.gz")


if __name__ == "__main__":
    main()
