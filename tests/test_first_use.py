"""First use in threads: what is imported late is never handed out half imported."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "splitgraph").rglob("*.py")
}
# These run in one thread of a process: the command line, a worker of many models, an engine.
OF_ONE_THREAD = ("cli", "__main__", "commands", "reports.text", "work.task", "work.rewriting", "many.job")
OF_ONE_THREAD += ("verification.engines.engine",)
# Imports of a module itself, of its functions, and the names in one.
AT_ONCE = re.compile(r"^from (splitgraph[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
LATE = re.compile(r"^ +from (splitgraph[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
WORD = re.compile(r"\w+")

CALLS = {
    "infer": "S.infer(MODEL)",
    "upgrade": "S.upgrade(MODEL, 18)",
    "downgrade": "S.downgrade(MODEL, 11)",
    "convert": "S.convert(MODEL, 'slice')",
    "target": "S.convert(MODEL, target='openvino')",
    "check": "S.check(MODEL, 'mnn')",
    "diff": "S.diff(MODEL, MODEL)",
    "load": "S.load(MODEL)",
    "targets": "S.targets()",
    "report": "S.report(MODEL)",
    "names": "[getattr(S, name) for name in reversed(S.__all__)]",
    "infer ir": "S.infer(IR)",
    "convert ir": "S.convert(IR, 'variadic-split', explicit_lengths=True)",
    "diff ir": "S.diff(IR, IR)",
    "load ir": "S.load(IR)",
    "save ir": "S.save(S.load(IR), OUT)",
}
SCRIPT = """
import sys, threading
import splitgraph as S
MODEL, IR, OUT, *calls = sys.argv[1:]
sys.setswitchinterval(1e-5)
barrier = threading.Barrier(len(calls))
found = []
def first(call):
    barrier.wait()
    try:
        eval(call)
    except Exception as error:
        found.append(f"{call}: {type(error).__name__}: {error}")
threads = [threading.Thread(target=first, args=(call,)) for call in calls]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("\\n".join(found), end="")
"""


@pytest.mark.parametrize(
    "calls",
    [
        ["infer", "upgrade", "convert", "check", "diff", "infer ir", "convert ir", "load ir", "report"],
        ["load ir", "diff ir", "load", "names", "target", "downgrade", "save ir", "targets"],
    ],
)
def test_threads_of_a_cold_process(calls: list[str], tmp_path: Path) -> None:
    models = [str(ROOT / "models" / name) for name in ("split13_equal.onnx", "interval_split.xml")]
    typed = [*models, str(tmp_path / "out.xml"), *(CALLS[call] for call in calls)]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *typed], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("", "")


def names_in(texts: Iterable[tuple[str, str]]) -> set[str]:
    """The modules of splitgraph that imports name, (module, names) each."""
    named = {
        name for module, names in texts for name in (module, *(f"{module}.{each}" for each in WORD.findall(names)))
    }
    return named & MODULES.keys()


@functools.cache
def text_of(module: str) -> str:
    return MODULES[module].read_text("utf-8")


@functools.cache
def direct(module: str) -> frozenset[str]:
    """What a module imports while it is imported, its package among them."""
    return frozenset(names_in(AT_ONCE.findall(text_of(module))) | {module.rpartition(".")[0]} - {""})


def closure(modules: Iterable[str]) -> set[str]:
    """Modules, and all that is imported with them."""
    found: set[str] = set()
    left = list(modules)
    while left:
        module = left.pop()
        if module in MODULES and module not in found:
            found.add(module)
            left.extend(direct(module))
    return found


@functools.cache
def circles() -> frozenset[str]:
    """Packages that import modules of their own, and these modules, whose import needs that of the package: there,
    threads may wait for each other.
    """
    packages = [name for name in MODULES if any(each.startswith(f"{name}.") for each in direct(name))]
    inside = {name: {each for each in closure([name]) if each.startswith(f"{name}.")} for name in packages}
    return frozenset(packages).union(*inside.values())


def wholes(function: ast.FunctionDef) -> set[str]:
    """The modules that a function imports by `import_whole`."""
    calls = [each for each in ast.walk(function) if isinstance(each, ast.Call)]
    named = [call for call in calls if getattr(call.func, "id", "") == "import_whole"]
    return {each.value for call in named for each in call.args if isinstance(each, ast.Constant)}


def late_imports() -> Iterator[tuple[str, set[str]]]:
    """Each function of the library that imports modules in circles late, and the modules that it does not import whole
    first. What a module has imported itself is there when one of its functions runs, and the API is in the hands of
    whoever calls it.
    """
    exempt = tuple(f"splitgraph.{name}" for name in OF_ONE_THREAD)
    for module in MODULES:
        if f"{module}.".startswith(tuple(f"{name}." for name in exempt)) or not LATE.search(text_of(module)):
            continue
        known = closure([module, "splitgraph.api"])
        for function in (each for each in ast.walk(ast.parse(text_of(module))) if isinstance(each, ast.FunctionDef)):
            late = closure(names_in(LATE.findall(ast.unparse(function))) - known) - known
            if late & circles():
                yield f"{module}.{function.name}", (late & circles()) - closure(wholes(function))


def test_what_is_in_a_circle_is_imported_whole() -> None:
    found = dict(late_imports())
    assert {name: left for name, left in found.items() if left} == {}
    # The search sees something.
    seen = ("open_models.inferred", "formats.open_model", "verbs._at_opset")
    assert {f"splitgraph.{name}" for name in seen} <= set(found)
