"""Sweeps on engines, with the real program: whoever runs a point, it is the same point."""

import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import time

import pytest
from engines import COUNT, POINTS, Sweep, began, descendants, results, runs

import afar

# As many as an engine of a few lines does in a moment.
FEW = {**POINTS, "flows": 30, "seed": [1, 2]}


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """What 200 points come to on this machine."""
    directory = tmp_path_factory.mktemp("local") / "points"
    Sweep(directory, "local").end()
    assert len(runs(directory)) == COUNT
    return results(directory)


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """What a few points come to."""
    directory = tmp_path_factory.mktemp("few") / "points"
    Sweep(directory, "local", FEW).end()
    return results(directory)


@pytest.fixture
def dask():
    """Skips where Dask is not installed."""
    pytest.importorskip("distributed")


def test_dask_gives_the_bytes_of_this_machine(dask, local, tmp_path):
    Sweep(tmp_path / "points", "dask").end()
    assert results(tmp_path / "points") == local
    assert all(len(times) == 1 for times in began(tmp_path / "points").values())


def test_killed_workers_and_lost_drivers_do_no_harm(dask, local, tmp_path):
    directory = tmp_path / "points"
    snapshots = []

    def kept(found):
        # Nothing that is there begins again.
        snapshots.append((time.time_ns(), found))

    sweep = Sweep(directory, "dask")
    sweep.wait_for(20)
    # Whoever does the work now: the parent of some `afar point`.
    workers = [pid for pid, words in descendants(sweep.process.pid).items() if b"point" in words]
    while not workers:
        workers = [
            pid for pid, words in descendants(sweep.process.pid).items() if b"point" in words
        ]
    with open(f"/proc/{random.choice(workers)}/stat", encoding="utf-8") as file:
        worker = int(file.read().rpartition(")")[2].split()[1])
    os.kill(worker, signal.SIGKILL)
    sweep.wait_for(50)
    kept(sweep.interrupt())
    assert 50 <= len(snapshots[-1][1]) < COUNT

    sweep = Sweep(directory, "dask")
    sweep.wait_for(len(snapshots[-1][1]) + 30)
    kept(sweep.interrupt())
    assert len(snapshots[-1][1]) < COUNT

    # A driver that is lost without a word.
    sweep = Sweep(directory, "dask")
    sweep.wait_for(len(snapshots[-1][1]) + 20)
    driver = next(
        pid for pid, words in descendants(sweep.process.pid).items() if b"afar._engines" in words
    )
    os.kill(driver, signal.SIGKILL)
    assert "the driver of the engine ended with signal: 9" in sweep.end(1)
    kept(runs(directory))
    assert len(snapshots[-1][1]) < COUNT

    # Another engine goes on.
    Sweep(directory, "local").end()
    assert results(directory) == local
    times = began(directory)
    for at, found in snapshots:
        for name, text in found.items():
            assert runs(directory)[name] == text
            again = [begun for begun in times[name[: -len(".json")]] if begun > at]
            assert not again, f"{name} was there and ran again"
    # And a directory with everything in it starts nothing.
    count = sum(map(len, times.values()))
    Sweep(directory, "dask").end()
    assert sum(map(len, began(directory).values())) == count


def test_a_scheduler_that_is_there_is_used(dask, few, tmp_path):
    import distributed

    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        Sweep(tmp_path / "points", f"dask:{cluster.scheduler_address}", FEW).end()
        assert results(tmp_path / "points") == few
        # Its workers have not said that they may measure.
        with pytest.raises(afar.MachineError, match="resources afar=1"):
            afar.sweep(
                {"workload": {"command": ["true"]}, "matrix": {"rtt": ["1us"]}},
                output=tmp_path / "measured",
                on=f"dask:{cluster.scheduler_address}",
            )


def test_python_names_the_engine(dask, tmp_path):
    settings = {**FEW, "load": ["30%"], "seed": [1, 2, 3]}
    here = afar.sim(settings, output=tmp_path / "here")
    there = afar.sim(settings, output=tmp_path / "there", on="dask", threads=1)
    assert here.to_dict() == there.to_dict()
    with pytest.raises(afar.UsageError, match="give lists"):
        afar.sim(flows=10, on="dask")


