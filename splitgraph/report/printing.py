"""Printing on the two streams: results on stdout, and on stderr everything else."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from splitgraph.diagnostics import Diagnostic
from splitgraph.report.documents import Document, document_text
from splitgraph.report.layout import Block, line, print_page
from splitgraph.report.pages import SEVERITY_STYLES


def print_document(document: Document) -> None:
    """Print a JSON document on stdout."""
    with _told_where():
        sys.stdout.write(document_text(document))
        sys.stdout.flush()


def print_result(blocks: Sequence[Block]) -> None:
    """Print a page on stdout."""
    with _told_where():
        print_page(blocks, sys.stdout)
        sys.stdout.flush()


@contextmanager
def _told_where() -> Iterator[None]:
    """What is wrong with stdout, as a full disk, must not read as if the model could not be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, f"standard output cannot be written: {error.strerror}") from error


def print_notice(blocks: Sequence[Block]) -> None:
    """Print a page on stderr."""
    print_page(blocks, sys.stderr)


def say_error(text: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
    """Print one line on stderr, with the code of the first diagnostic to look up."""
    code = f" [{diagnostics[0].code}]" if diagnostics else ""
    print_notice([line(("error: ", SEVERITY_STYLES["error"]), f"{text}{code}")])


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show on stderr, if that is a terminal, that something takes its time."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield
