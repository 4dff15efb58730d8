"""No two classes of the package share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import splitgraph

PACKAGE = Path(splitgraph.__file__).parent


def test_each_class_has_a_name_of_its_own() -> None:
    modules = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert "ValueType" in modules
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}