def program(home, name, text):
    """A program of a few lines, on PATH."""
    path = home / name
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(text)}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def slurm(home):
    """Slurm as far as a driver sees it: arrays run one job after another, and it loses some."""
    program(
        home,
        "sbatch",
        f"""
        import os, subprocess, sys, time
        home, script = {str(home)!r}, sys.argv[-1]
        flags = dict(word.split("=", 1) for word in sys.argv[1:-1] if "=" in word)
        last = int(flags["--array"].split("%")[0].split("-")[1])
        job = 1 + len(os.listdir(os.path.join(home, "jobs")))
        # Of the first array every third job is lost.
        lost = range(0, last + 1, 3) if job == 1 else ()
        open(os.path.join(home, "jobs", str(job)), "w").close()
        queued, starts = os.pipe()
        if os.fork():
            # What is queued can be cancelled, also while its number is on its way.
            os.read(queued, 1)
            time.sleep(float(os.environ.get("SBATCH_TAKES_S", 0)))
            print(job, flush=True)
            sys.exit()
        os.setsid()
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        with open(os.path.join(home, "jobs", str(job)), "w") as file:
            file.write(str(os.getpid()))
        os.write(starts, b".")
        for index in range(last + 1):
            if index not in lost:
                out = flags["--output"].replace("%A", str(job)).replace("%a", str(index))
                subprocess.run(
                    ["sh", script],
                    env={{**os.environ, "SLURM_ARRAY_TASK_ID": str(index)}},
                    cwd=flags["--chdir"], stdout=open(out, "w"), stderr=subprocess.STDOUT,
                )
        os.unlink(os.path.join(home, "jobs", str(job)))
        open(os.path.join(home, "jobs", f"{{job}}-done"), "w").close()
        """,
    )
    program(
        home,
        "squeue",
        f"""
        import os
        for job in os.listdir(os.path.join({str(home)!r}, "jobs")):
            if not job.endswith("-done"):
                print("\\n".join(f"{{job}}_{{index}}" for index in range(1000)))
        """,
    )
    program(
        home,
        "scancel",
        f"""
        import os, signal, sys
        for job in sys.argv[1:]:
            try:
                with open(os.path.join({str(home)!r}, "jobs", job)) as file:
                    os.killpg(int(file.read()), signal.SIGKILL)
            except (OSError, ValueError):
                continue
            os.rename(
                os.path.join({str(home)!r}, "jobs", job),
                os.path.join({str(home)!r}, "jobs", job + "-done"),
            )
        """,
    )
    (home / "jobs").mkdir()
    return {"PATH": f"{home}:{os.environ['PATH']}"}


def test_slurm_gives_the_bytes_of_this_machine_though_it_loses_jobs(few, tmp_path):
    home = tmp_path / "slurm"
    home.mkdir()
    Sweep(tmp_path / "points", "slurm", FEW, slurm(home)).end()
    assert results(tmp_path / "points") == few
    assert all(len(times) == 1 for times in began(tmp_path / "points").values())
    arrays = list((tmp_path / "points" / "log").glob("slurm-*.txt"))
    assert len(arrays) > 1, "what was lost is an array again"


@pytest.mark.once
def test_slurm_is_asked_to_end_what_was_interrupted(tmp_path, local):
    home = tmp_path / "slurm"
    home.mkdir()
    sweep = Sweep(tmp_path / "points", "slurm", env=slurm(home))
    sweep.wait_for(10)
    found = sweep.interrupt()
    assert all(name.name.endswith("-done") for name in (home / "jobs").iterdir())
    time.sleep(1)
    assert len(runs(tmp_path / "points")) <= len(found) + 1, "its jobs go on"
    Sweep(tmp_path / "points", "local").end()
    assert results(tmp_path / "points") == local


@pytest.mark.once
def test_what_is_interrupted_while_slurm_takes_an_array_is_cancelled_too(tmp_path):
    home = tmp_path / "slurm"
    home.mkdir()
    sweep = Sweep(tmp_path / "points", "slurm", env={**slurm(home), "SBATCH_TAKES_S": "3"})
    # The first array runs; its number is still on its way.
    sweep.wait_for(1)
    sweep.interrupt()
    jobs = [job.name for job in (home / "jobs").iterdir()]
    assert jobs == ["1-done"]


RAY = """
import concurrent.futures as futures

def init(**options):
    global pool
    pool = futures.ThreadPoolExecutor(options.get("num_cpus") or 2)

def cluster_resources():
    return {"CPU": 2.0}

def lost():
    raise RuntimeError("the node is gone")

class Remote:
    count = 0

    def __init__(self, function):
        self.function = function

    def remote(self, *words):
        Remote.count += 1
        # Every fourth task is lost.
        return pool.submit(lost) if Remote.count % 4 == 0 else pool.submit(self.function, *words)

def remote(**options):
    assert options["num_cpus"] == 1
    return Remote

def wait(tasks, num_returns, timeout):
    done, others = futures.wait(tasks, timeout, futures.FIRST_COMPLETED)
    return list(done), list(others)

def get(task):
    return task.result()

def cancel(task, force):
    task.cancel()

def shutdown():
    pool.shutdown()
"""


