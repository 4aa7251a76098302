"""What tests of the package share."""

import os
import pathlib
import signal

import pytest

HOME = pathlib.Path(__file__).resolve().parent.parent.parent

SMALL = {"racks": 2, "hosts_per_rack": 4, "spines": 2, "flows": 50}


@pytest.fixture(autouse=True, scope="session")
def interruptible():
    """Ctrl-C counts, though whoever started the tests in the background had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="session")
def alone(tmp_path_factory):
    """Tests measure nothing, and hinder nobody who does."""
    os.environ["AFAR_LOCK_DIR"] = str(tmp_path_factory.mktemp("lock"))
    yield
    del os.environ["AFAR_LOCK_DIR"]


@pytest.fixture
def small():
    """Settings of a simulation that ends at once."""
    return dict(SMALL)


@pytest.fixture
def goldens():
    """The record of each kind that the program's own tests hold."""
    found = sorted(HOME.glob("crates/*/tests/golden/*.json"))
    if not found:
        pytest.skip("there are no golden records beside this package")
    return found


@pytest.fixture
def root():
    """Skips without the rights that managing a program needs."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
