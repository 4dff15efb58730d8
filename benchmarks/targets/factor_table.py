"""Writes the table of operators from measured answers: `cases.json`, and the letters of each runtime.

    python benchmarks/targets/factor_table.py GENERATED KEPT OLDER FORMS [OPERATOR ...]

GENERATED is the folder of `factor_cases.py`, KEPT that of `measure_factors.py`, OLDER that of `operator_cases.py`,
whose answers are in `results/operators/`, FORMS that of `forms.py`, whose answers are in `results/`. The factors of all
cases are read from their models, by the same function that reads them of the nodes of a model. Cases with the same
factors are one case; a generated one counts before the others, since it has a control, and forms before older ones.
With OPERATORs, the entries of all others stay as they are. What is not in KEPT is in `results/factors/`.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import onnx
from chains import chains
from form_cases import BASES, Answers, Case, Form, answers_of_cases, is_model, read_forms, runs_by_chance
from measure_factors import digest, read_kept
from prose import PROSE

from splitgraph.options import STRICT
from splitgraph.runtimes.check import examine
from splitgraph.runtimes.measured import MeasuredOperators, MeasuredTable, cases_of, shared_cases
from splitgraph.runtimes.node_traits import NodeTraits

RESULTS = Path(__file__).with_name("results")
TABLE = Path(__file__).parents[2] / "splitgraph" / "runtimes" / "table" / "operators"
LETTERS = {"reads": ".", "refuses": "r", "wrong": "W", "rank": "k", "dies": "X", "hangs": "H", "control": "?"}
_LONGEST = 80
# Words of a runtime about the case and not about the operator: names of files, numbers, addresses.
_OF_THE_CASE = re.compile(r"0x[0-9a-f]+|'?/?[\w./-]+\.(?:onnx|cpp|cc|h|hpp|py):?\d*'?(?:, line \d+)?", re.IGNORECASE)
_BEFORE = re.compile(r"Exception from …: |Check '[^']*' failed at …: |Errors during ONNX translation: ")
Factors = dict[str, str]


@dataclass
class Version:
    """The cases of an operator version: their factors in the order of the table, the bases, and what identifies the
    models that each stands for. forms: the positions of those that forms of split have.
    """

    cases: list[Factors] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)
    generated: dict[str, int] = field(default_factory=dict)
    older: dict[str, int] = field(default_factory=dict)
    forms: set[int] = field(default_factory=set)

    def place(self, factors: Factors) -> int:
        """The position of the case with these factors, which is added where it is missing."""
        if factors not in self.cases:
            self.cases.append(factors)
            self.bases.append(-1)
        return self.cases.index(factors)


def main(generated: Path, kept: Path, older: Path, forms: Path, only: Sequence[str] = ()) -> None:
    """Write the files of the table. only: the operators that are read anew; none for all."""
    versions = read_cases(generated, older)
    read = read_forms(forms)
    add_forms(versions, read)
    prune(versions)
    if only:
        versions = {**held_versions(), **{name: each for name, each in versions.items() if _operator(name) in only}}
    held = shared(versions)
    write_lines(TABLE / "cases.json", held)
    olds = {
        path.name.removesuffix(".jsonl.gz"): read_older(path)
        for path in sorted((RESULTS / "operators").glob("*.jsonl.gz"))
    }
    # A case that no runtime reads says nothing of any.
    valid = {name for answers in olds.values() for name, (answer, _) in answers.items() if answer in ("reads", "rank")}
    digests = {digest(path): path.stem for path in generated.glob("*.onnx")}
    for key, answers in olds.items():
        old = {name: told for name, told in answers.items() if name in valid or name.startswith("imports.")}
        file, results = kept / f"{key}.jsonl", RESULTS / "factors" / f"{key}.jsonl.gz"
        new = {digests[held]: (answer, said) for held, (_, answer, said) in read_kept(file).items() if held in digests}
        before = json.loads((TABLE / f"{key}.json").read_text())
        if new and only:
            others = read_named(results) if results.exists() else {}
            new |= {name: told for name, told in others.items() if _operator(operator_of(name)) not in only}
        if new:
            keep(results, new)
        measured = date.fromtimestamp(file.stat().st_mtime).isoformat() if new else before["measured"]
        kept_before = read_older(results) if results.exists() else {}
        factors = {without_number(name): told for name, told in new.items()} or kept_before
        given = Given(key, factors, old, read, before if only else None)
        letters, words = letters_of(versions, held, given)
        name, _, version = key.partition("@")
        cases = before["cases"] if only else len(factors) + len(old) + len(read)
        head = {"name": name, "version": version, "measured": measured, "cases": cases}
        (TABLE / f"{key}.json").write_text(_document(head, letters, words, PROSE[name].notes), encoding="utf-8")
        print(f"{key}: {len(factors)} generated, {len(old)} older cases")


class Given(NamedTuple):
    """What was measured of a runtime: the answers to generated and to older cases, and the forms. before: its file,
    whose other entries stay; None if all are written anew.
    """

    key: str
    generated: Answers
    older: Answers
    forms: Mapping[str, Form]
    before: Mapping[str, Any] | None


def letters_of(
    versions: Mapping[str, Version], cases: Mapping[str, Any], given: Given
) -> tuple[dict[str, str], dict[str, str]]:
    """The letters of a runtime by operator version, and its words. cases: as in the file of all cases."""
    letters, words = answers_of(versions, given.generated, given.older)
    if given.before is not None:
        # Of versions that were read anew, an answer of before is about other cases.
        kept = {label for label, version in versions.items() if not version.generated and not version.older}
        letters = {**{label: text for label, text in given.before["answers"].items() if label in kept}, **letters}
        words = {**{label: text for label, text in given.before["said"].items() if label in kept}, **words}
    # Other nodes of the forms, which may be in the way, are judged by their own cases.
    of_forms = _form_answers(given, MeasuredTable("", MeasuredOperators(cases, letters, {})))
    more, said = answers_of(versions, given.generated, given.older, of_forms)
    return {**letters, **more}, {**words, **said}


def _operator(label: str) -> str:
    """The operator of a version, "Split" of "Split-13"."""
    name, _, number = label.rpartition("-")
    return name if number.isdigit() else label


def held_versions() -> dict[str, Version]:
    """The cases of the table as it is."""
    found = {}
    for label in shared_cases():
        cases = cases_of(label)
        found[label] = Version([dict(sorted(case.factors)) for case in cases], [case.base for case in cases])
    cases_of.cache_clear()
    shared_cases.cache_clear()
    return found


def _form_answers(given: Given, table: MeasuredTable) -> Mapping[Case, set[str]]:
    """What a runtime did with the cases of forms. A form of a newer opset than the runtime reads says nothing."""
    newest = json.loads((TABLE.parent / f"{given.key}.json").read_text())["newest_opset"]
    read = {name: form for name, form in given.forms.items() if newest is None or form.opset <= newest}
    answers = json.loads((RESULTS / f"{given.key}.json").read_text())["answers"]

    def is_in_the_way(node: NodeTraits) -> bool:
        return table.judge(node.operator, node.own, node.factors).verdict in ("refuses", "wrong")

    return answers_of_cases(read, answers, is_in_the_way)


def add_forms(versions: dict[str, Version], forms: Mapping[str, Form]) -> None:
    """Add the cases of forms. The plainest ones are bases, and each other one is made from the base most like it. Of
    models, a case is added that has a factor that no form has.
    """
    for name, form in sorted(forms.items(), key=lambda each: (is_model(each[0]), each[0] not in BASES, each[0])):
        for label, kind in sorted(form.cases):
            version = versions.setdefault(label, Version())
            seen = {factor for place in version.forms for factor in version.cases[place].items()}
            if is_model(name) and set(kind) <= seen:
                continue
            place = version.place(dict(kind))
            version.forms.add(place)
            if name in BASES and not label.startswith("Constant"):
                version.bases[place] = place
            bases = [at for at in version.forms if version.bases[at] == at]
            if version.bases[place] < 0 and bases:
                version.bases[place] = max(bases, key=lambda at: (len(version.cases[at].items() & set(kind)), -at))


def read_older(path: Path) -> dict[str, tuple[str, str]]:
    """The answers to older cases, by what identifies a case."""
    return {without_number(name): told for name, told in read_named(path).items()}


def read_named(path: Path) -> dict[str, tuple[str, str]]:
    """The answers in a file of results, by the names of the cases."""
    told = map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines())
    return {name: (answer, said) for name, answer, said in told}


def without_number(case: str) -> str:
    """What identifies an older case: its number is another one where a case before it was added or left out."""
    label, _, test, way = case.rsplit(".", 3)
    return f"{label}.{test}.{way}"


def operator_of(case: str) -> str:
    """The operator version that a case is about: its name begins with it."""
    return case.rsplit(".", 3)[0]


def read_cases(generated: Path, older: Path) -> dict[str, Version]:
    """Read the factors of all cases. Bases come first, then what was made from them, then the others."""
    versions: dict[str, Version] = defaultdict(Version)
    paths = sorted(generated.glob("*.onnx"), key=lambda path: (".base." not in path.name, path.name))
    with ProcessPoolExecutor(2) as pool:
        for path, factors in zip(paths, pool.map(factors_of_case, map(str, paths), chunksize=50), strict=True):
            if factors is None:
                continue
            version = versions[operator_of(path.stem)]
            place = version.place(factors)
            name = without_number(path.stem)
            version.generated[name] = place
            family = path.stem.rpartition(".")[2]
            base = next(
                (at for other, at in version.generated.items() if ".base." in other and other.endswith(f".{family}")),
                -1,
            )
            # Families may share a case: a base stays a base.
            if ".base." in path.stem:
                version.bases[place] = place
            elif version.bases[place] < 0:
                version.bases[place] = base
        olds = sorted(older.glob("*.onnx"))
        for path, factors in zip(olds, pool.map(factors_of_case, map(str, olds), chunksize=50), strict=True):
            if factors is not None:
                version = versions[operator_of(path.stem)]
                version.older[without_number(path.stem)] = version.place(factors)
    return dict(versions)


def factors_of_case(path: str) -> Factors | None:
    """The factors of the node that a case is about; empty for a case that only imports a domain. None for no case."""
    label = operator_of(Path(path).stem)
    if label.startswith("imports."):
        return {}
    nodes = examine(onnx.load(path), STRICT).nodes
    found = [node for node in nodes if node.node.name == "subject"] or [node for node in nodes if node.label == label]
    if not found or found[0].label != label or runs_by_chance(Path(path), found[0]):
        return None
    return dict(found[0].factors)


def prune(versions: Mapping[str, Version]) -> None:
    """Leave out older cases that say nothing: each factor of theirs is in two older cases before them. Generated cases
    do not count: not every runtime was measured with them.
    """
    for version in versions.values():
        seen: Counter[tuple[str, str]] = Counter()
        wanted = set(version.generated.values()) | version.forms
        for place in dict.fromkeys(version.older.values()):
            factors = version.cases[place]
            # Two cases for each factor: one of them may fail for another reason.
            if any(seen[item] < 2 for item in factors.items()) or not seen:
                wanted.add(place)
                seen.update(factors.items())
        _keep_only(version, sorted(wanted))


def _keep_only(version: Version, wanted: Sequence[int]) -> None:
    places = {old: new for new, old in enumerate(wanted)}
    version.cases = [version.cases[old] for old in wanted]
    version.bases = [places.get(version.bases[old], -1) for old in wanted]
    version.generated = {name: places[old] for name, old in version.generated.items() if old in places}
    version.older = {name: places[old] for name, old in version.older.items() if old in places}
    version.forms = {places[old] for old in version.forms}


# What is written ------------------------------------------------------------------------------------------------------


def shared(versions: Mapping[str, Version]) -> dict[str, Any]:
    """What all runtimes share: by operator version the versions of the same meaning, and the cases. A case is written
    as what differs from the first one: [factors, position of its base]. Equal lists are written once.
    """
    held: dict[str, Any] = {}
    written: dict[str, str] = {}
    for label in sorted(versions):
        version = versions[label]
        first = version.cases[0]
        cases = [
            [_difference(first, factors), base] for factors, base in zip(version.cases, version.bases, strict=True)
        ]
        entry = {"first": first, "cases": [case if case[1] >= 0 else case[:1] for case in cases[1:]]}
        if version.bases[0] == 0:
            entry["base"] = 1
        text = json.dumps(entry)
        if text in written:
            entry = {"cases": written[text]}
        else:
            written[text] = label
        like = alike(label, versions)
        held[label] = entry | ({"like": like} if like else {})
    return held


def alike(label: str, versions: Mapping[str, Version]) -> list[str]:
    """The other versions of the same meaning that were measured."""
    operator, _, number = label.rpartition("-")
    if "." in operator or not number.isdigit():
        return []
    chain = next((chain for chain in chains(operator) if int(number) in chain), [])
    others = (f"{operator}-{each}" for each in chain if each != int(number))
    return [other for other in others if other in versions]


def _difference(first: Factors, factors: Factors) -> dict[str, str]:
    changed = {key: value for key, value in factors.items() if first.get(key) != value}
    return changed | {key: "" for key in first if key not in factors}


def answers_of(
    versions: Mapping[str, Version],
    new: Answers,
    old: Answers,
    of_forms: Mapping[Case, set[str]] = MappingProxyType({}),
) -> tuple[dict[str, str], dict[str, str]]:
    """The letters of a runtime by operator version, and its words of what fails first. of_forms: of cases of forms."""
    letters, words = {}, {}
    for label, version in versions.items():
        answers: list[set[str]] = [set() for _ in version.cases]
        said: dict[int, str] = {}
        has_base = any(version.bases[place] == place for name, place in version.generated.items() if name in new)
        first = next((old[name][0] for name in version.older if name in old), "")
        for names, given in ((version.generated, new), (version.older, old)):
            if names is version.older:
                for place in version.forms:
                    told = of_forms.get((label, tuple(sorted(version.cases[place].items()))), ())
                    answers[place] = answers[place] - {"?"} or {LETTERS[answer] for answer in told}
            for place, own in _grouped(names, given):
                if answers[place]:
                    continue
                if names is version.older:
                    # Without a Mul behind the node, a result of another rank is that of the graph.
                    own = [each for each in own if each[0] != "rank"]
                if names is version.older and has_base and first != "reads":
                    # They have no controls: where the plainest one fails, it may be because of the graph, of which the
                    # node is all there is.
                    own = [each for each in own if each[0] == "reads"]
                answers[place] = {LETTERS[answer] for answer, text in own if "harness" not in text} or {"?"}
                said.setdefault(place, next((text for answer, text in own if answer not in ("reads", "control")), ""))
        text = "".join(map(_letter, answers))
        if set(text) == {"?"}:
            continue
        letters[label] = text
        fails = next((place for place, letter in enumerate(text) if letter in "rWkXH"), None)
        is_base = fails is not None and (version.bases[fails] == fails or "." not in text)
        if fails is not None and is_base and _words(said.get(fails, "")):
            words[label] = _words(said[fails])
    return letters, words


def _grouped(names: Mapping[str, int], given: Answers) -> Iterable[tuple[int, list[tuple[str, str]]]]:
    groups: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for name, place in names.items():
        if name in given:
            groups[place].append(given[name])
    return groups.items()


def _letter(answers: set[str]) -> str:
    known = answers - {"?"}
    if not known:
        return "?"
    if len(known) == 1:
        return next(iter(known))
    return "m" if "." in known else max(known, key="rkWHX".index)


def _words(text: str) -> str:
    """The runtime's words without what belongs to the case, and not too long."""
    plain = _BEFORE.sub("", " ".join(_OF_THE_CASE.sub("…", text).split()))
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"


