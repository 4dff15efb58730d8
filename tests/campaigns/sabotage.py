"""Random lines of splitgraph are broken, one at a time: which tests find it?

    python tests/campaigns/sabotage.py results.jsonl --seed 1 --count 50              draws lines, asks the near tests
    python tests/campaigns/sabotage.py results.jsonl --stage default --jobs 2         the default tests
    python tests/campaigns/sabotage.py results.jsonl --stage slow --jobs 2            the slow tests of the near rooms
    python tests/campaigns/sabotage.py results.jsonl --summary

Lines are drawn evenly from all lines of code; `--only dim` takes those of one room. The syntax tree says what can be
changed on a line: a comparison or its boundary, a condition, a number by 1, `and` to `or`, a statement that is
dropped, None or nothing in place of a result, two arguments swapped, an entry of a list of names removed. Messages,
docstrings, annotations and imports stay. Tests run in a copy of the files that git knows, never in the checkout.

Near are the tests that import the module or have its name, and those of its room; they stop at the first failure. What
they miss goes to the other stages, where the tests run once with all of these changes together; each failure is then
run with one change at a time, and with none, so that one long run judges them all. A test that takes longer than two
minutes ends as a failure: a change that hangs is found.

Results are lines of JSON, and a run goes on where the last one ended. `"equal": "why"` is added by hand to a change
that no test can see.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = ("splitgraph/__main__.py", "splitgraph/keywords.py", "splitgraph/reports/html/assets/")
# The tests of a room, where their folder has another name.
TESTS_OF = {"reports": "report", "commands": "command_line", "work": "command_line"}
STAGES = ("near", "default", "slow")
_HANGS = 120
_OTHERS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_EMPTY = {
    "list": "[]",
    "dict": "{}",
    "set": "set()",
    "tuple": "()",
    "str": "''",
    "Iterable": "[]",
    "Iterator": "iter(())",
}
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A piece of a file, from byte to byte, and what takes its place."""

    file: str
    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str

    def applied(self, source: bytes) -> bytes:
        """Return the changed file."""
        return source[: self.start] + self.after.encode() + source[self.end :]


# What can be changed


