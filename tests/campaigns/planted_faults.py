"""Faults that are planted into conversions: how many of them `splitgraph.verify` finds.

    python tests/campaigns/planted_faults.py old.jsonl --tree ../old --models FOLDER --every 100 --minutes 30
    python tests/campaigns/planted_faults.py new.jsonl --models FOLDER --like old.jsonl --against old.jsonl
    python tests/campaigns/planted_faults.py old.jsonl --summary
    python tests/campaigns/planted_faults.py --count --models FOLDER

Each model of `models/`, and of a folder if one is given, is converted to the newest opset, to older ones, and to other
forms of its splits. Each node that a conversion wrote or edited, or took to another version of its operator, is spoiled
in ten ways. Each spoiled model is compared with the original: "different" means that the fault is caught. After
"equal", onnxruntime and the reference evaluator run both models on forty inputs: a fault that one of them shows is
missed, and any other is indistinguishable. A model that inference refuses, and the checker or onnxruntime too, is only
counted.

--tree is another checkout, whose splitgraph compares. Conversions, faults and the judgement are always of this one.
Results are lines of JSON, and a run goes on where the last one ended. A smaller --every adds to the spoilings of a
larger one; each conversion has at least one, and ways take turns.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import onnx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from planted_faults_changes import conversions  # noqa: E402  (splitgraph is that of this checkout)
from planted_faults_process import Answer, Helper  # noqa: E402
from planted_faults_spoilings import WAYS, Spoiling, spoilings  # noqa: E402

import splitgraph  # noqa: E402

# "unrunnable": "equal", and one engine of the judgement fails on the spoiled model, while the other finds it equal.
# "unjudged": "equal", and no engine of the judgement runs the original. "unclear": the conversion as it is counts as
# "different", so that a verdict says nothing of the fault.
CLASSES = (
    *("caught", "missed", "unrunnable", "indistinguishable", "unjudged", "not-run", "unclear", "refused", "failed"),
    "duplicate",
)
_ENGINES = ("onnxruntime", "reference")
# Beyond its own time limit, a verification may read and write models.
_SLACK = 60
Record = dict[str, Any]


@dataclass(slots=True)
class Campaign:
    """What a run needs. done: earlier results. like: the keys to try; None for a sample."""

    options: argparse.Namespace
    deadline: float
    done: dict[str, Record] = field(default_factory=dict)
    like: Mapping[str, Record] | None = None
    tried: int = 0
    lock: Lock = field(default_factory=Lock)

    @property
    def is_over(self) -> bool:
        """Return True if the time or the number of spoilings is used up."""
        limit = self.options.limit
        return time.monotonic() > self.deadline or (limit is not None and self.tried >= limit)

    def keep(self, record: Record) -> None:
        """Add a result to the file."""
        with self.lock, self.options.results.open("a") as held:
            held.write(json.dumps(record) + "\n")
            self.tried += record["way"] != "none"


# Models and their spoilings ---------------------------------------------------------------------------------------


def sources(folder: Path | None, most_bytes: int) -> list[Path]:
    """Return the models, one of each name, in an order that mixes them."""
    paths = [*(ROOT / "models").glob("*.onnx"), *(() if folder is None else folder.rglob("*.onnx"))]
    fitting = {path.stem: path for path in reversed(paths) if path.stat().st_size <= most_bytes}
    return sorted(fitting.values(), key=lambda path: _mixed(path.stem))


def _mixed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def chosen(found: Sequence[Spoiling], every: int, seed: str, most: int | None = None) -> list[Spoiling]:
    """Return every n-th of the spoilings of one conversion, at least one: first one of each way and kind of change.

    most: at most so many.
    """
    ordered = sorted(found, key=lambda each: _mixed(f"{seed}|{each.key}"))
    ranks: Counter[tuple[str, str]] = Counter()
    ranked = []
    for spoiling in ordered:
        kind = spoiling.way, spoiling.change
        ranked.append((ranks[kind], len(ranked), spoiling))
        ranks[kind] += 1
    count = -(-len(found) // every)
    in_turns = sorted(ranked, key=lambda each: each[:2])
    return [spoiling for _, _, spoiling in in_turns[: count if most is None else min(count, most)]]


def converted(path: Path) -> Iterator[tuple[str, onnx.ModelProto, onnx.ModelProto]]:
    """Each conversion of a model by its name: the model, and the result. None of a model with external data."""
    model = onnx.load(path, load_external_data=False)
    if any(onnx.external_data_helper.uses_external_data(tensor) for tensor in model.graph.initializer):
        return
    for name, convert in conversions(model).items():
        try:
            yield name, model, convert().model
        except splitgraph.SplitgraphError:
            continue


# One source -------------------------------------------------------------------------------------------------------


def try_source(path: Path, campaign: Campaign) -> None:
    """Try the chosen spoilings of all conversions of a model."""
    options = campaign.options
    with (
        tempfile.TemporaryDirectory(prefix="planted-faults-") as folder,
        Helper(options.tree) as judge,
        Helper(ROOT) as own,
    ):
        for name, source, result in () if campaign.is_over else converted(path):
            seed = f"{path.stem}|{name}"
            found = spoilings(source, result)
            if campaign.like is None:
                picked = chosen(found, options.every, seed, options.most)
            else:
                picked = [each for each in found if f"{seed}|{each.key}" in campaign.like]
            left = [each for each in picked if f"{seed}|{each.key}" not in campaign.done]
            if not left or campaign.is_over:
                continue
            trial = _Trial(path, name, result, Path(folder), judge, own, campaign)
            if trial.try_conversion() > options.most_seconds:
                return
            for spoiling in left:
                if campaign.is_over:
                    return
                trial.try_spoiling(spoiling)


@dataclass(slots=True)
class _Trial:
    """One conversion of one model. judge: verifies. own: answers everything else."""

    path: Path
    conversion: str
    result: onnx.ModelProto
    folder: Path
    judge: Helper
    own: Helper
    campaign: Campaign
    seen: set[str] = field(default_factory=set)

    def try_conversion(self) -> float:
        """Verify the conversion as it is, and return the seconds that this took, now or in an earlier run."""
        written = self.result.SerializeToString(deterministic=True)
        self.seen.add(hashlib.sha256(written).hexdigest())
        (self.folder / "right.onnx").write_bytes(written)
        key = f"{self.path.stem}|{self.conversion}|none"
        if key not in self.campaign.done:
            found = self._verify("right.onnx")
            record = {"key": key, "source": self.path.stem, "conversion": self.conversion, "way": "none", **found}
            self.campaign.keep(record)
            self.campaign.done[key] = record
        return float(self.campaign.done[key].get("seconds", math.inf))

    def try_spoiling(self, spoiling: Spoiling) -> None:
        """Verify one spoiled model, and judge an "equal"."""
        written = spoiling.edit.apply(self.result).SerializeToString(deterministic=True)
        model = hashlib.sha256(written).hexdigest()
        record = {
            "key": f"{self.path.stem}|{self.conversion}|{spoiling.key}",
            "source": self.path.stem,
            "conversion": self.conversion,
            "node": spoiling.place,
            "op": spoiling.op,
            "change": spoiling.change,
            "way": spoiling.way,
            "detail": spoiling.detail,
            "model": model[:16],
        }
        if model in self.seen:
            self.campaign.keep({**record, "class": "duplicate"})
            return
        self.seen.add(model)
        (self.folder / "spoiled.onnx").write_bytes(written)
        self.campaign.keep({**record, **self._judged(record)})

    def _judged(self, record: Record) -> Answer:
        refusal = self.own.ask("refused", _SLACK, path=str(self.folder / "spoiled.onnx"))
        if refusal.get("refused"):
            return {"class": "refused", "reason": refusal["reason"]}
        found = self._verify("spoiled.onnx")
        verdict = found.get("verdict", "failed")
        if verdict != "equal":
            return {**found, "class": {"different": "caught"}.get(verdict, verdict)}
        known = (self.campaign.like or {}).get(record["key"], {})
        oracle = known.get("oracle") if known.get("model") == record["model"] else None
        oracle = oracle or self._oracle()
        return {**found, "class": _class_of_equal(oracle.values()), "oracle": oracle}

    def _verify(self, name: str) -> Answer:
        options = self.campaign.options
        files = {"before": str(self.path), "after": str(self.folder / name)}
        return self.judge.ask("verify", options.timeout + _SLACK, **files, timeout=options.timeout)

    def _oracle(self) -> dict[str, Answer]:
        """Ask the engines; the second one only if the first one tells nothing apart."""
        answers: dict[str, Answer] = {}
        paths = {name: str(self.folder / f"{file}.onnx") for name, file in (("right", "right"), ("after", "spoiled"))}
        seconds = self.campaign.options.oracle_seconds
        for engine in _ENGINES:
            asked = {"before": str(self.path), **paths, "engine": engine, "seconds": seconds}
            answers[engine] = self.own.ask("oracle", seconds + _SLACK / 3, **asked)
            if answers[engine].get("apart"):
                break
        return answers


def _class_of_equal(answers: Collection[Answer]) -> str:
    """Return the class of an "equal", by what the engines of the judgement say."""
    ran = [answer for answer in answers if answer.get("ran")]
    fails = [answer.get("fails", 0) > 0 for answer in ran]
    if any(answer.get("apart") for answer in ran) or (ran and all(fails)):
        return "missed"
    if not ran:
        return "unjudged"
    return "unrunnable" if any(fails) else "indistinguishable"


# Results ----------------------------------------------------------------------------------------------------------


def read(path: Path) -> dict[str, Record]:
    """Return the results of a file by their keys. The last line may be cut off."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[record["key"]] = record
    unsound = {
        (each["source"], each["conversion"])
        for each in found.values()
        if each["way"] == "none" and each.get("verdict") == "different"
    }
    for record in found.values():
        # The engines' answers stay, so that a better rule also holds for earlier results.
        if "oracle" in record:
            record["class"] = _class_of_equal(record["oracle"].values())
        if (record["source"], record["conversion"]) in unsound and record.get("class") in ("caught", "missed"):
            record["class"] = "unclear"
    return found


