"""The progress of many models, shown on a terminal beneath the lines of those that have ended."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from splitgraph.outcome import Outcome, Verb

if TYPE_CHECKING:
    from splitgraph.batch.run_jobs import Workers

# Models that are named while they are worked on.
_MOST_NAMED = 3


class Progress:
    """A bar with what is running. Nothing where stderr is no terminal."""

    def __init__(self, verb: Verb, *, total: int, done: int) -> None:
        self._verb, self._total, self._done, self._wrong = verb, total, done, 0
        self._workers: Workers | None = None
        self._live: Any = None

    def follow(self, workers: Workers) -> None:
        """Name the models that these workers work on."""
        self._workers = workers

    def start(self) -> None:
        """Show the bar."""
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(self._verb), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[wrong]}"))
        self._bar = Progress(*columns, TimeRemainingColumn())
        self._task = self._bar.add_task(self._verb, total=self._total, completed=self._done, wrong="")
        console = Console(stderr=True, markup=False, highlight=False, emoji=False)
        self._live = Live(get_renderable=self._shown, console=console, refresh_per_second=4, transient=True)
        self._live.start()

    def stop(self) -> None:
        """Remove the bar."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    @contextmanager
    def paused(self, outcome: Outcome) -> Iterator[None]:
        """Count a model, and print lines above the bar in the block."""
        self._done += 1
        self._wrong += not outcome.ok
        if self._live is None:
            yield
            return
        # Lines go to stdout, which may be the same terminal.
        self._live.stop()
        try:
            yield
        finally:
            wrong = f"{self._wrong} wrong" if self._wrong else ""
            self._bar.update(self._task, completed=self._done, wrong=wrong)
            self._live.start()

    def _shown(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        from splitgraph.report.text import printable, shortened

        names = [] if self._workers is None else self._workers.running
        lines = [Text(f"  {shortened(printable(name), 100)}", style="dim") for name in names[:_MOST_NAMED]]
        if len(names) > _MOST_NAMED:
            lines.append(Text(f"  and {len(names) - _MOST_NAMED} more", style="dim"))
        return Group(self._bar, *lines)
