"""Read the commands and options that a text of splitgraph advises to type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import click

from splitgraph.cli import program

COMMANDS: Mapping[str, click.Command] = program.commands
# A quoted argument is one word; so is all else between spaces.
_WORD = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'`]+|[\"'`]")
_SENTENCE = re.compile(r"(?<=[.;:?])\s+|\n")
_OPTION = re.compile(r"--[a-z][a-z-]*|-o")
_VERB = "|".join(COMMANDS)
# "Run infer and", "run upgrade, downgrade or convert", "infer shows all shapes".
_TOLD_TO_RUN = re.compile(rf"\b[Rr]un ((?:(?:{_VERB})(?:, | or )?)+)(?=[ .,:]|$)(?! --)")
_TELLS = re.compile(rf"(?<![-\w/.])({_VERB}) (?:shows|lists|says)\b")
# "upgrade, downgrade, convert and reshape do so with --fix-defaults".
_VERBS = re.compile(rf"(?<![-\w/.])(?:{_VERB})(?:(?:, | and | or )(?:{_VERB}))*(?![-\w/.])")
# "leave --provider out", "omit --ir-version", "leave out its value, or --assume-defaults".
_LEFT_OUT = re.compile(r"(?:\b[Oo]mit|\b[Ll]eave) $|\b[Ll]eave out (?:[\w ]+, or )?$|\b[Nn]ot with \S+ $")


class Advice(NamedTuple):
    """Something that a text advises to type.

    verb: the command; "" for an option of the command that printed the text. words: options and arguments as printed,
    without quotes. is_left_out: the option is to be left out.
    """

    verb: str
    words: tuple[str, ...] = ()
    is_left_out: bool = False

    def __str__(self) -> str:
        """Return the advice as a table of situations names it: "reshape --keep main/k[0]", "without --provider"."""
        text = " ".join(filter(None, (self.verb, *self.words)))
        return f"without {text}" if self.is_left_out else text


def printed_advice(text: str) -> list[Advice]:
    """Return what a text advises to type, in order, each once. Rows of the options of a help text are no advice."""
    found: dict[Advice, None] = {}
    for sentence in _SENTENCE.split(text):
        for advice in _of_sentence(sentence):
            found.setdefault(advice)
    return list(found)


def takes_value(verb: str, option: str) -> bool:
    """Return True for an option with a value; verb: "" where any command has the option."""
    found = [
        param
        for name, command in COMMANDS.items()
        for param in command.params
        if option in (*param.opts, *param.secondary_opts) and (name == verb or not verb)
    ]
    return any(isinstance(param, click.Option) and not param.is_flag for param in found)


def _of_sentence(sentence: str) -> Iterator[Advice]:
    for told in _TOLD_TO_RUN.finditer(sentence):
        yield from (Advice(verb) for verb in re.findall(_VERB, told[1]))
    yield from (Advice(told[1]) for told in _TELLS.finditer(sentence))
    words = list(_WORD.finditer(sentence))
    place = 0
    while place < len(words):
        word = _plain(words[place].group())
        if word == "splitgraph" and _is_command([each.group() for each in words[place + 1 : place + 3]]):
            verb = words[place + 1].group()
            given, after = _arguments(words, place + 2, _plain(verb), _ends(verb))
            yield Advice(_plain(verb), given)
        elif _OPTION.fullmatch(word):
            given, after = _arguments(words, place, "", False)
            begin = words[place].start()
            is_left_out = _LEFT_OUT.search(sentence[:begin].rstrip("`'\"(")) is not None
            verbs = () if is_left_out else _verbs_before(sentence[:begin])
            yield from (Advice(verb, given, is_left_out) for verb in verbs or ("",))
        else:
            after = place + 1
        place = after


def _is_command(following: list[str]) -> bool:
    """Return True for words after "splitgraph" that are a command, or stand where one has to be: before an option."""
    plain = [_plain(word) for word in following]
    return bool(plain) and (plain[0] in COMMANDS or (len(plain) > 1 and _OPTION.fullmatch(plain[1]) is not None))


def _arguments(words: list[re.Match[str]], place: int, verb: str, ended: bool) -> tuple[tuple[str, ...], int]:
    """Return the options and arguments that stand at a place, and where they end."""
    given: list[str] = []
    while place < len(words) and not ended:
        word, text = _plain(words[place].group()), words[place].group()
        if _OPTION.fullmatch(word):
            given.append(word)
            ended = _ends(text)
            following = words[place + 1].group() if place + 1 < len(words) and not ended else ""
            if following and takes_value(verb, word) and _is_value(word, following):
                given.append(_plain(following))
                ended = _ends(following)
                place += 1
        elif verb and _is_argument(text):
            given.append(word)
            ended = _ends(text)
        else:
            break
        place += 1
    return tuple(given), place


def _verbs_before(text: str) -> tuple[str, ...]:
    """Return the commands that an option belongs to: those that the sentence names last before it, if it does."""
    lists = [found.group() for found in _VERBS.finditer(text)]
    return tuple(re.findall(_VERB, lists[-1])) if lists else ()


def _is_value(option: str, text: str) -> bool:
    """Return True if a word after an option is its value, and not a word of the sentence."""
    if _OPTION.fullmatch(_plain(text)):
        return False
    choices = {
        str(choice)
        for command in COMMANDS.values()
        for param in command.params
        if option in param.opts and isinstance(param.type, click.Choice)
        for choice in param.type.choices
    }
    word = _plain(text)
    return (
        text[0] in "\"'" or word in choices | {"keep"} or re.search(r"[=@/\[\]\d]|\w\.\w|^[A-Z_]+$", word) is not None
    )


def _is_argument(text: str) -> bool:
    """Return True for a model or a code after the name of a command."""
    word = _plain(text)
    return text[0] in "\"'" or re.search(r"\w\.\w|/|^[A-Z]+\d*$", word) is not None


def _plain(text: str) -> str:
    """Return a word without quotes, and without the punctuation around it."""
    if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]:
        return text[1:-1]
    return text.lstrip("(").rstrip(",.;:)")


def _ends(text: str) -> bool:
    """Return True if a phrase ends after a word."""
    return text[-1] in ",.;:)"