def summary(results: Iterable[Record]) -> Iterator[str]:
    """The counts of each way."""
    by_way: dict[str, Counter[str]] = defaultdict(Counter)
    seconds: dict[str, float] = defaultdict(float)
    for record in results:
        by_way[record["way"]][record.get("class", record.get("verdict", "failed"))] += 1
        seconds[record["way"]] += record.get("seconds", 0)
    conversions_made = by_way.pop("none", Counter())
    shown = [name for name in CLASSES if any(counted[name] for counted in by_way.values())]
    yield f"conversions as they are: {_counts(conversions_made)}, {seconds['none']:,.0f} s"
    yield "| way | spoiled | " + " | ".join(shown) + " | caught of judged | s |"
    yield "|---" * (len(shown) + 4) + "|"
    total = sum(by_way.values(), Counter[str]())
    rows = [*((way, by_way[way], seconds[way]) for way in WAYS)]
    for way, counted, spent in [*rows, ("all", total, sum(seconds[way] for way in WAYS))]:
        cells = [f"{counted[name]:,}" for name in shown]
        judged = counted["caught"] + counted["missed"]
        share = f"{counted['caught'] / judged:.1%}" if judged else "-"
        yield f"| {way} | {sum(counted.values()):,} | " + " | ".join(cells) + f" | {share} | {spent:,.0f} |"


