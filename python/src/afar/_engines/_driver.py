"""What all drivers do: hand out tasks, look at the directory, hand out again what was lost."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import Any, Dict, Iterator, List, Protocol

from ._plan import Ids, Plan

# How often a task is handed out before it is given up.
ATTEMPTS = 4
# Seconds before what was lost is handed out again: whoever refused it may be free then.
PAUSE_S = 1.0

FAILED, USAGE, LACKS = 1, 2, 3


class EngineError(Exception):
    """Why an engine does not do what it should, with an exit status."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(text)
        self.status = status


class Ended:
    """A task that has ended, however it has."""

    def __init__(self, ids: Ids, said: str = "") -> None:
        self.ids = ids
        # What went wrong, if that is known.
        self.said = said


class Engine(Protocol):
    """What moves tasks to machines."""

    # Processors that take tasks, as far as is known.
    processors: int
    # Tasks that may be handed out at once.
    window: int

    def submit(self, ids: Ids) -> None:
        """Hands out a task; there may be others with some of its points."""

    def ended(self) -> "List[Ended]":
        """Waits a moment for tasks to end; they may have been lost."""


class Driver:
    """Runs everything that is missing."""

    def __init__(self, plan: Plan, engine: "Engine") -> None:
        self._plan = plan
        self._engine = engine
        self._attempts: Dict[Ids, int] = {}
        self._out = 0

    def run(self) -> None:
        """Until every point has a result; raises EngineError if one is given up."""
        waiting = self._plan.tasks(self._engine.processors)
        if self._plan.measured and waiting:
            # It says what shares of memory are shares of, which others wait for.
            first, *waiting = waiting
            self._all([first])
        self._all(waiting)
        # Others may have taken away what was there.
        left = self._plan.missing()
        if left:
            raise EngineError(f"{len(left)} points have no result, the first {left[0]}")

    def _all(self, waiting: "List[Ids]") -> None:
        waiting = list(waiting)
        waiting.reverse()
        while waiting or self._out:
            while waiting and self._out < self._engine.window:
                ids = tuple(self._plan.left(waiting.pop()))
                if ids:
                    self._engine.submit(ids)
                    self._out += 1
            for task in self._engine.ended():
                self._out -= 1
                waiting += self._lost(task)

    def _lost(self, task: Ended) -> "List[Ids]":
        """What of a task is to be handed out again."""
        ids = tuple(self._plan.left(task.ids))
        if not ids:
            return []
        # By the first that is missing: whoever gets on is not given up.
        count = self._attempts[ids[:1]] = self._attempts.get(ids[:1], 0) + 1
        if count >= ATTEMPTS:
            why = task.said or "its machine was lost"
            raise EngineError(f"point {ids[0]} was given up after {count} attempts: {why}")
        time.sleep(PAUSE_S)
        return [ids]


def missing(library: str, error: Any) -> EngineError:
    """An error for a library that is not installed."""
    text = f"--on {library} needs the package {library}: {error}; pip install "
    package = "'dask[distributed]'" if library == "dask" else library
    return EngineError(text + package, LACKS)


@contextlib.contextmanager
def uninterrupted() -> "Iterator[None]":
    """Puts SIGINT and SIGTERM off until its block has ended; KeyboardInterrupt follows then."""
    came: List[int] = []

    def note(number: int, _frame: object) -> None:
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt
