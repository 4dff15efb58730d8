"""What the reference evaluator ignores: changes of attributes and inputs that only onnxruntime sees.

    python tests/campaigns/ignored_changes.py --cache FOLDER
    python tests/campaigns/ignored_changes.py --cache FOLDER --operator LSTM --operator Resize

Each attribute of each operator version is dropped, and set to other values; each optional input is dropped. Both
engines run each model with the change and without it, in processes of their own: a crash is a result. The evaluator
runs with the kernels of splitgraph, as `verify` asks it. The results are kept in the folder of --cache. Printed are the
entries of `splitgraph/verification/reference/ignored.py`. --check prints instead what that table lacks, and ends with 1
if there is anything.
"""

from __future__ import annotations

import argparse
import pickle
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1]), str(HERE)]

from onnx import AttributeProto, ModelProto, helper  # noqa: E402, the folders above are on the path only now
from tolerated_slips import Results, run_all  # noqa: E402
from tolerated_slips_cases import Base, Feeds, bases, operators  # noqa: E402

from splitgraph.model.schemas.allowed_values import allowed_values  # noqa: E402
from splitgraph.model.schemas.operator_version import FormalAttribute  # noqa: E402
from splitgraph.verification.reference.ignored import IGNORED  # noqa: E402

# Values of attributes whose texts allow whatever is a number, or the name of a function.
_INTEGERS, _FLOATS = (0, 1, 2, -1, 3), (0.0, 0.3, 1.5)
_FLAGS = frozenset({"interleaved", "training_mode"})
# Without its number of iterations, a loop may have no end.
_ENDLESS = frozenset({("Loop", 0)})
_TEXTS = {"activations": (["Relu"] * 6, ["Sigmoid"] * 6, ["Tanh"] * 6)}


class Change(NamedTuple):
    """A model with a change, by the model without it. key: operator, version, and the attribute or the input's number.
    value: of the attribute after the change, "" where something was dropped.
    """

    base: str
    key: tuple[str, int, str]
    value: str
    model: ModelProto
    feeds: Feeds

    @property
    def name(self) -> str:
        """The name of the changed model."""
        return f"{self.base} {self.key[2]} {self.value or 'dropped'}"


def changes(base: Base) -> Iterator[Change]:
    """Every change that is made of a valid model."""
    op, version = base.schema.op, base.schema.since_version
    (node,) = base.model.graph.node
    given = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    for name, formal in base.schema.attributes.items():
        if name in given and not formal.required:
            yield Change(base.name, (op, version, name), "", _with(base, name, None), base.feeds)
        for value in _values(base, formal, given.get(name, formal.default_value)):
            model = _with(base, name, value)
            yield Change(base.name, (op, version, name), str(value).replace(" ", ""), model, base.feeds)
    for index, name in enumerate(node.input):
        formals = base.schema.inputs
        is_endless = (op, index) in _ENDLESS
        if name and index < len(formals) and formals[index].option == "optional" and not is_endless:
            model = ModelProto()
            model.CopyFrom(base.model)
            model.graph.node[0].input[index] = ""
            inputs = [value for value in model.graph.input if value.name != name]
            del model.graph.input[:]
            model.graph.input.extend(inputs)
            feeds = {key: value for key, value in base.feeds.items() if key != name}
            yield Change(base.name, (op, version, f"input {index}"), "", model, feeds)


def _with(base: Base, name: str, value: Any) -> ModelProto:
    """The model with another value of an attribute; without it if the value is None."""
    model = ModelProto()
    model.CopyFrom(base.model)
    (node,) = model.graph.node
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)
    if value is not None:
        node.attribute.append(helper.make_attribute(name, value))
    return model


