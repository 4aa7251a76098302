"""Slurm: job arrays, several points to a job, watched by what they leave."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from typing import Dict, List, Optional, Set

from ._driver import LACKS, Ended, EngineError, uninterrupted
from ._plan import Ids, Plan

# Seconds between two looks at results, and at the queue.
LOOK_S = 1.0
QUEUE_S = 5.0
# Jobs of one array at most: Slurm starts some each second, and refuses more than a thousand.
JOBS = 64

SCRIPT = """#!/bin/sh
ids=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" {tasks})
exec {afar} point {directory} $ids
"""


class Slurm:
    """A task is a job of an array. A job that has left the queue without a result was lost."""

    def __init__(self, plan: Plan, at: Optional[str], jobs: Optional[int]) -> None:
        lacking = [each for each in ("sbatch", "squeue", "scancel") if shutil.which(each) is None]
        if lacking:
            raise EngineError(
                f"--on slurm needs {lacking[0]} on PATH: run it where Slurm is installed", LACKS
            )
        self._plan = plan
        self._partition = at
        self._limit = jobs
        self.processors = JOBS // 8
        self.window = JOBS
        self._fresh: List[Ids] = []
        self._jobs: Dict[str, Ids] = {}
        self._arrays: List[str] = []
        self._looked = 0.0

    def submit(self, ids: Ids) -> None:
        """Hands out a task; those of one moment become one array."""
        self._fresh.append(ids)

    def ended(self) -> List[Ended]:
        """Waits a moment for results, and sees which jobs are gone."""
        if self._fresh:
            self._array()
        time.sleep(LOOK_S)
        done = [job for job, ids in self._jobs.items() if not self._plan.left(ids)]
        if not done and time.monotonic() - self._looked > QUEUE_S:
            self._looked = time.monotonic()
            queued = self._queue()
            if queued is not None:
                done = [job for job in self._jobs if job not in queued]
        return [Ended(self._jobs.pop(job), self._said(job)) for job in done]

    def _array(self) -> None:
        plan, fresh = self._plan, self._fresh
        self._fresh = []
        number = f"{os.getpid()}-{len(self._arrays)}"
        tasks, script = plan.log(f"slurm-{number}.txt"), plan.log(f"slurm-{number}.sh")
        with open(tasks, "w", encoding="utf-8") as file:
            file.writelines(" ".join(ids) + "\n" for ids in fresh)
        words = {"tasks": tasks, "afar": plan.afar, "directory": plan.directory}
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT.format(**{key: shlex.quote(word) for key, word in words.items()}))
        limit = f"%{self._limit}" if self._limit else ""
        command = [
            *("sbatch", "--parsable", "--job-name=afar", f"--chdir={plan.cwd}"),
            f"--array=0-{len(fresh) - 1}{limit}",
            f"--output={plan.log('slurm-%A_%a.out')}",
        ]
        if plan.measured:
            # Nobody else on the machine, and one of ours.
            command.append("--exclusive")
        if self._partition:
            command.append(f"--partition={self._partition}")
        # Whoever ends us now would leave an array that nobody knows, and that nobody cancels.
        with uninterrupted():
            array = self._sbatch([*command, script])
            self._arrays.append(array)
            self._jobs.update({f"{array}_{index}": ids for index, ids in enumerate(fresh)})
        self._looked = time.monotonic()

    def _sbatch(self, command: List[str]) -> str:
        # A session of its own: a Ctrl-C of the terminal ends no submission half-way.
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, start_new_session=True
        )
        if done.returncode:
            raise EngineError(f"sbatch: {done.stderr.strip()}", LACKS)
        return done.stdout.strip().split(";")[0]

    def _queue(self) -> Optional[Set[str]]:
        """The jobs that wait or run; nothing if Slurm does not answer."""
        command = ["squeue", "--noheader", "--array", "--format=%F_%K", "--job"]
        done = subprocess.run(
            [*command, ",".join(self._arrays)], capture_output=True, text=True, check=False
        )
        # Of arrays that it has forgotten it says that they are invalid: none of them is queued.
        forgotten = "Invalid job id" in done.stderr
        return set(done.stdout.split()) if done.returncode == 0 or forgotten else None

    def _said(self, job: str) -> str:
        try:
            with open(self._plan.log(f"slurm-{job}.out"), encoding="utf-8") as file:
                return file.read()[-2000:].strip()
        except OSError:
            return ""

    def __enter__(self) -> "Slurm":
        return self

    def __exit__(self, *_error: object) -> None:
        if self._jobs:
            with uninterrupted():
                command = ["scancel", *self._arrays]
                subprocess.run(command, capture_output=True, check=False, start_new_session=True)
