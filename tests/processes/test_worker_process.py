"""A worker process answers, or its end says whether it crashed, hung or was out of memory. No engine is needed."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from splitgraph.processes.inner_loop import ProcessLimits
from splitgraph.processes.kept_processes import KeptProcesses
from splitgraph.processes.worker_process import ProcessEnded, WorkerProcess, start_of

from .watching import comes_true
from .works import Unreadable

WORK = "processes.works:do"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


@pytest.fixture
def kept() -> Iterator[KeptProcesses]:
    processes = KeptProcesses(WORK)
    yield processes
    processes.close()


def ask(kept: KeptProcesses, verb: str, subject: Any = None, **limits: Any) -> Any:
    return kept.run((verb, subject), ProcessLimits(**{"seconds": 60, **limits}))


@pytest.mark.parametrize("subject", [None, "text", bytes(1 << 20)], ids=["None", "text", "more than a pipe holds"])
def test_answers(kept: KeptProcesses, subject: object) -> None:
    for _ in range(2):
        assert ask(kept, "say", subject) == subject
        assert ask(kept, "say", subject, seconds=None) == subject


ENDS = [
    ("crash", signal.SIGSEGV, "crashed (SIGSEGV): this is why", "SIGSEGV: this is why"),
    ("crash", 40, "crashed (signal 40): this is why", "signal 40: this is why"),
    ("exit", 3, "ended with exit status 3", "exit status 3"),
    ("exit", 0, "ended without a result", "exit status 0"),
    ("dance", None, "ended with exit status 1: ValueError: nobody can dance", None),
    ("say", Unreadable(), "ended with exit status 1: ValueError: invalid literal for int()", None),
]


@pytest.mark.parametrize(("verb", "subject", "text", "cause"), ENDS)
def test_ends(kept: KeptProcesses, verb: str, subject: Any, text: str, cause: str | None) -> None:
    with pytest.raises(ProcessEnded) as caught:
        ask(kept, verb, subject)
    assert str(caught.value).startswith(text)
    assert caught.value.cause == cause or cause is None
    assert (caught.value.is_late, caught.value.has_begun) == (False, True)
    assert ask(kept, "say", 1) == 1


@pytest.mark.parametrize("verb", ["sleep", "ignore"])
@pytest.mark.parametrize("subject", [None, bytes(1 << 20)], ids=["small", "more than a pipe holds"])
@pytest.mark.parametrize("grace", [0.0, 0.5])
@pytest.mark.sample(3)
def test_hangs(verb: str, subject: object, grace: float) -> None:
    kept = KeptProcesses(WORK, grace=grace)
    began = time.monotonic()
    with pytest.raises(ProcessEnded) as caught:
        ask(kept, verb, subject, seconds=1)
    assert (str(caught.value), caught.value.is_late) == ("did not finish within 1 seconds", True)
    assert 1 <= time.monotonic() - began < 20
    kept.close()


def test_what_cannot_be_sent(kept: KeptProcesses) -> None:
    with pytest.raises(AttributeError):
        ask(kept, "say", lambda: None)
    assert ask(kept, "say", 1) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
@pytest.mark.parametrize("limit", ["address_space", "data"])
def test_needs_too_much_memory(kept: KeptProcesses, limit: str) -> None:
    with pytest.raises(ProcessEnded, match="ended with exit status 1: MemoryError"):
        ask(kept, "take", 1 << 34, **{limit: 1 << 31})
    assert ask(kept, "take", 1 << 20, **{limit: 1 << 31}) == 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
def test_limits_are_those_of_the_message(kept: KeptProcesses) -> None:
    """Without a limit, that of the process that started it holds."""
    first, unlimited = ask(kept, "tell", "RLIMIT_DATA")
    second, limited = ask(kept, "tell", "RLIMIT_DATA", data=1 << 32)
    assert (first, limited) == (second, 1 << 32)
    assert unlimited != limited


def test_ends_after_some_time_without_a_message() -> None:
    process = WorkerProcess(start_of(WORK, cleans_up=False), idle=0.5)
    assert process.run(("say", 1), ProcessLimits()) == 1
    assert comes_true(lambda: process.has_ended)
    with pytest.raises(ProcessEnded) as caught:
        process.run(("say", 1), ProcessLimits(seconds=60))
    assert not caught.value.has_begun


def test_closed_processes_do_not_start_again(kept: KeptProcesses) -> None:
    assert ask(kept, "say", 1) == 1
    kept.close()
    kept.close()
    with pytest.raises(ProcessEnded, match="was closed"):
        ask(kept, "say", 1)


PREPARED = [("say", "ready", True), ("exit", 3, False), ("crash", signal.SIGSEGV, False), ("dance", None, False)]


@pytest.mark.parametrize(("verb", "subject", "is_taken"), PREPARED)
def test_prepared(kept: KeptProcesses, verb: str, subject: Any, is_taken: bool) -> None:
    """The answer to the first message is passed over; where it ended the process, a new one takes the next message."""
    kept.prepare((verb, subject))
    kept.prepare((verb, subject))
    (prepared,) = [process for waiting in kept._waiting.values() for _, process in waiting]
    assert ask(kept, "say", 1) == 1
    (used,) = [process for waiting in kept._waiting.values() for _, process in waiting]
    assert (used is prepared) == is_taken
    assert ask(kept, "say", 2) == 2


def test_not_prepared_for_another_purpose(kept: KeptProcesses) -> None:
    kept.prepare(("exit", 3), key="other")
    assert ask(kept, "say", 1) == 1


def test_prepared_too_long(kept: KeptProcesses) -> None:
    kept.prepare(("sleep", None))
    with pytest.raises(ProcessEnded, match="did not finish within 1 seconds"):
        ask(kept, "say", 1, seconds=1)
    assert ask(kept, "say", 1) == 1


def test_not_prepared_once_closed(kept: KeptProcesses) -> None:
    kept.close()
    kept.prepare(("say", 1))
    assert not any(kept._waiting.values())
