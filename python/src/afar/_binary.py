"""Where the program is that this package runs."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from typing import Iterator

from .errors import BinaryMissingError

VARIABLE = "AFAR_BINARY"


def find_binary() -> str:
    """The path of ``afar``: of the variable AFAR_BINARY, of this installation, or on PATH.

    Raises BinaryMissingError, with the places that were tried.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if _is_program(named):
            return named
        raise BinaryMissingError(f"{VARIABLE} is {named}, which is no program that can be executed")
    tried = list(_places())
    for place in tried:
        if _is_program(place):
            return place
    found = shutil.which("afar")
    if found:
        return found
    raise BinaryMissingError(
        f"there is no program afar in {', '.join(tried)} nor on PATH;"
        f" install the wheel afar, or set {VARIABLE} to the path of the program"
    )


def _places() -> Iterator[str]:
    """Where installers put scripts of this package."""
    yield os.path.join(sysconfig.get_path("scripts"), "afar")
    user = "osx_framework_user" if sys.platform == "darwin" else "posix_user"
    yield os.path.join(sysconfig.get_path("scripts", scheme=user), "afar")
    # With pip install --target DIR this file is DIR/afar/_binary.py.
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield os.path.join(home, "bin", "afar")


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
