"""Functions of the package, with the real program."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import HOME

import afar
from afar import aio

SIGNAL_S = 20.0

# A simulation that takes long enough to show how it goes.
LONG = {"flows": 15000}
ENDLESS = {"duration": "3600s"}


def test_a_simulation_is_a_record_with_a_table(small):
    record = afar.sim(**small)
    assert record.schema.startswith("afar.sim/")
    assert record.valid
    assert record.exit_status == 0
    assert len(record.table()) > 0
    assert record["figures"]["slowdown"]["count"] > 0


def test_lists_make_a_run_of_each_combination(small, tmp_path):
    record = afar.sim(
        **small, transport=["dctcp", "ndp"], load=["40%", 0.8], output=tmp_path / "all"
    )
    assert [row["settings.transport"] for row in record.table()] == ["dctcp", "dctcp", "ndp", "ndp"]
    assert [row["settings.load"] for row in record.table()] == ["40%", "80%"] * 2


def test_settings_may_be_a_mapping(small):
    assert afar.sim(small).to_dict()["figures"] == afar.sim(**small).to_dict()["figures"]


def test_flows_are_a_table_of_a_parquet_file(small, tmp_path):
    record = afar.sim(**small, parquet=tmp_path / "flows.parquet")
    pytest.importorskip("pyarrow")
    flows = record.table("flows")
    assert len(flows) == small["flows"]
    assert flows.to_arrow().num_rows == small["flows"]


@pytest.mark.once
@pytest.mark.parametrize("name", ["cost", "latency", "place", "pool"])
def test_each_plan_has_a_table(name):
    flags = {"synthetic": 20} if name == "place" else {}
    record = getattr(afar.plan, name)(**flags)
    assert record.kind == f"afar.plan.{name}"
    assert len(record.table()) > 0


def test_a_plan_reads_a_file():
    example = HOME / "examples" / "plan" / "admit.toml"
    if not example.exists():
        pytest.skip("there are no examples beside this package")
    assert len(afar.plan.admit(example).table()) > 0


def test_a_plan_takes_a_mapping_and_settings():
    base = afar.plan.latency(set={"sharing.load": "50%"})
    assert base.table().rows() != afar.plan.latency().table().rows()


def test_a_wrong_value_is_a_usage_error_with_the_text_of_the_program(small):
    with pytest.raises(afar.UsageError) as caught:
        afar.sim(**small, load="x")
    assert caught.value.status == 2
    assert caught.value.exit_class == "usage"
    assert caught.value.text.startswith("afar sim")
    assert "load" in caught.value.text
    assert caught.value.command[1] == "sim"


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(afar.AfarError, match=r"no-such\.toml"):
        afar.sweep("no-such.toml")


def test_an_experiment_without_a_file_needs_a_directory():
    with pytest.raises(TypeError, match="output=DIR"):
        afar.sweep({"workload": {"command": ["true"]}})


def test_a_command_of_one_text_is_refused():
    with pytest.raises(TypeError, match="list of words"):
        afar.run("sort big.txt")


def test_a_report_takes_records_and_files(small, tmp_path):
    record = afar.sim(**small)
    page = tmp_path / "page.html"
    record.report(page)
    assert page.read_text().lstrip().lower().startswith("<!doctype html>")
    kept = tmp_path / "kept.json"
    record.save(kept)
    both = afar.report(record, kept)
    assert [section["kind"] for section in both["sections"]] == ["sim", "sim"]


def test_a_notebook_shows_words_and_pictures_without_a_script(small):
    shown = afar.sim(**small)._repr_html_()
    assert "<svg" in shown
    assert "takes" in shown
    assert "<script" not in shown
    assert "http-equiv" not in shown


def test_the_program_is_found_by_its_variable(monkeypatch):
    monkeypatch.setenv("AFAR_BINARY", "/nowhere/afar")
    with pytest.raises(afar.BinaryMissingError, match="/nowhere/afar"):
        afar.plan.latency()


def test_module_is_the_command_line():
    done = subprocess.run(
        [sys.executable, "-m", "afar", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("afar ")


def test_coroutines_run_side_by_side(small):
    async def both():
        return await asyncio.gather(aio.sim(**small, seed=1), aio.sim(**small, seed=2))

    first, second = asyncio.run(both())
    assert first["figures"] != second["figures"]
    assert first["figures"] == afar.sim(**small, seed=1)["figures"]


def test_a_cancelled_task_ends_its_command():
    async def cancelled():
        task = asyncio.ensure_future(aio.bench("null:", **ENDLESS))
        assert await asyncio.to_thread(wait_for_child)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert children() == []


def test_a_call_that_takes_too_long_is_ended():
    with pytest.raises(TimeoutError, match=r"longer than 0\.5 s"):
        afar.bench("null:", time_limit=0.5, **ENDLESS)
    assert children() == []


def test_ctrl_c_ends_the_command_and_is_raised():
    def interrupt():
        if wait_for_child():
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        afar.bench("null:", **ENDLESS)
    thread.join()
    assert children() == []


def test_progress_goes_to_a_function_and_is_no_part_of_errors():
    texts = []
    record = afar.sim(**LONG, progress=texts.append)
    assert record.valid
    assert texts, "a simulation of this length shows its progress"
    assert not [text for text in texts if "\x1e" in text or "\n" in text]
    with pytest.raises(afar.UsageError) as caught:
        afar.sim(load="x", progress=texts.append)
    assert "\x1e" not in caught.value.text


def test_progress_is_drawn_over_itself_in_a_terminal():
    code = f"import afar; afar.sim(**{LONG!r})"
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", code], stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert child.wait() == 0
    assert shown.count(b"\r\x1b[K") > 1
    assert b"\x1e" not in shown
    assert shown.endswith(b"\r\x1b[K")


def test_a_target_serves_inside_its_block():
    with afar.serve({"disk": "memory:16MiB"}, nvme="127.0.0.1:0", metrics="127.0.0.1:0") as target:
        uri = target.uri()
        assert uri == target.uri("disk")
        record = afar.bench(uri, requests=100)
        assert record["jobs"][0]["read"]["total_ios"] == 100
        assert sum(target.metrics().values()) > 0
        with pytest.raises(KeyError, match="serves disk"):
            target.uri("other")
        pid = target.pid
    assert not os.path.exists(f"/proc/{pid}")


def test_a_target_that_cannot_serve_says_why():
    with pytest.raises(afar.AfarError, match="no-such-file"):
        with afar.serve({"disk": "file:/no-such-file"}, nvme="127.0.0.1:0"):
            pass
    assert children() == []


def test_a_program_runs_with_memory_far_away(root, tmp_path):
    faults = tmp_path / "faults.parquet"
    words = [afar.find_binary(), "workload", "sort", "--size", "16MiB"]
    run = afar.run(words, local="25%", of="16MiB", rtt="20us", record=faults, capture=True)
    assert run.valid
    assert run.exit_status == 0
    assert run.fetches > 0
    assert run.elapsed_s > 0
    assert run.stdout.startswith("sort:")
    if pytest.importorskip("pyarrow"):
        assert run.faults.to_arrow().num_rows >= run.fetches


@pytest.mark.once
def test_the_status_of_a_program_is_its_own(root):
    for status in (1, 4, 7, 125):
        assert afar.run(["sh", "-c", f"exit {status}"]).exit_status == status
    assert afar.run(["sh", "-c", "kill -TERM $$"]).exit_status == 128 + signal.SIGTERM


@pytest.mark.once
def test_a_run_that_proves_nothing_is_an_error_with_its_record(root):
    shared = (
        "import mmap; m = mmap.mmap(-1, 64 << 20)\nfor at in range(0, 64 << 20, 4096): m[at] = 1"
    )
    with pytest.raises(afar.InvalidError) as caught:
        afar.run(["/usr/bin/python3", "-c", shared], local="25%")
    record = caught.value.record
    assert caught.value.status == 4
    assert not record.valid
    assert record.invalid
    allowed = afar.run(["/usr/bin/python3", "-c", shared], local="25%", allow_unmanaged=True)
    assert allowed.exit_status == 0


def test_a_gate_that_does_not_pass_is_an_error_of_its_own():
    assert afar.errors.of_status(5) is afar.AboveError
    assert afar.errors.of_status(6) is afar.UndecidedError


def test_a_program_that_is_not_there_is_no_run(root):
    with pytest.raises(afar.ProgramMissingError, match="no-such-program"):
        afar.run(["no-such-program"])


@pytest.mark.once
def test_simulations_plans_and_reports_need_no_rights(root, tmp_path):
    code = (
        "import os, afar; assert os.geteuid() == 65534;"
        "r = afar.sim(racks=2, hosts_per_rack=4, spines=2, flows=50);"
        "afar.plan.latency(); print(afar.report(r)['sections'][0]['kind'])"
    )
    words = [sys.executable, "-c", code]
    env = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "AFAR_BINARY": afar.find_binary()}
    user = {"user": 65534, "group": 65534, "extra_groups": []}
    try:
        subprocess.run([sys.executable, "-c", "pass"], check=True, cwd="/", **user)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("other users cannot execute this Python")
    done = subprocess.run(
        words, env=env, cwd="/", capture_output=True, text=True, check=False, **user
    )
    assert done.stdout == "sim\n", done.stderr


def test_import_takes_no_heavy_module():
    code = (
        "import sys, afar; "
        "print([m for m in ('asyncio', 'subprocess', 'ssl', 'pandas', 'pyarrow', 'polars', 'numpy')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=path_env(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_names_that_are_promised_are_there():
    assert [name for name in afar.__all__ if not hasattr(afar, name)] == []
    for name in ("run", "sweep", "sim", "loop", "bench", "predict", "report", "plan"):
        assert getattr(aio, name).__doc__ == getattr(afar, name).__doc__


def path_env():
    return {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(afar.__file__))}


def children():
    """The processes named afar that this one has started and that have not ended."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as file:
                left, _, right = file.read().rpartition(")")
        except (OSError, ValueError):
            continue
        state, parent = right.split()[:2]
        if left.endswith("(afar") and int(parent) == os.getpid() and state != "Z":
            found.append(int(name))
    return found


def wait_for_child():
    end = time.monotonic() + SIGNAL_S
    while not any(handles_sigint(child) for child in children()):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def handles_sigint(pid):
    """Whether a process has said what to do about Ctrl-C."""
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    caught = int(fields["SigCgt"], 16) | int(fields["SigBlk"], 16)
    return bool(caught >> (signal.SIGINT - 1) & 1)
