"""What is to be run, and what has been."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Dict, List, Sequence, Tuple

# Points of one task at most, and tasks for each processor: starting one costs some milliseconds,
# and what a machine loses that dies is part of one.
PACK = 32
TASKS_EACH = 8
# The last words of a command that failed.
SAID = 2000

Ids = Tuple[str, ...]


class Plan:
    """The directory of a sweep."""

    def __init__(self, directory: str, afar: str, *, measured: bool = False) -> None:
        self.directory = os.path.abspath(directory)
        self.afar = afar
        self.measured = measured
        self.cwd = os.getcwd()
        with open(os.path.join(self.directory, "points.jsonl"), encoding="utf-8") as file:
            points = [json.loads(line) for line in file]
        self._ids: List[str] = [point["id"] for point in points]
        self._blocks: Dict[str, int] = {point["id"]: point["block"] for point in points}

    def missing(self) -> List[str]:
        """The points that have no result, in the order of the plan."""
        return self.left(self._ids)

    def left(self, ids: Sequence[str]) -> List[str]:
        """Those of some points that have no result."""
        runs = os.path.join(self.directory, "runs")
        # One look at a directory tells more than many at its files.
        done = set(os.listdir(runs)) if len(ids) > PACK else None
        if done is not None:
            return [each for each in ids if f"{each}.json" not in done]
        return [each for each in ids if not os.path.exists(os.path.join(runs, f"{each}.json"))]

    def tasks(self, processors: int) -> List[Ids]:
        """What is missing as tasks: blocks where runs are measured, else packs of points."""
        ids = self.missing()
        if self.measured:
            blocks: Dict[int, List[str]] = {}
            for each in ids:
                blocks.setdefault(self._blocks[each], []).append(each)
            return [tuple(blocks[number]) for number in sorted(blocks)]
        size = min(PACK, max(1, len(ids) // (max(1, processors) * TASKS_EACH)))
        return [tuple(ids[at : at + size]) for at in range(0, len(ids), size)]

    def log(self, name: str) -> str:
        """The path of a file that nobody reads but people."""
        home = os.path.join(self.directory, "log")
        os.makedirs(home, exist_ok=True)
        return os.path.join(home, name)


def run(afar: str, directory: str, cwd: str, ids: Ids) -> Tuple[int, str]:
    """Runs points on this machine; answers with the exit status and what the command said."""
    program = afar
    if not os.access(program, os.X_OK):
        from afar._binary import find_binary

        program = find_binary()
    done = subprocess.run(
        [program, "point", directory, *ids],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    return done.returncode, done.stderr.decode(errors="replace")[-SAID:].strip()
