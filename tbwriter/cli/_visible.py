"""Names as a terminal may get them: what would steer it, break a table or is not in its encoding in visible form."""

from __future__ import annotations

import io
import json
import re
import sys
from typing import TextIO

from rich.markup import escape

# Control characters, line breaks, marks that turn the direction of writing, and halves of characters: bytes of file
# names that are no UTF-8.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NOT_ASCII = re.compile("[^\x00-\x7e]")


def accept_all(stream: TextIO) -> None:
    r"""Have a stream of an encoding of few characters, as Windows' for files, take others as `\u6587`, not fail."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors in {"strict", "surrogateescape"}:
        stream.reconfigure(errors="backslashreplace")


def visible(text: str) -> str:
    r"""Return `text` with `\n`, `\x1b` and the like in place of what is not to be seen."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def in_json(text: str) -> str:
    r"""Return JSON with `\u009b` and the like, which stands for the same, for what is not to be seen or not written."""
    if text.isascii() and "\x7f" not in text:  # JSON escapes the others itself; its own line breaks are meant
        return text
    if not (sys.stdout.encoding or "utf-8").lower().startswith("utf"):
        return _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    return _STEERING.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def cell(text: str) -> str:
    """Return `text` for a table or a line of Rich: visible, and no markup."""
    return escape(visible(text))
