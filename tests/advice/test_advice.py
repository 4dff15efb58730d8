"""Advice is not refused when it is followed: each command of a message is typed where the message is printed."""

from __future__ import annotations

import pytest

from splitgraph.findings.codes import CODES

from .follow import advice_in, followed, is_refused, printed_in, typed
from .literal_texts import texts_with_advice
from .printed_advice import printed_advice
from .situations import ELSEWHERE, SITUATIONS, UNPRINTED, Situation

CASES = [
    pytest.param(each, marks=[pytest.mark.slow] * each.is_slow, id=each.name.replace("/", ":")) for each in SITUATIONS
]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("situation", CASES)
def test_advice_is_not_refused(situation: Situation) -> None:
    printed = printed_in(situation.typed)
    assert situation.code in printed.text
    advice = advice_in(situation)
    assert advice or situation.also, f"no advice: {printed.text}"
    assert set(situation.follows) <= set(map(str, advice)), f"{list(map(str, advice))}: {printed.text}"
    wrong = []
    for each in advice:
        command = followed(situation, each)
        if command:
            wrong.append(is_refused(situation, each, command, typed(command)))
    for command in situation.also:
        code, text = typed(command)
        wrong.append("" if code == 0 else f"{command}: {text}")
    assert not list(filter(None, wrong)), "\n".join(filter(None, wrong))


def test_every_code_whose_advice_names_a_command_has_a_situation() -> None:
    advising = {code for code, info in CODES.items() if printed_advice(info.help)}
    assert advising - {each.code for each in SITUATIONS} == ELSEWHERE.keys()


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_every_text_with_advice_is_printed_by_a_situation() -> None:
    printed = [printed_in(each.typed).text for each in SITUATIONS]
    missing = [text for text in texts_with_advice() if not any(map(text.is_in, printed))]
    assert [text for text in missing if not text.begins_with(UNPRINTED)] == []
    # What is printed needs no reason any more.
    assert [begin for begin in UNPRINTED if not any(text.begins_with([begin]) for text in missing)] == []