def _counts(counted: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counted.most_common()) or "none"


def comparison(before: Mapping[str, Record], after: Mapping[str, Record], shown: int) -> Iterator[str]:
    """How the classes of the same spoiled models differ between two files, with the first of those that got worse."""
    shared = [key for key, record in after.items() if key in before and before[key].get("model") == record.get("model")]
    pairs = [(before[key], after[key]) for key in shared if after[key]["way"] != "none"]
    moved = Counter((old["class"], new["class"]) for old, new in pairs)
    times = [sum(each[place].get("seconds", 0) for each in pairs) for place in (0, 1)]
    yield f"{len(pairs):,} spoiled models are in both, verified in {times[0]:,.0f} s before and {times[1]:,.0f} s after"
    for (old, new), count in sorted(moved.items(), key=lambda each: -each[1]):
        yield f"  {count:,} {old}" if old == new else f"  {count:,} {old} became {new}"
    kept = [(before[key], after[key]) for key in shared if after[key]["way"] == "none"]
    for old, new in kept:
        if old.get("verdict") != new.get("verdict"):
            yield f"as it is, {new['key']}: {old.get('verdict')} became {new.get('verdict')}"
    worse = [new for old, new in pairs if old["class"] == "caught" and new["class"] != "caught"]
    for record in worse[:shown]:
        yield f"caught before, now {record['class']}: {record['key']}"


