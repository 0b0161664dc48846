"""What a user gives as a place: is it a path or a URL, which one, and what is wrong with it.

Pure text: nothing is looked up, no driver is loaded. Every refusal names the argument, what it got and what to give.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from tbwriter.sinks._credentials import HIDDEN, hide
from tbwriter.sinks._local_names import absolute

_NAME = r"[A-Za-z][A-Za-z0-9_+.-]*"
URL = re.compile(rf"({_NAME})://")
# fsspec's file systems over others, such as "simplecache::s3://bucket"; pathlib makes one slash of the two.
_CHAIN = re.compile(rf"{_NAME}::({_NAME}::)*{_NAME}:/")
# pathlib and os.path.normpath turn "s3://bucket" into "s3:/bucket". Only schemes of storage: "run:/x" is a path.
_FOLDED = re.compile(r"([A-Za-z][A-Za-z0-9_+.-]+):(?:/(?!/)|$)")
# Beside what is served: of others' storage.
_SCHEMES_OF_OTHERS = frozenset({"http", "https", "cos", "cosn", "tos"})
LOCAL = frozenset({"file", "local"})
# Servers by name and port. What follows a "?" is no part of the path to fsspec, which TensorBoard reads them by.
_SERVERS = frozenset({"sftp", "ssh", "smb", "webhdfs", "ftp"})
# Their first directory is a share.
_SHARES = frozenset({"smb"})
# So much of a value is shown in a message.
_MOST_SHOWN = 300
_LONG = 10**18
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def text_of(place: object, what: str) -> str:
    """Return the text of a path or URL; bytes are decoded as the system does.

    Raises:
        TypeError: neither str, bytes nor path-like. ValueError: no path and no URL can be so.
    """
    try:
        text = _of_foreign_url(place) or os.fsdecode(os.fspath(place))  # type: ignore[call-overload]
        text = str.__str__(text)
    except Exception as exc:  # a TypeError, or whatever a foreign __fspath__ raises
        raise TypeError(f"{what} must be a path or a URL, got {_described(place)}") from exc
    if getattr(place, "storage_options", None) and URL.match(text):
        hint = "pass str() of it, and storage_options= beside it"
        raise ValueError(
            f"{what} is a {type(place).__name__} with storage_options of its own, which are not used; {hint}"
        )
    if not text:
        raise ValueError(f"{what} is empty; want a path or a URL")
    if "\0" in text:
        raise ValueError(f"{what} holds a NUL character: {shown(text)}; want a path or a URL without")
    return text


def _of_foreign_url(place: object) -> str | None:
    """Return the URL that an object of cloudpathlib's, universal_pathlib's, yarl's, ... stands for, None for others.

    To cloudpathlib `os.fspath` is the order to download, and gives a directory of its cache.
    """
    if isinstance(place, (str, bytes)):
        return None
    # Nothing else is asked for its text: see below.
    is_place = hasattr(type(place), "__fspath__") or any(
        isinstance(getattr(place, name, None), str) for name in ("protocol", "scheme")
    )
    text = str(place) if is_place else ""
    return text if URL.match(text) else None


def _described(place: object) -> str:
    # Nothing else is printed: a repr may be long, raise, or read a tensor from its device.
    shown = f" {place}" if isinstance(place, (int, float)) and abs(place) < _LONG else ""
    return f"{type(place).__name__}{shown}"


def shown(text: str) -> str:
    """Return a text as messages quote it: in ASCII where it has no other form, and without a password."""
    scheme, mark, rest = text.partition("://")
    if mark and "@" in rest:  # wherever: a password may hold what ends a host
        text = f"{scheme}://{HIDDEN}@{rest.rpartition('@')[2]}"
    quoted = repr(hide(text, {}))
    return quoted if len(quoted) <= _MOST_SHOWN else f"{quoted[:_MOST_SHOWN]}...'"


def path_of(text: str, what: str, is_scheme: Callable[[str], bool], *, was_path: bool) -> str:
    """Return what is no URL as an absolute path.

    Args:
        text: as `text_of` returned it.
        what: the argument's name.
        is_scheme: says whether there is storage of a scheme.
        was_path: the user gave a pathlib.Path or its like.

    Raises:
        ValueError: it was meant as a URL, holds a lone surrogate, or begins with `~` where no home is known.
    """
    if _CHAIN.match(text):
        raise ValueError(f"{what} {shown(text)} is a chain of file systems; want the URL of the last one alone")
    folded = _FOLDED.match(text)
    scheme = folded[1].lower() if folded else ""
    if folded and scheme in LOCAL and not was_path:
        return path_of_url(text, what)  # RFC 8089: file:/x
    if folded and (scheme in LOCAL or scheme in _SCHEMES_OF_OTHERS or is_scheme(scheme)):
        rest = text[folded.end() :]
        if scheme in LOCAL:
            hint = f"pass '/{rest}', or the URL as a str"
        elif scheme in ("hdfs", "webhdfs"):
            hint = f"pass it as a str, with every slash that it had: {scheme}:///{rest}, or {scheme}://{rest}"
        else:
            hint = f"pass it as a str: {scheme}://{rest}"
        raise ValueError(f"{what} {shown(text)} looks like a URL that lost a slash in pathlib or os.path; {hint}")
    if text.lower().startswith(("file:", "local:")):
        raise ValueError(f"{what} {shown(text)} is no URL of a file; want a path, or file:/// and an absolute one")
    if "://" in text:
        raise ValueError(f"{what} {shown(text)} holds a URL and does not begin with its scheme; want the URL alone")
    try:
        path = absolute(text, what)
    except UnicodeEncodeError as exc:
        raise ValueError(f"{what} {shown(text)} has no form in bytes: {exc.reason}; want another name") from exc
    # abspath keeps two slashes at the beginning; only Windows means something by them.
    return path if os.name == "nt" else f"/{path.lstrip('/')}"


def path_of_url(text: str, what: str) -> str:
    """Return the absolute path of a file URL as of RFC 8089, without a "%20" decoded, which no reader does.

    Raises:
        ValueError: it names another machine, or no absolute path.
    """
    rest = text.split(":", 1)[1]
    host = ""
    if rest.startswith("//"):
        host, slash, rest = rest[2:].partition("/")
        rest = slash + rest
    if host.lower() not in ("", "localhost"):
        raise ValueError(
            f"{what} {shown(text)} is a file of the machine {host!r}; want file:// and an absolute path, as in "
            f"file:///{(host + rest).lstrip('/')}, or where it is mounted here, or sftp:// or smb://"
        )
    if not rest:
        raise ValueError(f"{what} {shown(text)} names no file or directory; want file:// and an absolute path")
    return path_of(re.sub("^/+", "/", rest), what, lambda _: False, was_path=False)


def tidied(text: str, what: str, *, needs_host: bool, reading: bool) -> str:
    """Return the URL of a store as it is used everywhere: the scheme in small letters, no empty part in the path.

    Args:
        text: beginning with `URL`.
        what: the argument's name.
        needs_host: it must name a bucket or a host.
        reading: it may hold what a sub-run has in its name and no user's URL of a run may have.

    Raises:
        ValueError: it names no place, or one that readers would not find.
    """
    scheme, rest = text.split("://", 1)
    scheme = scheme.lower()
    if _CONTROL.search(rest) and not reading:
        raise ValueError(f"{what} {shown(text)} holds a control character; want a URL without")
    if "\\" in rest and not reading:
        raise ValueError(f"{what} {shown(text)} holds a backslash, which many stores take for a slash; want a '/'")
    try:
        rest.encode()
    except UnicodeEncodeError as exc:
        raise ValueError(f"{what} {shown(text)} cannot be stored as UTF-8: {exc.reason}; want another name") from exc
    netloc, *parts = rest.split("/")
    parts = [part for part in parts if part]
    if needs_host and not _names_host(netloc, scheme):
        host = "<host>" if scheme in _SERVERS else "<bucket>"
        raise ValueError(f"{what} {shown(text)} names no bucket or host; want {scheme}://{host}/<directory>")
    if not netloc and not parts:
        raise ValueError(f"{what} {shown(text)} names no directory; want {scheme}://<directory>")
    if scheme in _SHARES and not parts:
        raise ValueError(f"{what} {shown(text)} names no share; want {scheme}://<server>/<share>/<directory>")
    if scheme in _SERVERS:
        _check_server(f"{scheme}://{netloc}", what)
        if "?" in rest and not reading:
            raise ValueError(
                f"{what} {shown(text)} has a '?', behind which nothing is part of the path; want another name"
            )
    dots = [part for part in (netloc, *parts) if part in (".", "..")]
    if dots:
        raise ValueError(
            f"{what} {shown(text)} has the part {dots[0]!r}, which stores do not follow; want the URL it means"
        )
    return f"{scheme}://{'/'.join([netloc, *parts])}"


def _names_host(netloc: str, scheme: str) -> bool:
    if scheme in _SERVERS:
        netloc = netloc.rsplit("@", 1)[-1].rsplit(":", 1)[0]
    return bool(netloc.strip("@: "))


def _check_server(text: str, what: str) -> None:
    try:
        port, host = urlsplit(text).port, urlsplit(text).hostname
    except ValueError as exc:
        raise ValueError(f"{what} {shown(text)} has no host and port as URLs have them: {exc}") from exc
    if not host or port == 0 or any(map(str.isspace, host)):
        raise ValueError(f"{what} {shown(text)} has no host and port as URLs have them; want <host> or <host>:<port>")