def _document(
    head: Mapping[str, Any], letters: Mapping[str, str], words: Mapping[str, str], notes: Mapping[str, str]
) -> str:
    start = json.dumps(head)[:-1]
    held = f'{start},\n "answers": {{\n' + ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(letters[name])}" for name in sorted(letters)
    )
    return (
        held
        + '\n },\n "said": {\n'
        + ",\n".join(f"  {json.dumps(name)}: {json.dumps(words[name], ensure_ascii=False)}" for name in sorted(words))
        + f'\n }},\n "notes": {json.dumps(dict(notes), ensure_ascii=False)}}}\n'
    )


def write_lines(path: Path, held: Mapping[str, Any]) -> None:
    """Write a file with one line for each operator version."""
    lines = ",\n".join(
        f" {json.dumps(name)}: {json.dumps(each, ensure_ascii=False, separators=(',', ':'))}"
        for name, each in held.items()
    )
    path.write_text("{\n" + lines + "\n}\n", encoding="utf-8")


def keep(path: Path, answers: Mapping[str, tuple[str, str]]) -> None:
    """Write every answer with the runtime's words; the same bytes for the same answers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{json.dumps([name, *answers[name]], ensure_ascii=False)}\n" for name in sorted(answers))
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:5]), only=sys.argv[5:])
