"""Print results on stdout, and everything else on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.processes.this_process import writing

if TYPE_CHECKING:
    from splitgraph.reports.documents.parts import Document
    from splitgraph.reports.text import Block

# Seconds after which a person wants to know how to go on without waiting.
LONG = 10.0

# Most commands print a document or a page, and not both: each is imported where it is printed.


def print_document(document: Document) -> None:
    """Print a JSON document on stdout."""
    from splitgraph.reports.documents.skeletons import document_text

    print_text(document_text(document))


def print_text(text: str) -> None:
    """Print a text on stdout as it is."""
    with writing():
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()


def print_result(blocks: Sequence[Block]) -> None:
    """Print a page on stdout."""
    from splitgraph.reports.text import print_page

    with writing():
        print_page(blocks, sys.stdout)
        sys.stdout.flush()


def print_notice(blocks: Sequence[Block]) -> None:
    """Print a page on stderr; if stderr is full, nobody can be told."""
    from splitgraph.reports.text import print_page

    try:
        print_page(blocks, sys.stderr)
    except BrokenPipeError:
        raise
    except OSError:
        return


def say_error(text: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
    """Print one line on stderr, with the code of the first diagnostic to look up."""
    from splitgraph.reports.text import SEVERITY_STYLES, line

    code = f" [{diagnostics[0].code}]" if diagnostics else ""
    print_notice([line(("error: ", SEVERITY_STYLES["error"]), f"{text}{code}")])


@contextmanager
def working(text: str, hint: str = "") -> Iterator[Callable[[str], None]]:
    """Show on stderr, if that is a terminal, that work takes its time. Yields a function that changes the text.

    hint: an addition to the text after LONG seconds.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from threading import Timer

    from rich.console import Console

    shown = [text, ""]
    with Console(stderr=True).status(text) as status:

        def say(text: str = "", more: str = "") -> None:
            shown[:] = text or shown[0], more or shown[1]
            status.update("".join(shown))

        timer = Timer(LONG, say, kwargs={"more": f" ({hint})" if hint else ""})
        timer.daemon = True
        timer.start()
        try:
            yield say
        finally:
            timer.cancel()
