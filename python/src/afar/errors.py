"""Why a command of afar did not succeed.

Each class stands for one exit class of ``afar``; ``exit_class`` has its name. Every error has the
command line, the exit status and what the command wrote to standard error.
"""

from __future__ import annotations

import shlex
from typing import ClassVar, Dict, Optional, Sequence, Type

__all__ = [
    "AboveError",
    "AfarError",
    "BinaryMissingError",
    "FailedError",
    "InternalError",
    "InvalidError",
    "MachineError",
    "NotExecutableError",
    "ProgramMissingError",
    "SignalledError",
    "StoppedError",
    "UndecidedError",
    "UsageError",
]


class AfarError(Exception):
    """A command of afar that did not succeed.

    ``record`` is what the command wrote in spite of that, or None.
    """

    exit_class: ClassVar[str] = "failed"

    def __init__(
        self, text: str, *, status: int, command: Sequence[str], record: Optional[object] = None
    ) -> None:
        self.text = text.strip()
        self.status = status
        self.command = tuple(command)
        self.record = record
        super().__init__(self.text, status)

    def __str__(self) -> str:
        said = self.text or "it wrote nothing to standard error"
        return f"{said}\n(exit status {self.status}, {self.exit_class}: {shlex.join(self.command)})"


class FailedError(AfarError):
    """The command ran and did not succeed (exit status 1)."""


class UsageError(AfarError):
    """An argument or a file is wrong; the text says which, and what would be right (2)."""

    exit_class = "usage"


class MachineError(AfarError):
    """This machine lacks something; ``afar doctor`` says what (3)."""

    exit_class = "environment"


class InvalidError(AfarError):
    """The run is invalid: nothing follows from its figures; the text has the reason (4)."""

    exit_class = "invalid"


class AboveError(AfarError):
    """A cell is surely slower than ``fail_above`` of a sweep allows (5)."""

    exit_class = "above"


class UndecidedError(AfarError):
    """Runs do not tell whether a cell is slower than ``fail_above`` allows (6)."""

    exit_class = "undecided"


class InternalError(AfarError):
    """afar itself failed around a program that may be sound (125)."""

    exit_class = "internal"


class NotExecutableError(AfarError):
    """The program to run cannot be executed (126)."""

    exit_class = "not-executable"


class ProgramMissingError(AfarError):
    """The program to run does not exist (127)."""

    exit_class = "not-found"


class StoppedError(AfarError):
    """Somebody interrupted the command (130)."""

    exit_class = "interrupted"


class SignalledError(AfarError):
    """A signal ended the command; ``signal`` is its number (128 + signal)."""

    exit_class = "signalled"

    @property
    def signal(self) -> int:
        """The number of the signal."""
        return self.status - 128


class BinaryMissingError(Exception):
    """The program ``afar`` is not installed where this package looks for it."""


_BY_STATUS: Dict[int, Type[AfarError]] = {
    2: UsageError,
    3: MachineError,
    4: InvalidError,
    5: AboveError,
    6: UndecidedError,
    125: InternalError,
    126: NotExecutableError,
    127: ProgramMissingError,
    130: StoppedError,
}


def of_status(status: int) -> Type[AfarError]:
    """The error of an exit status that is not 0."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return SignalledError if status > 128 else FailedError
