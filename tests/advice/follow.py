"""Type the commands of the table of situations, and follow the advice that they print."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from splitgraph import cli
from splitgraph.findings.codes import CODES

from .advised_models import write_files
from .printed_advice import Advice, printed_advice, takes_value
from .situations import NAMED, SITUATIONS, Situation

# Values of options that any value does for.
_FRESH = {"-o": "fresh.onnx", "--report": "fresh.jsonl", "--junit": "fresh.xml"}
# Options of which a further one does not replace the others.
_SEVERAL = ("--follow", "--keep")
# Commands that show something, and whose exit code is of what they show.
_TELLING = ("infer", "check", "verify", "diff", "explain", "doctor", "report")
_TOLD = re.compile(r"^ *\"(?:message|help)\": (\".*\"),?$", re.MULTILINE)
_CODE = re.compile(r" \[SG\d+\]$", re.MULTILINE)
_REWRITING = ("upgrade", "downgrade", "convert", "reshape")


class Printed(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    text: str

    @property
    def advice(self) -> list[Advice]:
        """Return the advice of what was printed; of a document its messages and their help."""
        told = [json.loads(text) for text in _TOLD.findall(self.text)] or [_CODE.sub("", self.text)]
        return printed_advice("\n".join(told))


def typed(command: str) -> Printed:
    """Type a command in a folder of its own, HERE, that has the files it names; a comment names more of them.

    Of several commands that are joined by && the last one counts.
    """
    text, _, more = command.partition("  # ")
    with tempfile.TemporaryDirectory() as folder:
        write_files(text + more, Path(folder))
        return [typed_in(Path(folder), each.replace("HERE", folder)) for each in text.split(" && ")][-1]


def typed_in(folder: Path, command: str) -> Printed:
    """Type a command in a folder."""
    home, streams = Path.cwd(), io.StringIO()
    os.chdir(folder)
    try:
        with (
            changed(COLUMNS="1000", NO_COLOR="1", SPLITGRAPH_CACHE=str(folder / "cache")),
            contextlib.redirect_stdout(streams),
            contextlib.redirect_stderr(streams),
        ):
            code = cli.main(shlex.split(command))
    finally:
        os.chdir(home)
    return Printed(code, streams.getvalue())


@contextlib.contextmanager
def changed(**environment: str) -> Iterator[None]:
    """Change the environment: no table breaks a command into lines, and models at URLs are kept in the folder."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@cache
def printed_in(situation: str) -> Printed:
    """Return what the command of a situation prints; it is typed once."""
    return typed(situation)


def advice_in(situation: Situation) -> list[Advice]:
    """Return what a situation advises, and what `explain` says of the code that it is the example of."""
    is_example = next(each for each in SITUATIONS if each.code == situation.code) is situation
    explained = printed_advice(CODES[situation.code].help) if situation.code and is_example else []
    return list(dict.fromkeys((*printed_in(situation.typed).advice, *explained)))


def followed(situation: Situation, advice: Advice) -> str:
    """Return the command that follows an advice; "" for an option that only names what was typed."""
    if str(advice) in situation.follows:
        return situation.follows[str(advice)]
    text, comment, more = situation.typed.partition("  # ")
    words = shlex.split(text)
    models = _models(words)
    named = dict.fromkeys(("MODEL", "RESULT"), models[0] if models else "model.onnx")
    given = [named.get(word, word) for word in advice.words]
    if given and not given[0].startswith("-"):
        # A command with its model is complete.
        words = [advice.verb]
    elif advice.verb and advice.verb != words[0]:
        words = [advice.verb, *models, *_shared(words, advice.verb)]
    place, is_named = 0, not advice.verb
    while place < len(given):
        option, place = given[place], place + 1
        if not option.startswith("-"):
            words.append(option)
            continue
        if advice.is_left_out:
            words = _without(words, option)
            is_named = False
        elif not takes_value(words[0], option):
            is_named = is_named and option in words
            words = words if option in words else [*words, option]
        else:
            printed = given[place] if place < len(given) and not given[place].startswith("-") else ""
            place += bool(printed)
            value = printed if printed and not _is_placeholder(printed) else _value(situation, option, words)
            if value is not None and value not in _values(words, option):
                words = _with(words, option, value)
                is_named = False
    if is_named:
        return NAMED
    # What is printed with its model is typed as it is.
    whole = words if given and not given[0].startswith("-") else _completed(words, situation)
    return shlex.join(whole) + comment + more


def is_refused(situation: Situation, advice: Advice, command: str, printed: Printed) -> str:
    """Return what is wrong with advice that was followed; "" if nothing is."""
    verb = shlex.split(command)[0]
    allowed = (*((0, 1, 3) if verb in _TELLING else (0,)), *situation.exits)
    told = f"{advice} was followed as: {command}\n{printed.text}"
    if printed.code not in allowed and not (situation.stays and printed.code == 1):
        return f"exit {printed.code}: {told}"
    same = not advice.verb or verb in _REWRITING
    if same and not situation.stays and advice in printed.advice:
        return f"it is still said: {told}"
    if printed.text == printed_in(situation.typed).text:
        return f"it changes nothing: {told}"
    return ""


def _models(words: list[str]) -> list[str]:
    return [
        word
        for word in words[1:]
        if re.search(r"\.(onnx|xml)$|/$", word) and words[words.index(word) - 1] not in ("-o", "--junit", "--exclude")
    ]


def _is_placeholder(word: str) -> bool:
    return re.fullmatch(r"[A-Z]+(\[[A-Z]+\])?|.*=[A-Z]{4,}", word) is not None


def _value(situation: Situation, option: str, words: list[str]) -> str | None:
    """Return the value for an option that is printed without one; None where the option names what was typed."""
    if option in situation.values:
        return situation.values[option]
    if option == "-o" and words[0] == "report":
        return "fresh.html"
    if option in _FRESH:
        return _FRESH[option]
    assert option in words, f"what to give for {option}: {situation.typed}"
    return None


def _shared(words: list[str], verb: str) -> list[str]:
    """Return the options of a command that another one has and needs, too."""
    kept = [*("--no-verify",) * ("--no-verify" in words or verb in _REWRITING)]
    for option in ("--target", "--opset", "--input-shape", "--batch"):
        if takes_value(verb, option):
            kept += [word for value in _values(words, option) for word in (option, value)]
    return kept if verb in _REWRITING else [word for word in kept if word != "--no-verify"]


def _completed(words: list[str], situation: Situation) -> list[str]:
    """Return a command with what it requires."""
    if words[0] in ("upgrade", "downgrade") and "--opset" not in words:
        words = [*words, "--opset", {"upgrade": "19", "downgrade": "11"}[words[0]]]
    if words[0] == "reshape" and not {"--input-shape", "--batch"} & set(words):
        words = (
            [*words, "--input-shape", situation.values["--input-shape"]]
            if "--input-shape" in situation.values
            else [*words, "--batch", "2"]
        )
    return words


def _values(words: list[str], option: str) -> list[str]:
    return [after for word, after in pairwise(words) if word == option]


def _without(words: list[str], option: str) -> list[str]:
    place = words.index(option)
    return words[:place] + words[place + 1 + takes_value(words[0], option) :]


def _with(words: list[str], option: str, value: str) -> list[str]:
    while option in words and option not in _SEVERAL:
        words = _without(words, option)
    return [*words, option, value]
