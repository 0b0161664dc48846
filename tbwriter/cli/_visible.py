"""Names as a terminal may get them: with what would steer it, or break a table, in visible form."""

from __future__ import annotations

import re

from rich.markup import escape

# Control characters, line breaks, marks that turn the direction of writing, and halves of characters: bytes of file
# names that are no UTF-8.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Return `text` with `\n`, `\x1b` and the like in place of what is not to be seen."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def in_json(text: str) -> str:
    r"""Return JSON with `\u009b` and the like in place of what is not to be seen, which stands for the same."""
    if text.isascii() and "\x7f" not in text:  # JSON escapes the others itself; its own line breaks are meant
        return text
    return _STEERING.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def cell(text: str) -> str:
    """Return `text` for a table or a line of Rich: visible, and no markup."""
    return escape(visible(text))
