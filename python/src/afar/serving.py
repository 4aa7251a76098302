"""A target that serves disks while a block of Python runs."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Union

from . import _process
from ._arguments import words
from ._binary import find_binary
from ._process import Call, Running, run_plainly
from .errors import FailedError, of_status
from .records import Record

if TYPE_CHECKING:
    import tempfile
    from types import TracebackType
    from typing import Type

    from typing_extensions import Unpack

    from . import _flag_types

__all__ = ["Target", "serve"]

# How long a target may take until hosts can connect.
READY_S = 60.0


class Target:
    """``afar serve`` as a context manager: hosts can connect inside the block.

    Leaving the block ends what is under way and stops the target.
    """

    def __init__(
        self,
        disks: "Union[str, os.PathLike[str], Mapping[str, str]]",
        flags: "Mapping[str, Any]",
        *,
        verbose: bool = False,
    ) -> None:
        if isinstance(disks, Mapping):
            operands = [f"{name}={uri}" for name, uri in disks.items()]
        else:
            operands = [os.fspath(disks)]
        quiet = [] if verbose else ["--quiet"]
        self._words = ["serve", *words("serve", flags), *quiet, *operands]
        self._verbose = verbose
        self._running: Optional[Running] = None
        self._home: "Optional[tempfile.TemporaryDirectory[str]]" = None
        self._ready: Dict[str, Any] = {}

    def __enter__(self) -> "Target":
        self.start()
        return self

    def __exit__(
        self,
        kind: "Optional[Type[BaseException]]",
        error: Optional[BaseException],
        trace: "Optional[TracebackType]",
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the target, and returns once hosts can connect."""
        if self._running is not None:
            raise RuntimeError("this target serves already")
        import tempfile

        binary = find_binary()
        self._home = tempfile.TemporaryDirectory(prefix="afar-")
        reading, writing = os.pipe()
        call: "Call[Record]" = Call(Record, "serve", [], [], verbose=self._verbose)
        whole = [binary, *self._words, f"--ready-fd={writing}"]
        try:
            self._running = Running(call, whole, self._home.name, keeps=(writing,))
        finally:
            os.close(writing)
            if self._running is None:
                os.close(reading)
        try:
            line = _process.first_line(reading, READY_S)
        except BaseException:
            self.stop()
            raise
        finally:
            os.close(reading)
        if not line:
            self._raise_why(whole)
        self._ready = json.loads(line)

    def _raise_why(self, whole: List[str]) -> None:
        assert self._running is not None
        running = self._running
        self.stop()
        said, status = running.said(), running.status()
        if status == 0:
            raise FailedError(
                "the target ended before hosts could connect", status=1, command=whole
            )
        raise of_status(status)(said, status=status, command=whole)

    def stop(self) -> None:
        """Ends what is under way and stops the target, if it serves."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()
        if self._home is not None:
            self._home.cleanup()
            self._home = None

    @property
    def pid(self) -> int:
        """The process of the target."""
        if self._running is None:
            raise RuntimeError("this target does not serve")
        return self._running.process.pid

    @property
    def nvme(self) -> List[str]:
        """Where NVMe/TCP hosts connect, as ADDRESS:PORT."""
        return list(self._ready.get("nvme", []))

    @property
    def iscsi(self) -> List[str]:
        """Where iSCSI initiators connect, as ADDRESS:PORT."""
        return list(self._ready.get("iscsi", []))

    @property
    def metrics_address(self) -> Optional[str]:
        """Where metrics are read, as ADDRESS:PORT, with ``metrics=``."""
        return self._ready.get("metrics")

    def uri(self, disk: Optional[str] = None) -> str:
        """The URI of a disk for ``afar.bench`` and ``afar.run(far=)``, over NVMe/TCP.

        Raises KeyError, with the names there are.
        """
        if not self.nvme:
            raise KeyError("this target has no address of NVMe/TCP")
        found = json.loads(run_plainly(["discover", "--json", "-", self.nvme[0]]))
        nqns = [
            entry["subsystem"] for entry in found["entries"] if entry["kind"] == "nvm subsystem"
        ]
        names = {nqn.rpartition(":")[2]: nqn for nqn in nqns}
        if disk is None and len(names) == 1:
            disk = next(iter(names))
        nqn = disk if disk in names.values() else names.get(disk or "")
        if nqn is None:
            raise KeyError(f"{disk}: this target serves {', '.join(names)}")
        return f"nvme+tcp://{self.nvme[0]}/{nqn}"

    def metrics(self) -> Dict[str, float]:
        """What has been done, by name and labels as Prometheus has them."""
        if self.metrics_address is None:
            raise RuntimeError("this target was started without metrics='127.0.0.1:0'")
        import urllib.request

        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics") as answer:
            text = answer.read().decode()
        pairs = (line.rpartition(" ") for line in text.splitlines() if line[:1] not in ("", "#"))
        return {name: float(value) for name, _, value in pairs}

    def __repr__(self) -> str:
        state = "stopped" if self._running is None else f"at {', '.join(self.nvme + self.iscsi)}"
        return f"<afar target, {state}>"


def serve(
    disks: "Union[str, os.PathLike[str], Mapping[str, str]]",
    *,
    verbose: bool = False,
    **flags: "Unpack[_flag_types.ServeFlags]",
) -> Target:
    """Serves disks to other machines while a block runs: ``afar serve``.

    ``with afar.serve({"disk": "memory:1GiB"}, nvme="127.0.0.1:0") as target: ...``; or a TOML file
    in place of the mapping. Port 0 takes a free one, which ``target.nvme`` has.
    """
    return Target(disks, flags, verbose=verbose)
