"""Models with operators of real libraries: inferred, converted and verified with the library of their operators.

    python tests/campaigns/custom_operators.py --cache FOLDER

--cache holds an environment with onnxruntime-extensions and openvino-tokenizers, made where it is missing from the
environment of this Python. Each line says what was checked; the script ends with 1 if an answer is not the expected
one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("onnxruntime-extensions", "openvino-tokenizers")


def main() -> int:
    """Make the environment, and run this script in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="the folder of the environment")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        return report()
    python = _environment(given.cache)
    command = [str(python), str(Path(__file__).resolve()), "--cache", str(given.cache), "--inside"]
    return subprocess.run(command, check=False).returncode


def _environment(cache: Path) -> Path:
    """An environment that has the packages, and all that this Python has."""
    folder = cache / "custom_operators"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        (place,) = folder.glob("lib/python3*/site-packages")
        own = [path for path in sys.path if path.endswith("site-packages")]
        (place / "own.pth").write_text("\n".join([*own, str(ROOT)]) + "\n")
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES], check=True)
    return python


def report() -> int:
    """Print every check; return 1 if one failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for what, found, wanted in (*onnx_checks(), *openvino_checks(Path(folder))):
            is_right = found == wanted
            failed += not is_right
            print(f"{'ok ' if is_right else 'BAD'} {what}: {found}" + ("" if is_right else f", expected {wanted}"))
    return 1 if failed else 0


Check = tuple[str, object, object]


def onnx_checks() -> Iterator[Check]:
    """A model around `NegPos` of onnxruntime-extensions, which has one input and two outputs."""
    import onnx
    import onnxruntime_extensions

    import splitgraph

    library = onnxruntime_extensions.get_library_path()
    text = """<ir_version: 8, opset_import: ["": 13, "ai.onnx.contrib": 1]>
        g (float[N, 6] x) => (float[N, 3] a, float[N, 3] b) <float[N, 3] low, float[N, 3] high> {
            p, q = Split<axis = 1>(x)
            low, high = ai.onnx.contrib.NegPos(p)
            a = Add(low, q)
            c, d = Split<axis = 1>(x)
            b = REST(high, d)
        }"""
    model, other = (onnx.parser.parse_model(text.replace("REST", name)) for name in ("Sub", "Mul"))
    yield "infer", splitgraph.infer(model).ok, True
    for opset in (11, 13, 18, 21):
        rewrite = splitgraph.convert(model, opset=opset, verify=True, custom_ops=library)
        verification = rewrite.verification
        assert verification is not None
        kept = [node.op_type for node in rewrite.model.graph.node if node.domain == "ai.onnx.contrib"]
        yield f"convert to opset {opset} keeps the operator", kept, ["NegPos"]
        yield f"convert to opset {opset}", (verification.verdict, verification.engine), ("equal", "onnxruntime")
    yield "without the library", splitgraph.verify(model, model).verdict, "not-run"
    yield "another model", splitgraph.verify(model, other, custom_ops=library).verdict, "different"
    found = splitgraph.verify(model, model, custom_ops=library, engine="openvino")
    yield "a library of the other engine", "is not an extension of OpenVINO" in found.diagnostics[0].message, True


def openvino_checks(folder: Path) -> Iterator[Check]:
    """An IR with `CaseFold` of openvino-tokenizers."""
    import numpy as np
    import openvino_tokenizers

    import splitgraph

    (library,) = Path(openvino_tokenizers.__file__).parent.glob("lib/*openvino_tokenizers.*")
    path = folder / "fold.xml"
    # The writer loads the library, too.
    subprocess.run([sys.executable, "-c", _WRITE, str(library), str(path)], check=False)
    yield "infer an IR", splitgraph.infer(path).ok, True
    yield "an IR without the library", splitgraph.verify(path, path).verdict, "not-run"
    found = splitgraph.verify(path, path, custom_ops=library)
    yield "an IR with the library", (found.verdict, found.engine), ("equal", "openvino")
    texts = np.array(["Abc", "ÄÖ"])
    found = splitgraph.verify(path, path, custom_ops=library, inputs=[{"x": texts}, {"x": texts[:1]}])
    yield "an IR on given texts", (found.verdict, found.cases), ("equal", 2)


_WRITE = """
import sys
import openvino
from openvino import opset15
from openvino.utils.node_factory import NodeFactory

library, path = sys.argv[1:]
factory = NodeFactory()
factory.add_extension(library)
x = opset15.parameter([-1], openvino.Type.string, name="x")
folded = factory.create("CaseFold", opset15.string_tensor_unpack(x).outputs(), {"encoding": ""})
packed = opset15.string_tensor_pack(*folded.outputs())
openvino.serialize(openvino.Model([packed], [x], "fold"), path, path.replace(".xml", ".bin"))
"""

if __name__ == "__main__":
    sys.exit(main())