def _values(base: Base, formal: FormalAttribute, given: Any) -> list[Any]:
    """Other values of an attribute than the one that a node has or that is its default."""
    allowed = allowed_values("", base.schema.op, base.schema.since_version, formal.name) or ()
    found: list[Any] = list(allowed) if formal.type in (AttributeProto.INT, AttributeProto.STRING) else []
    if formal.type == AttributeProto.INT and not allowed:
        found += (0, 1) if formal.name in _FLAGS else _INTEGERS
    elif formal.type == AttributeProto.FLOAT:
        found += _FLOATS
    elif formal.type == AttributeProto.INTS:
        listed = [int(number) for number in given] if given else [1, 1]
        found = [[number + step for number in listed] for step in (-1, 1, 2)]
        found += [listed[::-1], [*listed[:-1], listed[-1] + 1]]
    elif formal.type == AttributeProto.FLOATS:
        found = [[number] * (len(given) if given else 6) for number in (0.2, 0.8)]
    elif formal.type == AttributeProto.STRINGS:
        found += _TEXTS.get(formal.name, ())
    return [value for value in found if value not in (given, getattr(given, "decode", str)())]


def forms(base: Base) -> Iterator[Base]:
    """The model, and the one that gives its first output alone: the evaluator has other code for some of these."""
    yield base
    if base.schema.min_outputs == 1 < len(base.model.graph.output):
        model = ModelProto()
        model.CopyFrom(base.model)
        del model.graph.output[1:]
        del model.graph.node[0].output[1:]
        yield base._replace(name=f"{base.name}, first output", model=model)


def seen(made: Iterable[tuple[Base, list[Change]]], cache: Path) -> Iterator[tuple[Change, str]]:
    """Each change that onnxruntime sees, and how the evaluator takes it: "ignores", "reacts", or "refuses"."""
    cache.mkdir(parents=True, exist_ok=True)
    theirs = _run("onnxruntime", (each for base, changed in made for each in (base, *changed)), cache)
    told = [(base, change) for base, changed in made for change in changed if _differ(theirs, base, change)]
    own = _run("arbiter", {each.name: each for pair in told for each in pair}.values(), cache)
    for base, change in told:
        if any(isinstance(own[each.name], str) for each in (base, change)):
            yield change, "refuses"
        else:
            yield change, "reacts" if _differ(own, base, change) else "ignores"


def _run(engine: str, models: Iterable[Base | Change], cache: Path) -> Results:
    path = cache / f"{engine}.pickle"
    cases = [(each.name, each.model.SerializeToString(), dict(each.feeds)) for each in models]
    path.write_bytes(pickle.dumps(cases))
    return run_all(engine, path, cache / f"{engine}.jsonl")


def _differ(results: Results, base: Base, change: Change) -> bool:
    """True if an engine runs both models, and not to the same results bit for bit."""
    one, other = results[base.name], results[change.name]
    return not isinstance(one, str) and not isinstance(other, str) and repr(one) != repr(other)


def entries(found: Iterable[tuple[Change, str]]) -> Iterator[tuple[str, str, list[int], list[str]]]:
    """What is ignored: operator, attribute or input, versions, and the values; no values if all of them are."""
    outcomes: dict[tuple[str, str], list[tuple[int, str, str]]] = defaultdict(list)
    for change, told in found:
        op, version, what = change.key
        outcomes[op, what].append((version, change.value, told))
    for (op, what), seen_so in sorted(outcomes.items()):
        held = [(version, value) for version, value, told in seen_so if told == "ignores"]
        values = {value for _, value in held}
        # A value that is ignored in one model, and not in another one, counts.
        is_whole = all(told != "reacts" or value in values for _, value, told in seen_so)
        if held:
            yield op, what, sorted({version for version, _ in held}), [] if is_whole else sorted(values)


def main() -> int:
    """Measure, and print what is ignored, or what the table lacks of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="the folder of the results")
    parser.add_argument("--operator", action="append", help="repeatable; all by default")
    parser.add_argument("--check", action="store_true", help="print what the table lacks")
    given = parser.parse_args()
    chosen = given.operator or operators()
    made = [(form, list(changes(form))) for op in chosen for base in bases(op) for form in forms(base)]
    print(f"{len(made)} models, {sum(len(found) for _, found in made)} changes", flush=True)
    told = list(entries(seen(made, given.cache)))
    if given.check:
        told = [each for each in told if each[1] not in IGNORED.get(each[0], ())]
    for op, what, versions, values in told:
        print(f"{op} {what}: versions {versions}{', values ' if values else ''}{', '.join(values)}")
    return 1 if given.check and told else 0


if __name__ == "__main__":
    sys.exit(main())
