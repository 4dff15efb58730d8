"""An attack on `reshape`: small models whose function of the size is known, asked for other sizes.

    python tests/campaigns/attacked_sizes.py [--jobs 2] [--every N] [--only NAME] [--request T=name] [--ir]
    python tests/campaigns/attacked_sizes.py --list

`attacked_sizes_reshapes.py`, `attacked_sizes_items.py` and `attacked_sizes_layers.py` hold the models as programs in
terms of sizes, which NumPy runs at any sizes (`attacked_sizes_tape.py`, `attacked_sizes_kernels.py`). Each model is
built at one size, and onnxruntime has to give there what its program gives. Then it is asked for a batch, for each
length and for all of them, as names and as numbers, and each result is run at five sizes. With --ir, OpenVINO's twin of
the model is asked and run.

What comes out: right; wrong, and whether verification called it equal; asked (SG421) and refused, with the reason; a
crash. The answers that a question suggests are given, and must not be refused. Questions and refusals are right where
the case says so: two readings fit, or a table of weights has the old size. Each other answer is printed, for each case
the first one, with the command that repeats it. Ends with 1 for anything wrong or crashed.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "campaigns")]

import attacked_sizes_items  # noqa: E402, F401  (the folders above are on the path only now; each module adds its cases)
import attacked_sizes_layers  # noqa: E402, F401
import attacked_sizes_pitfalls  # noqa: E402, F401
import attacked_sizes_reshapes  # noqa: E402, F401
from attacked_sizes_cases import CASES, Case, unique  # noqa: E402
from attacked_sizes_engines import Engine, OpenVINO, Runtime  # noqa: E402

import splitgraph  # noqa: E402

_POOL = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 18, 20, 24, 36, 48, 60)
_BATCHES = (1, 2, 3, 4, 5, 7)
_TIMES = 5
_DRAWS = 400
_FAULTS = ("wrong, called equal", "wrong", "crashed", "answer refused")
_NEEDLESS = ("asked", "refused", "called different")
# The answers that a question suggests.
_ANSWER, _KINDS = re.compile('--(follow|keep) "([^"]+)"'), ("follow", "keep")
# So often, an answer leads to another question.
_ROUNDS = 3


class Request(NamedTuple):
    """The new sizes by name: numbers, or the texts of names."""

    sizes: Mapping[str, int | str]

    @property
    def is_of_names(self) -> bool:
        """Return True if no number is asked for."""
        return not any(isinstance(size, int) for size in self.sizes.values())

    def __str__(self) -> str:
        return ",".join(f"{name}={size if isinstance(size, int) else 'name'}" for name, size in self.sizes.items())


class Answer(NamedTuple):
    """What became of a request: a word, and what is to be said of it."""

    case: str
    request: str
    word: str
    said: str = ""


def requests(case: Case) -> Iterator[Request]:
    """Yield the requests to a case: each size, the lengths, all of them, as names and as other numbers."""
    names = list(case.old)
    chosen = [[name] for name in names]
    if len(names) > 2:
        chosen.append([name for name in names if name != "N"])
    if len(names) > 1:
        chosen.append(names)
    for asked in chosen:
        yield Request({name: f"{name}_new" for name in asked})
        tried = list(itertools.islice(_others(case, asked, str(asked)), _TIMES))
        smaller = [sizes for sizes in tried if all(sizes[name] <= case.old[name] for name in asked)]
        for sizes in {id(each): each for each in (tried[0], (smaller or tried)[-1])}.values():
            yield Request({name: sizes[name] for name in asked})


def _others(case: Case, asked: Sequence[str], seed: str) -> Iterator[dict[str, int]]:
    """Yield sizes that differ in all that is asked for, each once; other named sizes differ, too."""
    drawn = random.Random(zlib.crc32(f"{case.name} {seed}".encode()))
    seen = set()
    for _ in range(_DRAWS):
        sizes = {
            name: drawn.choice(_BATCHES if name == "N" else _POOL) if name in asked or name in case.free else size
            for name, size in case.old.items()
        }
        key = tuple(sizes.values())
        if key not in seen and case.fits(sizes) and all(sizes[name] != case.old[name] for name in asked):
            seen.add(key)
            yield sizes


def tried_sizes(case: Case, request: Request) -> list[dict[str, int]]:
    """Return the sizes at which the result of a request has to be right."""
    names = [name for name, size in request.sizes.items() if isinstance(size, str)]
    numbers = {name: size for name, size in request.sizes.items() if isinstance(size, int)}
    if names:
        return list(itertools.islice(_others(case, names, "tried"), _TIMES))
    named = [name for name in case.free if name not in numbers]
    other = list(itertools.islice(_others(case, named, "tried"), 2)) if named else [dict(case.old)]
    return [{**sizes, **numbers} for sizes in other]


def check_case(case: Case, engine: Engine) -> str | None:
    """Return why a case is no case: its program and its model differ at the old sizes, or at others of a named size."""
    model = case.model()
    try:
        run = engine.loaded(engine.source(model))
    except RuntimeError as error:
        return f"does not load: {str(error).strip().splitlines()[-1][:200]}"
    for sizes in [dict(case.old), *(itertools.islice(_others(case, case.free, "check"), 3) if case.free else ())]:
        for reading in range(len(case.programs)) if sizes == case.old else (0,):
            if (found := difference(case, sizes, run, reading)) is not None:
                return f"reading {reading} at {sizes}: {found}"
    if case.form.get("style") != "zeros":
        return None
    zeros = _zeros(model)
    for sizes in itertools.islice(_others(case, list(case.old), "zeros"), 3) if not case.stuck else ():
        tape, outputs = case.run(sizes)
        if not zeros <= _zeros(tape.model(outputs)):
            return "a 0 in a target does not say what the program says"
    return None


def _zeros(model: onnx.ModelProto) -> set[tuple[str, int]]:
    targets = {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
    return {
        (tensor.name, at)
        for tensor in model.graph.initializer
        if tensor.name in targets
        for at, entry in enumerate(onnx.numpy_helper.to_array(tensor))
        if entry == 0
    }


def difference(case: Case, sizes: Mapping[str, int], run: Any, reading: int, seed: int = 0) -> str | None:
    """Return how a model that is loaded differs from a program at some sizes; None if it does not."""
    tape, outputs = case.run(sizes, seed, reading)
    spelled = " ".join(f"{name}={size}" for name, size in sizes.items())
    try:
        found = run({name: value.array for name, value in tape.inputs.items()})
    except RuntimeError as error:
        return f"fails at {spelled}: {str(error).splitlines()[0][-200:]}"
    for at, (expected, value) in enumerate(zip(outputs, found, strict=True)):
        if expected.shape != value.shape:
            return f"y{at} is {value.shape} at {spelled}, not {expected.shape}"
        if not np.allclose(expected.array, value, rtol=1e-3, atol=1e-4, equal_nan=True):
            return f"y{at} has other elements at {spelled}"
    return None


def answers(case: Case, engine: Engine, only: str, verify_all: bool) -> list[Answer]:
    """Return what became of each request to a case."""
    if (fault := check_case(case, engine)) is not None:
        return [Answer(case.name, "", "no twin" if engine.is_ir else "NO CASE", fault)]
    source = engine.source(case.model())
    chosen = [each for each in requests(case) if only in ("", str(each)) or (only == "name" and each.is_of_names)]
    return [answer(case, engine, source, request, verify_all) for request in chosen]


def answer(case: Case, engine: Engine, source: Any, request: Request, verify_all: bool) -> Answer:
    """Return what became of one request."""
    options = _options(case, request)
    give = partial(Answer, case.name, str(request))
    try:
        found = splitgraph.reshape(source, verify=verify_all, **options)
    except splitgraph.ConversionError as error:
        refused = _unanswered(source, options, error.diagnostics)
        return give(*(_refused(case, request, error) if refused is None else ("answer refused", refused)))
    except splitgraph.VerificationError as error:
        return give("called different", str(error).splitlines()[0])
    except Exception as error:
        # An attack reports each crash.
        return give("crashed", f"{type(error).__name__}: {error}")
    fault = _fault(case, engine, request, found.model, "batch" in options)
    return give("right") if fault is None else give(*_called(source, options, fault))


def _options(case: Case, request: Request) -> dict[str, Any]:
    """Return a request as `reshape` takes it: a batch alone as such."""
    tape, _ = case.run(case.old)
    if list(request.sizes) == ["N"] and {dims[0] for dims in tape.input_dims.values()} == {"N"}:
        return {"batch": request.sizes["N"]}
    now = {name: name if name in case.form.get("named", ()) else size for name, size in case.old.items()}
    asked = {**now, **request.sizes}
    return {
        "shapes": {
            name: [asked[dim] if isinstance(dim, str) else dim for dim in dims]
            for name, dims in tape.input_dims.items()
        }
    }


def _unanswered(
    source: Any, options: Mapping[str, Any], found: Sequence[splitgraph.Diagnostic], rounds: int = _ROUNDS
) -> str | None:
    """Return which answer that a question suggests is refused; None if none is, or if there are other reasons. An
    answer may lead to another question.
    """
    if any(each.code != "SG421" for each in found):
        return None
    at_once = found[0].help.partition("All questions at once")[2]
    suggested = [_ANSWER.findall(way) for way in ([at_once] if at_once else found[0].help.split(", or "))]
    for ways in filter(None, suggested if at_once or len(found) == 1 else ()):
        answers = {kind: [*options.get(kind, ()), *(text for each, text in ways if each == kind)] for kind in _KINDS}
        answered, told = {**options, **answers}, " ".join(f'--{option} "{text}"' for option, text in ways)
        try:
            splitgraph.reshape(source, **answered)
        except splitgraph.ConversionError as error:
            is_asked = rounds > 0 and all(each.code == "SG421" for each in error.diagnostics)
            if not is_asked:
                return f"{told}: {str(error).splitlines()[0]}"
            if (refused := _unanswered(source, answered, error.diagnostics, rounds - 1)) is not None:
                return f"{told}, then {refused}"
        except splitgraph.SplitgraphError as error:
            return f"{told}: {str(error).splitlines()[0]}"
    return None


def _refused(case: Case, request: Request, error: splitgraph.ConversionError) -> tuple[str, str]:
    """Return what a refusal is, and its first reason."""
    codes, first, moved = {each.code for each in error.diagnostics}, error.diagnostics[0], set(request.sizes)
    said = f"{' '.join(sorted(codes))} {first.location}: {first.message}"
    if (case.stuck | case.may_refuse) & moved or (case.mixes and "N" in moved):
        return "rightly refused", said
    word = "asked" if codes == {"SG421"} else "refused"
    if case.may_ask & moved:
        return "rightly asked" if word == "asked" else "refused where two readings fit", said
    return word, said


def _fault(case: Case, engine: Engine, request: Request, model: Any, is_batch: bool) -> str | None:
    """Return what is wrong with a result; None if it gives at five sizes what one of the readings gives."""
    if case.stuck & set(request.sizes):
        return "written, though weights have the old size"
    if case.mixes and is_batch:
        return "written, though the items do not stand apart"
    try:
        run = engine.loaded(model)
    except RuntimeError as error:
        return f"does not load: {str(error).splitlines()[0][:200]}"
    faults = []
    for reading in range(len(case.programs)):
        tried = (difference(case, sizes, run, reading) for sizes in tried_sizes(case, request))
        if (fault := next((each for each in tried if each is not None), None)) is None:
            return None
        faults.append(fault)
    return faults[0]


def _called(source: Any, options: Mapping[str, Any], fault: str) -> tuple[str, str]:
    """Return what verification calls a wrong result."""
    try:
        found = splitgraph.reshape(source, verify=True, **options)
    except splitgraph.VerificationError:
        return "wrong", f"{fault}; called different"
    assert found.verification is not None
    verdict = found.verification.verdict
    return "wrong, called equal" if verdict == "equal" else "wrong", f"{fault}; called {verdict}"


def _answers(name: str, ir: bool, only: str, verify_all: bool) -> list[Answer]:
    warnings.filterwarnings("ignore")
    case = next(case for case in CASES if case.name == name)
    with tempfile.TemporaryDirectory() as folder:
        engine: Engine = OpenVINO(Path(folder)) if ir else Runtime()
        return answers(case, engine, only, verify_all)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the attack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[""], help="cases whose name starts with one of these texts")
    parser.add_argument("--request", default="", help="one request, as it is printed")
    parser.add_argument("--every", type=int, default=1, help="each n-th case")
    parser.add_argument("--ir", action="store_true", help="the twins of the models as OpenVINO IR")
    parser.add_argument("--names", action="store_true", help="ask for names alone, for a quick look")
    parser.add_argument("--verify", action="store_true", help="verify right results, too")
    parser.add_argument("--save", type=Path, help="write the models of the cases into this folder")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    options = parser.parse_args(arguments)
    chosen = [case for case in unique(CASES) if case.name.startswith(tuple(options.only))][:: options.every]
    if options.list:
        print(*(case.name for case in chosen), f"{len(chosen)} cases", sep="\n")
        return 0
    for case in chosen if options.save else ():
        options.save.mkdir(parents=True, exist_ok=True)
        onnx.save(case.model(), options.save / f"{case.name.replace('/', '.').replace(' ', '_')}.onnx")
    found: list[Answer] = []
    only = "name" if options.names else options.request
    work = partial(_answers, ir=options.ir, only=only, verify_all=options.verify)
    with Pool(options.jobs) as pool:
        for several in pool.imap_unordered(work, [case.name for case in chosen]):
            found += several
            _print_case(several, "--ir " if options.ir else "")
    return _print_counts(found, len(chosen))


def _print_case(found: Sequence[Answer], flags: str) -> None:
    """Print each kind of answer to a case that is to be looked at, with its first request."""
    told = [each for each in found if each.word not in ("right", "rightly asked", "rightly refused", "no twin")]
    for word, several in itertools.groupby(sorted(told, key=lambda each: each.word), key=lambda each: each.word):
        first, *others = several
        more = f" and {len(others)} more" if others else ""
        again = f'python tests/campaigns/attacked_sizes.py {flags}--only "{first.case}" --request "{first.request}"'
        print(f"{word}: {first.case} [{first.request}{more}] {first.said[:300]}\n    {again}", flush=True)


def _print_counts(found: Sequence[Answer], cases: int) -> int:
    """Print how many answers of each kind there are; 1 for anything wrong."""
    counts = Counter(each.word for each in found)
    print(f"{cases} cases, {sum(counts.values())} requests")
    for word, count in counts.most_common():
        print(f"{count:6} {word}")
    one = [each for each in found if each.word in ("right", *_FAULTS, *_NEEDLESS)]
    needless = sum(each.word in _NEEDLESS for each in one)
    print(f"one reading is right: {len(one)} requests, {needless} refused or asked without need")
    return 1 if any(each.word in (*_FAULTS, "NO CASE") for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())