def changes_of(file: str, source: bytes) -> Iterator[Change]:
    """Yield every change of a file."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, kind, after in _replacements(ast.parse(source), ""):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        yield Change(file, node.lineno, kind, start, end, source[start:end].decode(), after)


def means_something_else(change: Change) -> bool:
    """Return True if a changed file compiles, and has another syntax tree; a parenthesis in a pattern does not."""
    source = (ROOT / change.file).read_bytes()
    try:
        return ast.dump(ast.parse(change.applied(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def _replacements(node: ast.AST, returns: str) -> Iterator[tuple[Any, str, str]]:
    """Yield the nodes below a node that can be replaced, why, and by which text. returns: the annotation of the
    function.
    """
    match node:
        case ast.JoinedStr() | ast.Raise() | ast.Assert() | ast.Import() | ast.ImportFrom():
            if isinstance(node, ast.Raise):
                yield node, "dropped", "pass"
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("__"):
            return
        case ast.FunctionDef(returns=annotation):
            returns = ast.unparse(annotation) if annotation else ""
    yield from _replacements_of(node, returns)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _replacements(child, returns)


def _replacements_of(node: ast.AST, returns: str) -> Iterator[tuple[Any, str, str]]:
    """Yield what can be replaced of this node alone."""
    match node:
        case ast.Compare(ops=[operator]):
            for other in _OTHERS[type(operator)]:
                yield _with(node, "comparison", ops=[other()])
        case ast.BoolOp(op=operator):
            yield _with(node, "and, or", op=ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, "negated", f"bool({ast.unparse(operand)})"
        case ast.Constant(value=bool() as value):
            yield node, "negated", str(not value)
        case ast.Constant(value=int() as value):
            yield from ((node, "number", f"({value + by})") for by in (1, -1))
        case ast.Constant(value=str() as text) if re.fullmatch(r"[A-Z]\w+(\s+[A-Z]\w+)+\s*", text):
            yield from _fewer_words(node, text.split())
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete() | ast.Continue() | ast.Break():
            yield node, "dropped", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "dropped", "pass"
        case ast.Return(value=value) if value and not (isinstance(value, ast.Constant) and not value.value):
            yield node, "nothing", f"return {_EMPTY.get(returns.partition('[')[0], 'None')}"
        case ast.Call(args=arguments):
            yield from _swapped(node, arguments)
        case ast.Set(elts=names) | ast.List(elts=names) | ast.Tuple(elts=names) if _are_names(names):
            yield from _one_removed(node, "elts")
        case ast.Dict(keys=names) if _are_names(names):
            yield from _one_removed(node, "keys", "values")
        case ast.FunctionDef(decorator_list=decorators):
            for each in decorators:
                if isinstance(each, ast.Call) and _are_names(each.args):
                    yield from _one_removed(each, "args")
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Compare):
        yield node.test, "negated", f"(not ({ast.unparse(node.test)}))"
    if isinstance(node, ast.comprehension):
        yield from ((test, "negated", "True") for test in node.ifs)


def _with(node: Any, kind: str, **fields: Any) -> tuple[Any, str, str]:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return node, kind, f"({ast.unparse(changed)})"


def _swapped(call: ast.Call, arguments: Sequence[ast.expr]) -> Iterator[tuple[Any, str, str]]:
    """Yield the call with two neighbours of one kind swapped."""
    for at, (left, right) in enumerate(itertools.pairwise(arguments)):
        if type(left) is type(right) and not isinstance(left, ast.Constant | ast.Starred):
            swapped = [*arguments[:at], right, left, *arguments[at + 2 :]]
            yield _with(call, "swapped", args=swapped)


def _are_names(values: Sequence[ast.expr | None]) -> bool:
    """Return True for two names or more, all in quotes."""
    texts = [each.value if isinstance(each, ast.Constant) else None for each in values]
    return len(texts) > 1 and all(isinstance(text, str) and re.fullmatch(r"\w+", text) for text in texts)


def _one_removed(node: Any, *fields: str) -> Iterator[tuple[Any, str, str]]:
    """Yield a node without each of its entries."""
    for at in range(len(getattr(node, fields[0]))):
        rest = {name: [each for i, each in enumerate(getattr(node, name)) if i != at] for name in fields}
        _, kind, after = _with(node, "name removed", **rest)
        yield node, kind, after if isinstance(node, ast.Tuple) else after[1:-1]


def _fewer_words(node: ast.Constant, words: list[str]) -> Iterator[tuple[Any, str, str]]:
    for at in range(len(words)):
        yield node, "name removed", repr(" ".join(words[:at] + words[at + 1 :]))


def draw(seed: int, count: int, only: str) -> list[Change]:
    """Return one change for each of `count` lines; a longer list begins like a shorter one."""
    lines: dict[tuple[str, int], dict[str, list[Change]]] = {}
    for path in sorted((ROOT / "splitgraph" / only).rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if not file.startswith(LEFT_OUT):
            for change in changes_of(file, path.read_bytes()):
                lines.setdefault((file, change.line), {}).setdefault(change.kind, []).append(change)
    rng = random.Random(seed)
    places = sorted(lines)
    rng.shuffle(places)
    drawn = (rng.choice(lines[place][rng.choice(sorted(lines[place]))]) for place in places)
    return list(itertools.islice(filter(means_something_else, drawn), count))


# Which tests are near


def room_of(file: str) -> list[str]:
    """Return the tests that mirror the folder of a file, or the nearest folder above it that has any."""
    parts = list(Path(file).parts[1:-1])
    if not parts:
        return sorted(f"tests/{path.name}" for path in (ROOT / "tests").glob("test_*.py"))
    parts[0] = TESTS_OF.get(parts[0], parts[0])
    while not (folder := ROOT.joinpath("tests", *parts)).is_dir():
        parts.pop()
    return [folder.relative_to(ROOT).as_posix()]


def near_tests(file: str) -> list[str]:
    """Return the tests to run, the nearest first."""
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    above, _, name = module.rpartition(".")
    imports = re.compile(rf"{re.escape(module)}\b|from {re.escape(above)} import [^\n]*\b{name}\b")
    named, importing = [], []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path.stem == f"test_{name}":
            named.append(path)
        elif imports.search(path.read_text(encoding="utf-8")):
            importing.append(path)
    files = [path.relative_to(ROOT).as_posix() for path in named + importing]
    return list(dict.fromkeys([*files, *room_of(file)]))


# Running them


class Copy:
    """The files that git knows, in a folder of their own, where a change is made and taken back.

    broken: tests that fail without any change.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broken: list[str] = []
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for file in listed.split("\0")[:-1]:
            if (ROOT / file).exists():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, folder / file)

    @contextlib.contextmanager
    def changed(self, changes: Iterable[Change]) -> Iterator[None]:
        """Make changes for the time of a block. What was compiled goes: within a second, a file of the same length
        counts as the same.
        """
        files = {change.file for change in changes}
        try:
            for change in sorted(changes, key=lambda each: -each.start):
                path = self.folder / change.file
                path.write_bytes(change.applied(path.read_bytes()))
            self._forget(files)
            yield
        finally:
            for file in files:
                shutil.copy(ROOT / file, self.folder / file)
            self._forget(files)

    def _forget(self, files: Iterable[str]) -> None:
        for file in files:
            path = self.folder / file
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                compiled.unlink()

    @property
    def failed(self) -> Path:
        """Where pytest keeps the tests that failed."""
        return self.folder / ".pytest_cache" / "v" / "cache" / "lastfailed"

    def run(self, *arguments: str, seconds: float) -> tuple[list[str], bool]:
        """Run pytest; return the tests that failed, or what is said where none could run, and whether it ended."""
        hangs = ["-o", f"faulthandler_timeout={_HANGS}", "-o", "faulthandler_exit_on_timeout=true"]
        self.failed.unlink(missing_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *hangs, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return [], False
        failed = list(json.loads(self.failed.read_text())) if self.failed.exists() else []
        if not failed and process.returncode not in (0, 5):
            failed = ["hangs" if "Timeout (" in said else said.strip()[-300:]]
        return failed, True


def ask_near(tree: Copy, change: Change, seconds: float) -> Record:
    """Return what the near tests say of a change. Tests that fail without the change, too, say nothing."""
    started = time.monotonic()
    while True:
        left_out = [word for test in tree.broken for word in ("--deselect", test)]
        with tree.changed([change]):
            failed, ended = tree.run("-n", "0", "-x", *left_out, *near_tests(change.file), seconds=seconds)
        if "::" not in "".join(failed) or not (unchanged := tree.run("-n", "0", *failed, seconds=seconds)[0]):
            break
        tree.broken += unchanged
    record = {"found": "near" if failed else None, "by": failed[0] if failed else "", "asked": ["near"]}
    return record | {"ended": ended, "seconds": round(time.monotonic() - started)}


def ask_together(tree: Copy, changes: Sequence[Change], stage: str, options: argparse.Namespace) -> list[Record]:
    """Return what the tests of a stage say of each change: they run once with all, and what fails runs with each."""
    chosen = ["-m", "not slow and not browser"]
    if stage == "slow":
        chosen = ["-m", "slow or hypothesis", *sorted({test for each in changes for test in room_of(each.file)})]
        os.environ["SPLITGRAPH_EXAMPLES"] = "all"
    started = time.monotonic()
    with tree.changed(changes):
        failed, ended = tree.run("-n", str(options.jobs), *chosen, seconds=options.seconds)
    print(f"{len(failed)} tests failed with all {len(changes)} changes, ended: {ended}", flush=True)
    tests = [test for test in failed if (tree.folder / test.partition("::")[0]).is_file()]
    unchanged, _ = tree.run("-n", "0", *chosen[:2], *tests, seconds=options.seconds) if tests else ([], True)
    tests = [test for test in tests if test not in unchanged]
    took = round(time.monotonic() - started)
    records = []
    for change in changes:
        found: list[str] = []
        with tree.changed([change]):
            if tests:
                found, _ = tree.run("-n", "0", "-x", *chosen[:2], *tests, seconds=options.seconds)
        records.append({"found": stage if found else None, "by": found[0] if found else "", "ended": ended})
        records[-1]["seconds"] = took
    return records


# Results


def read(path: Path) -> list[Record]:
    """Return what is known of each change, the last line of each."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return list({tuple(record["change"].values()): record for record in map(json.loads, lines)}.values())


def summary(records: Sequence[Record]) -> str:
    """Return how many changes each stage found."""
    seen = [record for record in records if "equal" not in record]
    found = Counter(record["found"] or "not" for record in seen)
    parts = [f"{len(records)} changes, {len(records) - len(seen)} of them equal"]
    return "; ".join(parts + [f"found {stage}: {found[stage]}" for stage in (*STAGES, "not")])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--only", default="", metavar="ROOM", help="a folder of splitgraph/")
    parser.add_argument("--stage", choices=STAGES, default="near")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600, help="the longest run of tests")
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    records = read(options.results)
    if options.summary:
        print(summary(records))
        return 0

    def keep(change: Change, record: Record) -> None:
        fields = {name: getattr(change, name) for name in Change.__slots__}
        with options.results.open("a", encoding="utf-8") as held:
            held.write(json.dumps({"change": fields} | record) + "\n")
        print(record["found"], record["seconds"], f"{change.file}:{change.line}", change.kind, record["by"], flush=True)

    with tempfile.TemporaryDirectory() as folder:
        trees = [Copy(Path(folder, str(number))) for number in range(options.jobs if options.stage == "near" else 1)]
        if options.stage == "near":
            done = {tuple(record["change"].values()) for record in records}
            drawn = draw(options.seed, options.count, options.only)
            asked = [each for each in drawn if tuple(getattr(each, name) for name in Change.__slots__) not in done]

            def ask(change: Change) -> None:
                tree = trees.pop()
                keep(change, ask_near(tree, change, options.seconds))
                trees.append(tree)

            with ThreadPoolExecutor(options.jobs) as pool:
                list(pool.map(ask, asked))
        else:
            missed = [each for each in records if not each["found"] and "equal" not in each]
            missed = [each for each in missed if options.stage not in each["asked"]]
            changes = [Change(**each["change"]) for each in missed]
            for each, change, told in zip(
                missed, changes, ask_together(trees[0], changes, options.stage, options), strict=True
            ):
                keep(change, each | told | {"asked": [*each["asked"], options.stage]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
