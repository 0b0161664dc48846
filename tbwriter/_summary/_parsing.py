"""Messages out of bytes that anybody may have written."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.internal import api_implementation
from google.protobuf.message import DecodeError, Message

_Message = TypeVar("_Message", bound=Message)

# Protobuf 3 in C++, which MindSpore before 2.10 has on Python 3.10, takes bytes up to a stray tag for the whole, and
# only warns. The length that it returns counts the tag in, so that only a field behind it shows where it stopped.
_STOPS_AT_STRAY_TAGS = api_implementation.Type() == "cpp"
_ANY_FIELD = b"\xf8\x3f\x00"  # number 1023, a varint


def parsed(kind: type[_Message], data: bytes) -> _Message:
    """Return the message of this kind that the whole of `data` is.

    Raises:
        ValueError: it is none.
    """
    message = kind()
    try:
        message.MergeFromString(data)
        whole = not _STOPS_AT_STRAY_TAGS or kind().MergeFromString(data + _ANY_FIELD) == len(data) + len(_ANY_FIELD)
    # RecursionError: groups in groups, of protobuf 3 in Python. SystemError: that warning, where warnings are errors.
    except (DecodeError, RecursionError, SystemError) as exc:
        raise ValueError(str(exc)) from exc
    if not whole:
        raise ValueError("a tag that begins no field")
    return message