def test_ray_gives_the_bytes_of_this_machine_though_it_loses_tasks(few, tmp_path):
    (tmp_path / "ray.py").write_text(RAY)
    path = os.pathsep.join([str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    Sweep(tmp_path / "points", "ray", FEW, {"PYTHONPATH": path}).end()
    assert results(tmp_path / "points") == few
    assert all(len(times) == 1 for times in began(tmp_path / "points").values())


def test_what_is_missing_is_named(tmp_path):
    for library in ("distributed", "ray"):
        (tmp_path / f"{library}.py").write_text(f"raise ImportError('no {library} here')")
    path = os.pathsep.join([str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    for engine, remedy in [("dask", "pip install 'dask"), ("ray", "pip install ray")]:
        said = Sweep(tmp_path / engine, engine, FEW, {"PYTHONPATH": path}).end(3)
        assert remedy in said, said
    said = Sweep(tmp_path / "slurm", "slurm", FEW, {"PATH": "/nowhere"}).end(3)
    assert "--on slurm needs sbatch on PATH" in said
    said = Sweep(tmp_path / "nobody", "dask", FEW, {"AFAR_PYTHON": "/nowhere/python"}).end(3)
    assert "pip install afar" in said
    said = Sweep(tmp_path / "wrong", "dask:tcp://127.0.0.1:1", FEW).end(3)
    assert "is the scheduler there?" in said or "pip install" in said, said


@pytest.mark.once
def test_a_point_that_cannot_be_is_given_up(tmp_path):
    """A machine on which every task fails ends the sweep, with its reason."""
    home = tmp_path / "slurm"
    home.mkdir()
    env = slurm(home)
    program(
        home,
        "sh",
        """
        import sys
        sys.stderr.write("no memory left")
        sys.exit(1)
        """,
    )
    # Each attempt at each point starts a Python.
    two = {**FEW, "transport": ["dctcp"], "load": ["30%"]}
    said = Sweep(tmp_path / "points", "slurm", two, env).end(1)
    assert "was given up after 4 attempts: no memory left" in said, said


MEASURED = {
    **{"repetitions": 2, "attempts": 1, "stolen_max": "100%", "others_max": "100%"},
    "workload": {
        "command": ["sh", "-c", "head -c 12000000 /dev/zero | tail -c 12000000 >/dev/null"]
    },
    "matrix": {"local": ["50%"]},
}


def test_measured_points_run_one_at_a_time_and_say_on_what(dask, root, tmp_path):
    found = afar.sweep(MEASURED, output=tmp_path / "measured", on="dask")
    kinds = {row["kind"]: row["slowdown.count"] for row in found.table()}
    assert kinds["zero"] == kinds["far"] == MEASURED["repetitions"]
    # One after another: a run ends before the next one begins.
    at = sorted(
        (time, event)
        for log in (tmp_path / "measured" / "log").glob("*.jsonl")
        for event, time in events(log)
    )
    assert [event for _time, event in at] == ["began", "ended"] * (len(at) // 2)
    again = afar.sweep(MEASURED, output=tmp_path / "measured")
    assert again["cells"] == found["cells"], "nothing is left to be run"


def events(log):
    """What happened, and when."""
    import json

    for line in log.read_text().splitlines():
        entry = json.loads(line)
        yield entry["event"], entry["at_unix_ns"]


def test_a_machine_on_which_somebody_measures_is_refused(dask, root, tmp_path):
    lock = os.path.join(os.environ["AFAR_LOCK_DIR"], "afar-measures")
    with open(lock, "w", encoding="utf-8") as file:
        file.write("process 1 (afar sweep theirs.toml)\n")
    holder = subprocess.Popen([shutil.which("flock"), lock, "sleep", "600"], start_new_session=True)
    try:
        while subprocess.run(["flock", "--nonblock", lock, "true"], check=False).returncode == 0:
            time.sleep(0.01)
        for engine in ("local", "dask"):
            with pytest.raises(afar.AfarError, match=r"process 1 \(afar sweep theirs.toml\)"):
                afar.sweep(MEASURED, output=tmp_path / "refused", on=engine)
        assert not runs(tmp_path / "refused")
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()
