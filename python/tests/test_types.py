"""What a type checker says of the package and of code that uses it."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

import afar

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@pytest.fixture
def mypy(tmp_path):
    """Checks with the package alone: what is beside it may need a newer Python."""
    pytest.importorskip("mypy")
    alone = tmp_path / "alone"
    shutil.copytree(os.path.dirname(afar.__file__), alone / "afar")
    env = {**os.environ, "MYPYPATH": str(alone)}
    words = [sys.executable, "-m", "mypy", "--strict", "--python-version=3.9", "--no-site-packages"]

    def check(*further):
        return subprocess.run(
            [*words, *further], capture_output=True, text=True, check=False, cwd=HOME, env=env
        )

    return check


def test_the_package_has_its_types(mypy):
    done = mypy("-p", "afar")
    assert done.returncode == 0, done.stdout


def test_a_checker_knows_flags_and_results(mypy, tmp_path):
    source = tmp_path / "user.py"
    source.write_text(
        textwrap.dedent("""
        import afar
        from afar import aio

        run = afar.run(["true"], local=0.5, rtt="5us", capture=True)
        seconds: float = run.elapsed_s
        afar.sim(load=["40%", "80%"], check=False).to_pandas()
        afar.plan.latency(set={"sharing.load": "50%"})
        with afar.serve({"disk": "memory:1GiB"}, nvme="127.0.0.1:0") as target:
            afar.bench(target.uri(), depth=32)

        async def main() -> int:
            return (await aio.run(["true"])).fetches
    """)
    )
    done = mypy(str(source))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "line",
    [
        "afar.run(['true'], bandwith='1Gbps')",
        "afar.run(['true'], no_calibrate='yes')",
        "afar.sim(flows=object())",
        "afar.run(['true']).elapsed_s + 'x'",
    ],
)
def test_a_checker_finds_mistakes(mypy, tmp_path, line):
    source = tmp_path / "user.py"
    source.write_text(f"import afar\n{line}\n")
    done = mypy(str(source))
    assert done.returncode == 1, done.stdout
    assert "user.py:2" in done.stdout
