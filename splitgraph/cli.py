"""The command line: how the program starts, and what it returns.

`commands/declared.py` says what can be typed. This module, and what it imports at its top, needs click and little
else, so that `splitgraph --help` takes hardly longer than `import click`: everything that only a command needs is
imported where the command runs.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import sys
from collections.abc import Sequence

import click

from splitgraph.commands.declared import program
from splitgraph.commands.program import usage_text
from splitgraph.findings.exit_codes import CLEAN, INTERNAL_ERROR, INTERRUPTED, WRONG_USAGE

__all__ = ["main", "program"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns 0 clean, 1 findings, 2 wrong usage or unreadable file, 3 not checked.

    arguments: what was typed; None for what this process was started with, which then ends.
    """
    if arguments is None:
        # A process that ends gives its memory back as it is, without looking for garbage in it.
        atexit.register(gc.freeze)
    _prepare_streams()
    typed = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return int(program.main(typed, prog_name="splitgraph", standalone_mode=False, obj=typed) or CLEAN)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "splitgraph"
        meant = _meant_as_a_file(error, typed)
        text = f"{usage_text(error).removesuffix('.')}; {meant}." if meant else usage_text(error)
        _say(f"error: {text}\nTry '{path} --help' for help.")
        return WRONG_USAGE
    except click.Abort:
        _say("interrupted")
        return INTERRUPTED
    except OSError as error:
        # Model files have their own errors: this one comes from the output stream or the machine.
        _say(f"error: {_printable(error.strerror or str(error))}")
        return WRONG_USAGE
    except MemoryError:
        _say("error: out of memory")
        return WRONG_USAGE
    except Exception as error:
        # An internal error is one line on stderr; with SPLITGRAPH_DEBUG the traceback, too.
        if os.environ.get("SPLITGRAPH_DEBUG"):
            raise
        kind = "" if type(error).__name__ == "InternalError" else f"{type(error).__name__}: "
        text = _printable(f"{kind}{error}")
        _say(f"internal error: {text} (please report it; SPLITGRAPH_DEBUG=1 shows a traceback)")
        return INTERNAL_ERROR


def _say(text: str) -> None:
    """Print a line on stderr; ignore a full disk or a closed pipe."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _prepare_streams() -> None:
    """Make sure that there are two streams, and that they can take any text."""
    for name in ("stdout", "stderr"):
        # A stream that the caller closed before the start is None; its text is discarded.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # open until the process ends
    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal cannot encode are printed as escapes.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _meant_as_a_file(error: click.UsageError, typed: Sequence[str]) -> str:
    """Return advice for a file whose name begins with a dash; "" if there is no such file."""
    if not isinstance(error, click.NoSuchOption):
        return ""
    named = next((text for text in typed if text.startswith("-") and os.path.lexists(text)), None)
    return "" if named is None else f"for the file of that name write ./{_printable(named)}"


def _printable(text: str) -> str:
    from splitgraph.reports.text import printable

    return printable(text)
