"""Where the progress of a call is shown: in the terminal, in the notebook, or by a function."""

from __future__ import annotations

import importlib
import shutil
import sys
from typing import Any, Callable, Optional, Union

# The variable that asks the program for progress, and what a line of progress begins with.
VARIABLE = "AFAR_PROGRESS"
MARK = "\x1e"

Progress = Union[None, bool, Callable[[str], None]]


class Watcher:
    """Shows one text in place of the last."""

    def draw(self, text: str) -> None:
        """Shows a text."""
        raise NotImplementedError

    def close(self) -> None:
        """Takes away what was shown."""


class _Function(Watcher):
    def __init__(self, function: Callable[[str], None]) -> None:
        self._function = function

    def draw(self, text: str) -> None:
        self._function(text)


class _Terminal(Watcher):
    def draw(self, text: str) -> None:
        columns = shutil.get_terminal_size().columns
        sys.stderr.write(f"\r\x1b[K{text[: columns - 1]}")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class _Lines(Watcher):
    def draw(self, text: str) -> None:
        sys.stderr.write(text + "\n")


class _Notebook(Watcher):
    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None

    def draw(self, text: str) -> None:
        shown = {"text/plain": text}
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)


def watcher(progress: Progress) -> Optional[Watcher]:
    """Who shows progress: without a word, whoever can show one text in place of another."""
    if progress is False:
        return None
    if callable(progress):
        return _Function(progress)
    notebook = _notebook()
    if notebook is not None:
        return notebook
    if sys.stderr is not None and sys.stderr.isatty():
        return _Terminal()
    return _Lines() if progress else None


def _notebook() -> Optional[Watcher]:
    # A kernel has loaded it; nothing else need be.
    if "ipykernel" not in sys.modules:
        return None
    shell = importlib.import_module("IPython").get_ipython()
    display = importlib.import_module("IPython.display").display
    return _Notebook(display) if shell is not None else None
