"""Running the program: one call, waited for by a thread or by an event loop.

A call runs in a process group of its own. Whoever gives up on it (Ctrl-C, a cancelled task, a
timeout) first interrupts that group, as a terminal would, so that afar puts the machine back as it
was; only a group that does not end by then is killed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
from typing import IO, Any, Dict, Generic, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar

from . import _progress
from ._binary import find_binary
from ._progress import Watcher
from .errors import AfarError, InternalError, of_status
from .records import Record

# How long a group may take to end, by signal.
PATIENCE: Tuple[Tuple[int, Optional[float]], ...] = (
    (signal.SIGINT, 30.0),
    (signal.SIGTERM, 10.0),
    (signal.SIGKILL, None),
)
# The variable that names the Python of drivers.
PYTHON = "AFAR_PYTHON"
# Bytes of standard error that an exception may show.
SHOWN = 4096
# Standard error may be kept open by what a program left behind.
LEFTOVER_S = 1.0

R = TypeVar("R", bound=Record)


class Call(Generic[R]):
    """What to run and what becomes of it. Nothing happens until somebody drives it."""

    def __init__(
        self,
        kind: Type[R],
        command: str,
        flags: List[str],
        operands: "List[str]",
        *,
        document: Optional[str] = None,
        captures: bool = True,
        check: bool = True,
        verbose: bool = False,
        cwd: Any = None,
        env: Optional[Mapping[str, str]] = None,
        time_limit: Optional[float] = None,
        attach: Optional[Mapping[str, str]] = None,
        records: Sequence[Any] = (),
        watcher: Optional[Watcher] = None,
    ) -> None:
        self.kind = kind
        self.command = command
        self.flags = flags
        self.operands = operands
        self.document = document
        self.captures = captures
        self.check = check
        self.verbose = verbose
        self.cwd = cwd
        self.env = env
        self.time_limit = time_limit
        self.attach = dict(attach or {})
        self.records = records
        self.watcher = watcher

    def words(self, home: str) -> List[str]:
        """The command line; files of this call alone are in ``home``."""
        json_flag = f"--json={os.path.join(home, 'record.json')}"
        words = [find_binary(), *self.command.split(), *self.flags, json_flag]
        if self.document is not None:
            path = os.path.join(home, "document.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.document)
            words.append(path)
        for number, record in enumerate(self.records):
            if isinstance(record, Record):
                path = os.path.join(home, f"{record.kind or 'record'}-{number}.json")
                record.save(path)
                words.append(path)
            else:
                words.append(os.fspath(record))
        return words + self.operands

    def result(self, home: str, words: List[str], status: int, said: str) -> R:
        """The record that was written, or the error that the exit status stands for."""
        record = self._record(home, status)
        if status == 0 and record is None:
            raise InternalError("afar wrote no record", status=125, command=words)
        if record is None or (self.check and status != 0 and not record.has_ended(status)):
            raise of_status(status)(said, status=status, command=words, record=record)
        return record

    def too_long(self) -> TimeoutError:
        """The error of a call that was ended at its time limit."""
        return TimeoutError(f"afar {self.command} took longer than {self.time_limit} s")

    def _record(self, home: str, status: int) -> Optional[R]:
        from .tables import Table

        path = os.path.join(home, "record.json")
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        except (OSError, ValueError):
            return None
        record = self.kind(document, exit_status=status)
        for name, parquet in self.attach.items():
            record.attachments[name] = Table(parquet=os.path.join(self.cwd or ".", parquet))
        if self.command == "run" and self.captures:
            with open(os.path.join(home, "stdout"), encoding="utf-8", errors="replace") as file:
                record.stdout = file.read()  # type: ignore[attr-defined]
        return record


class Running:
    """A process of a call, with what it writes to standard error."""

    def __init__(
        self, call: "Call[Any]", words: List[str], home: str, *, keeps: Sequence[int] = ()
    ) -> None:
        import subprocess

        stdout: "Optional[IO[bytes]]" = None
        if call.captures:
            stdout = open(os.path.join(home, "stdout"), "wb")
        try:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.PIPE,
                cwd=call.cwd,
                env=_environment(call),
                start_new_session=True,
                pass_fds=keeps,
            )
        finally:
            if stdout is not None:
                stdout.close()
        self._said = bytearray()
        self._watcher = call.watcher
        self._shows = call.verbose or call.command == "run"
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        begun = b""
        with self.process.stderr as pipe:
            while piece := os.read(pipe.fileno(), 65536):
                *whole, begun = (begun + piece).split(b"\n")
                for line in whole:
                    self._take(line + b"\n")
                # What has no end yet is shown, unless it is progress.
                if begun and not begun.startswith(_progress.MARK.encode()):
                    self._take(begun)
                    begun = b""
        if self._watcher is not None:
            self._watcher.close()

    def _take(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        if text.startswith(_progress.MARK):
            if self._watcher is not None:
                self._watcher.draw(text[1:].rstrip("\n"))
            return
        self._said += line
        del self._said[: -SHOWN * 4]
        if self._shows:
            sys.stderr.write(text)
            sys.stderr.flush()

    def said(self) -> str:
        """What afar wrote last: from the last line on that begins with its name."""
        self._reader.join(LEFTOVER_S)
        lines = self._said.decode(errors="replace").splitlines()
        last = max((at for at, line in enumerate(lines) if line.startswith("afar")), default=0)
        return "\n".join(lines[last:])[-SHOWN:]

    def stop(self) -> int:
        """Ends the process and all of its group; answers with its exit status."""
        import subprocess

        for number, patience in PATIENCE:
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                pass
            try:
                return self.process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
        return self.process.wait()

    def status(self) -> int:
        """The exit status as a shell has it."""
        status = self.process.wait()
        return status if status >= 0 else 128 - status


def _environment(call: "Call[Any]") -> Dict[str, str]:
    given = dict(os.environ if call.env is None else call.env)
    # With --on the program starts drivers of engines, which are in this Python.
    given.setdefault(PYTHON, sys.executable)
    if call.watcher is not None:
        given[_progress.VARIABLE] = "lines"
    return given


def drive(call: "Call[R]") -> R:
    """Runs a call to its end."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(prefix="afar-") as home:
        words = call.words(home)
        running = Running(call, words, home)
        try:
            running.process.wait(call.time_limit)
        except subprocess.TimeoutExpired:
            running.stop()
            raise call.too_long() from None
        except BaseException:
            running.stop()
            raise
        return call.result(home, words, running.status(), running.said())


def first_line(descriptor: int, patience: float) -> str:
    """The first line that comes through a pipe; empty if it was closed without one."""
    line = b""
    while not line.endswith(b"\n"):
        if not select.select([descriptor], [], [], patience)[0]:
            raise TimeoutError(f"the target was not ready after {patience:g} s")
        piece = os.read(descriptor, 4096)
        if not piece:
            break
        line += piece
    return line.decode()


def run_plainly(words: List[str], env: Optional[Dict[str, str]] = None) -> str:
    """What a short command prints; raises the error of its exit status."""
    import subprocess

    whole = [find_binary(), *words]
    done = subprocess.run(whole, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        status = done.returncode if done.returncode > 0 else 128 - done.returncode
        error: Type[AfarError] = of_status(status)
        raise error(done.stderr, status=status, command=whole)
    return done.stdout
