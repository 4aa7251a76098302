"""``python -m afar``: the command line, by the program that this package runs."""

import os
import sys

from ._binary import find_binary
from .errors import BinaryMissingError


def main() -> None:
    """Becomes ``afar`` with the same arguments."""
    try:
        binary = find_binary()
    except BinaryMissingError as error:
        sys.exit(f"afar: {error}")
    os.execv(binary, [binary, *sys.argv[1:]])


main()