def count(options: argparse.Namespace) -> Iterator[str]:
    """How many spoilings there are."""
    ways: Counter[tuple[str, str]] = Counter()
    made = 0
    for path in sources(options.models, options.most_bytes):
        for _, source, result in converted(path):
            made += 1
            ways.update((each.way, each.change) for each in spoilings(source, result))
    for way in WAYS:
        yield f"{way}: {ways[way, 'written']:,} of nodes written, {ways[way, 'renumbered']:,} of nodes renumbered"
    yield f"{made:,} conversions, {sum(ways.values()):,} spoilings"


# The command ------------------------------------------------------------------------------------------------------


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?", help="the file of results")
    parser.add_argument("--models", type=Path, help="a folder with more models")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose splitgraph verifies")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="only every n-th spoiling of each conversion")
    parser.add_argument("--most", type=int, help="at most so many spoilings of one conversion")
    parser.add_argument("--like", type=Path, help="try the spoilings of these results, and no others")
    parser.add_argument("--limit", type=int, help="at most so many spoilings in this run")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end after this time")
    parser.add_argument("--only", default="", help="only models with this in their name")
    parser.add_argument("--most-bytes", type=int, default=10_000_000, help="leave out larger models")
    parser.add_argument("--most-seconds", type=float, default=math.inf, help="leave out models that verify longer")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one verification")
    parser.add_argument("--oracle-seconds", type=float, default=40, help="seconds for one engine of the judgement")
    parser.add_argument("--summary", action="store_true", help="only print what is in the file")
    parser.add_argument("--against", type=Path, help="earlier results, to compare with")
    parser.add_argument("--show", type=int, default=50, help="how many to name of those that got worse, or were missed")
    parser.add_argument("--count", action="store_true", help="only count the spoilings")
    options = parser.parse_args(given)
    options.tree = options.tree.resolve()
    if options.results is None and not options.count:
        parser.error("name the file of results")
    return options


def run(options: argparse.Namespace) -> None:
    """Try what is not yet in the file of results."""
    with Helper(options.tree) as judge:
        found = judge.ask("tree", _SLACK)
    if found.get("tree") != str(options.tree):
        raise SystemExit(f"{options.tree} has no splitgraph that can be imported: {found}")
    like = None if options.like is None else read(options.like)
    deadline = time.monotonic() + 60 * options.minutes
    campaign = Campaign(options, deadline, read(options.results), like)
    paths = [path for path in sources(options.models, options.most_bytes) if options.only in path.stem]
    if like is not None:
        named = {record["source"] for record in like.values()}
        paths = [path for path in paths if path.stem in named]
    with ThreadPoolExecutor(options.jobs) as pool:
        for trial in [pool.submit(try_source, path, campaign) for path in paths]:
            trial.result()


def main(given: Sequence[str] | None = None) -> int:
    """Plant the faults and print the counts."""
    options = arguments(given)
    if options.count:
        print("\n".join(count(options)))
        return 0
    if not options.summary:
        run(options)
    results = read(options.results)
    print("\n".join(summary(results.values())))
    for record in [record for record in results.values() if record.get("class") == "missed"][: options.show]:
        print(f"missed: {record['key']}")
    if options.against is not None:
        print("\n".join(comparison(read(options.against), results, options.show)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
