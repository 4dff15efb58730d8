"""A rehearsal: onnx brings opset 29, which renames an attribute of one operator and adds an input to another.

What it takes is in the files of the two families and in the table of schemas, and nowhere else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "splitgraph"

CELU = '''

changed("Celu", 29, "the attribute alpha was renamed to slope")


@edited("Celu", 29)
def renamed_slope(c: NodeAtBoundary) -> None:
    """The value stays, and the default too."""
    old, new = ("alpha", "slope") if c.upward else ("slope", "alpha")
    if c.has(old):
        c.set(new, c.value(old), "the attribute was renamed at opset 29")
        c.drop(old, why="the attribute was renamed at opset 29")
'''
ROUND = '''

changed("Round", 29, "the optional input step was added", up=always)


@exact_downward("Round", 29)
def rounded_to_integers(c: NodeAtBoundary) -> bool:
    """Without the input, both versions round to integers."""
    return not c.uses_input(1)


@downward("Round", 29)
def rounded_in_steps(step: NodeAtBoundary) -> None:
    """Below 29, the data is divided by the step and the result multiplied by it."""
    data, size = step.inputs
    step.inputs[:] = [step.write("Div", [data, size], "in_steps")]
    old = step.redirect(0, "rounded")
    step.write_after("Mul", [step.outputs[0], size], old)
'''
NAMES = "from splitgraph.conversion.operators.registry import always, changed, downward, edited, exact_downward\n"
CROSSING = "from splitgraph.conversion.notation.node_at_boundary import NodeAtBoundary\n"
ADDED = {"functions.py": CROSSING + NAMES + CELU, "scanning.py": CROSSING + NAMES + ROUND}
ROWS = (
    "\tCelu\t29 function\t1 1 1\tX::T:3\tY::T:3\tslope::1=1.0",
    "\tRound\t29\t1 2 1\tX::T:3;step:?:T:3\tY::T:3\t",
)

CONVERSIONS = """
import numpy as np, onnx, splitgraph
from onnx.reference import ReferenceEvaluator

def model(opset, text):
    head = f'<ir_version: 10, opset_import: ["": {opset}]> g (float[N] x) => (float[N] y)'
    return onnx.parser.parse_model(head + " {" + text + "}")

def nodes(rewrite):
    return [(node.op_type, len(node.input), [a.name for a in node.attribute]) for node in rewrite.model.graph.node]

up = splitgraph.upgrade(model(13, "y = Celu<alpha=2.0>(x)"), 29)
assert nodes(up) == [("Celu", 1, ["slope"])], nodes(up)
assert up.model.opset_import[0].version == 29
down = splitgraph.downgrade(up.model, 13)
assert nodes(down) == [("Celu", 1, ["alpha"])], nodes(down)
assert splitgraph.infer(up.model).ok

assert nodes(splitgraph.upgrade(model(13, "y = Round(x)"), 29)) == [("Round", 1, [])]
scaled = splitgraph.downgrade(model(29, "step = Constant<value_float=0.5>() y = Round(x, step)"), 13)
assert [name for name, _, _ in nodes(scaled)] == ["Constant", "Div", "Round", "Mul"], nodes(scaled)
x = np.array([0.2, 0.3, 1.7, -2.6], np.float32)
(y,) = ReferenceEvaluator(scaled.model).run(None, {"x": x})
assert np.array_equal(y, np.array([0, 0.5, 1.5, -2.5], np.float32)), y
print("converted")
"""


def with_opset_29(folder: Path) -> None:
    """A copy of the package in which the two families and the table know opset 29."""
    shutil.copytree(PACKAGE, folder / "splitgraph", ignore=shutil.ignore_patterns("__pycache__"))
    operators = folder / "splitgraph" / "conversion" / "operators"
    for name, text in ADDED.items():
        path = operators / name
        path.write_text(path.read_text(encoding="utf-8") + "\n\n" + text, encoding="utf-8")
    table = folder / "splitgraph" / "model" / "schemas" / "schemas.txt"
    lines = table.read_text(encoding="utf-8").splitlines()
    lines[0] = lines[0].replace("=28", "=29")
    for row in ROWS:
        operator = row.split("\t")[1]
        last = max(index for index, line in enumerate(lines) if line.startswith(f"\t{operator}\t"))
        # The references to lists of types are those of the version before.
        types = lines[last].split("\t")[4].rsplit(":", 1)[1]
        lines.insert(last + 1, row.replace("T:3", f"T:{types}"))
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_new_opset_is_two_families_and_the_table(tmp_path: Path) -> None:
    with_opset_29(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", CONVERSIONS]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.stdout == "converted\n", ran.stderr
