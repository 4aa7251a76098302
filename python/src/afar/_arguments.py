"""Values of Python as words of a command line.

The program checks what flags mean; here a value only gets its spelling.
"""

from __future__ import annotations

import datetime
import os
from typing import Any, Dict, List, Mapping, Sequence

from ._flags import FLAGS

# A flag's kind ends with this if the flag may be given several times.
REPEATED = "*"
# Kinds of which a float between 0 and 1 is a share.
SHARES = ("SIZE", "SHARE")


def words(command: str, flags: Mapping[str, Any]) -> List[str]:
    """The words for flags of a command, each as one word: ``--flag=value``.

    Raises TypeError for a name that is no flag of the command, or a value without a spelling.
    """
    known = FLAGS[command]
    found: List[str] = []
    for name, value in flags.items():
        if name not in known:
            raise TypeError(_unknown(command, name, known))
        flag, kind = known[name]
        found += _flag(flag, kind, value)
    return found


def spellings(command: str, name: str, values: Sequence[Any]) -> List[str]:
    """The values of one flag of a command as the program reads them."""
    known = FLAGS[command]
    if name not in known:
        raise TypeError(_unknown(command, name, known))
    flag, kind = known[name]
    return [spelling(flag, kind.rstrip(REPEATED), value) for value in values]


def _unknown(command: str, name: str, known: Mapping[str, Any]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, n=3)
    hint = f"; near it: {', '.join(near)}" if near else f"; see afar {command} --help"
    return f"afar {command} has no flag {name}{hint}"


def _flag(flag: str, kind: str, value: Any) -> List[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if kind == "":
        raise TypeError(f"{flag} takes True or False, not {value!r}")
    name = kind.rstrip(REPEATED)
    if isinstance(value, (list, tuple)):
        spelled = [spelling(flag, name, each) for each in value]
        if kind.endswith(REPEATED):
            return [f"{flag}={each}" for each in spelled]
        return [f"{flag}={','.join(spelled)}"]
    if isinstance(value, Mapping):
        pairs = [f"{key}={spelling(flag, name, each)}" for key, each in value.items()]
        if kind.endswith(REPEATED) and "=" in name:
            return [f"{flag}={pair}" for pair in pairs]
        return [f"{flag}={','.join(pairs)}"]
    return [f"{flag}={spelling(flag, name, value)}"]


def spelling(flag: str, kind: str, value: Any) -> str:
    """One value as the program reads it."""
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, datetime.timedelta):
        return f"{value // datetime.timedelta(microseconds=1)}us"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{flag}: {value!r} is no text, number, path or timedelta")
    if kind == "TIME" and value != 0:
        raise TypeError(f"{flag}: {value} needs a unit: a text such as '5us', or a timedelta")
    if isinstance(value, float) and kind in SHARES and 0 <= value <= 1:
        return f"{value * 100:.10g}%"
    return repr(value)


def toml(document: Mapping[str, Any]) -> str:
    """A TOML file of texts, numbers, switches, lists and tables."""
    plain: List[str] = []
    tables: List[str] = []
    _table(document, (), plain, tables)
    return "\n".join(plain + tables) + "\n"


def _table(
    table: Mapping[str, Any], path: "tuple[str, ...]", plain: List[str], tables: List[str]
) -> None:
    inner: Dict[str, Any] = {}
    for key, value in table.items():
        of_tables = (
            isinstance(value, (list, tuple))
            and value
            and all(isinstance(each, Mapping) for each in value)
        )
        if isinstance(value, Mapping) or of_tables:
            inner[key] = value
        elif value is not None:
            plain.append(f"{_key(key)} = {_value(key, value)}")
    for key, value in inner.items():
        name = ".".join(_key(each) for each in (*path, key))
        for each, header in (
            [(value, f"[{name}]")]
            if isinstance(value, Mapping)
            else [(each, f"[[{name}]]") for each in value]
        ):
            below: List[str] = []
            further: List[str] = []
            _table(each, (*path, key), below, further)
            tables += ["", header, *below, *further]


def _key(key: str) -> str:
    bare = key and all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in key)
    return key if bare else _text(key)


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(key, each) for each in value) + "]"
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_key(name)} = {_value(name, each)}" for name, each in value.items())
        return "{ " + pairs + " }"
    if isinstance(value, (int, float)):
        return repr(value)
    return _text(spelling(key, "", value))


def _text(text: str) -> str:
    """A basic string of TOML: JSON's, but that JSON leaves DEL as it is."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
