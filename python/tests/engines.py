"""What tests of engines share."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import afar

# 200 points, none of them long.
POINTS = {
    **{"racks": 2, "hosts_per_rack": 4, "spines": 2, "flows": 120},
    "transport": ["dctcp", "ndp"],
    "load": [f"{load}%" for load in range(30, 80, 5)],
    "seed": list(range(10)),
}
COUNT = 200
LIMIT_S = 500.0


def runs(directory):
    """Every run that is there, by name."""
    files = (pathlib.Path(directory) / "runs").glob("[!.]*.json")
    return {each.name: each.read_bytes() for each in files}


def began(directory):
    """When each run began, by its ID."""
    found = {}
    for log in (pathlib.Path(directory) / "log").glob("*.jsonl"):
        for line in log.read_text().splitlines():
            # Whoever was killed may have left half a line.
            if line.endswith("}"):
                entry = json.loads(line)
                if entry["event"] == "began":
                    found.setdefault(entry["id"], []).append(entry["at_unix_ns"])
    return found


def results(directory):
    """What a sweep leaves when it has ended."""
    home = pathlib.Path(directory)
    tables = [(home / name).read_bytes() for name in ("table.csv", "slowdown.svg")]
    return runs(directory), tables


class Sweep:
    """A sweep in a process of its own."""

    def __init__(self, directory, engine, settings=None, env=None):
        self.directory = pathlib.Path(directory)
        file = self.directory.with_suffix(".toml")
        lines = (f"{key} = {json.dumps(value)}\n" for key, value in (settings or POINTS).items())
        file.write_text("".join(lines))
        words = [afar.find_binary(), "sim", str(file), "-o", str(directory), "--quiet"]
        self.process = subprocess.Popen(
            [*words, "--on", engine, "--threads", "2"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "AFAR_PYTHON": sys.executable, **(env or {})},
        )

    def wait_for(self, count):
        """Until so many runs are there, while it goes on."""
        end = time.monotonic() + LIMIT_S
        while len(runs(self.directory)) < count:
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < end, "no progress"
            time.sleep(0.02)

    def interrupt(self):
        """A Ctrl-C, which it says to have got; the names of the runs that are there then."""
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=LIMIT_S)[1]
        assert self.process.returncode == 130, said
        assert "the same command goes on from there" in said
        return runs(self.directory)

    def end(self, status=0):
        """What it says when it has ended."""
        said = self.process.communicate(timeout=LIMIT_S)[1]
        assert self.process.returncode == status, said
        return said


def descendants(pid):
    """Processes that a process has started, and those that these have, with their words."""
    parents, words = {}, {}
    for each in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (each / "stat").read_text()
            words[int(each.name)] = (each / "cmdline").read_bytes().split(b"\0")
            parents[int(each.name)] = int(stat.rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found, fresh = {}, {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh}
        found.update({child: words[child] for child in fresh})
    return found
