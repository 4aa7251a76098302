"""Records as afar report shows them: a page of its own, or a section of a notebook."""

from __future__ import annotations

import os
import tempfile
from html import escape
from typing import TYPE_CHECKING, Any, List, Mapping

from .errors import AfarError, BinaryMissingError

if TYPE_CHECKING:
    from .records import Record


def write(record: "Record", path: Any) -> None:
    """Writes the page about a record."""
    from .commands import report

    with tempfile.TemporaryDirectory(prefix="afar-") as home:
        kept = os.path.join(home, "record.json")
        record.save(kept)
        report(kept, output=path)


def section(record: "Record") -> str:
    """A record's section without a style or a script of its own: words, pictures as SVG, facts."""
    from .commands import report

    with tempfile.TemporaryDirectory(prefix="afar-") as home:
        kept, pictures = os.path.join(home, "record.json"), os.path.join(home, "pictures")
        record.save(kept)
        try:
            shown = report(kept, svg=pictures)["sections"]
        except (AfarError, BinaryMissingError) as error:
            return f"<pre>{escape(repr(record))}\n{escape(str(error))}</pre>"
        return "".join(_section(each, pictures) for each in shown)


def _section(section: Mapping[str, Any], pictures: str) -> str:
    parts = [f"<h4>{escape(section['title'])}</h4>"]
    parts += [f"<p>{escape(sentence)}</p>" for sentence in section["answer"]]
    parts += [f"<p><strong>{escape(warning)}</strong></p>" for warning in section["warnings"]]
    parts += [_picture(picture, pictures) for picture in section["pictures"]]
    parts.append(_facts(section["facts"]))
    return f'<div class="afar">{"".join(parts)}</div>'


def _picture(picture: Mapping[str, Any], directory: str) -> str:
    path = os.path.join(directory, f"{picture['name']}.svg")
    try:
        with open(path, encoding="utf-8") as file:
            drawn = file.read()
    except FileNotFoundError:
        return ""
    # Its lines and words are dark, whatever the notebook is.
    paper = "background: #fff; display: inline-block; max-width: 100%"
    return (
        f"<figure><figcaption><strong>{escape(picture['title'])}</strong><br>"
        f'{escape(picture["caption"])}</figcaption><div style="{paper}">{drawn}</div></figure>'
    )


def _facts(facts: List[Mapping[str, Any]]) -> str:
    rows = "".join(
        f"<tr><th>{escape(fact['name'])}</th><td>{escape(str(fact['value']))}</td></tr>"
        for fact in facts
    )
    table = f"<table><tbody>{rows}</tbody></table>"
    return f"<details><summary>Settings and facts</summary>{table}</details>" if rows else ""
