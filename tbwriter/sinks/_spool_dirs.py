"""Where records wait on this machine until an object store has them.

    <root>/<sha1(url)[:10]>.<epoch>.<pid>.<random>/
        url.json    where it belongs: no credentials
        owner       the name of the owner's file; gone when the owner has given the directory up
        lock        held by who has taken over what a dead owner left
        taken       there as long as somebody has
        <name>      an event file, under the name that it has or will have in the store
        side/<n>/   other files, under their paths below the URL, in the order of n
    <root>/<pid>.<random>.owner     one for each process, which holds flock(2) on it

Only that lock tells whether an owner lives: process numbers are used again, and all are 1 in containers.

Over 300 lines: one layout on disk, as its owner, its heirs and `ship` see it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tbwriter.sinks._credentials import without_user
from tbwriter.sinks._handles import open_apart
from tbwriter.sinks._local_names import absolute, text

try:
    import fcntl
except ImportError:  # Windows: no lock, and so no spool on disk
    fcntl = None  # type: ignore[assignment]

SIDE = "side"
_OWNER = "owner"
_OWN_FILES = frozenset({"url.json", "lock", "taken", _OWNER, SIDE})


class Leftover:
    """What a dead owner left, now held by us. One thread."""

    def __init__(self, path: Path) -> None:
        """Take the directory.

        Raises:
            BlockingIOError: its owner lives, or somebody else has taken it. OSError: it is gone.
        """
        self.path = path
        self._lock = Lock(path / "lock")
        try:
            if _owner_lives(path):
                raise BlockingIOError(f"the owner of {path} lives")  # noqa: TRY301 (releases below)
            about = json.loads((path / "url.json").read_text(encoding="utf-8"))
            self.url = str(about["url"])
            self.options: dict[str, Any] = dict(about.get("options") or {})
            (path / "taken").touch()
        except BaseException:
            self._lock.release()
            raise

    def files(self) -> list[tuple[str, Path]]:
        """Return (name below the URL, file), in the order in which they must be stored."""
        segments = [(text(name), self.path / name) for name in _segment_names(self.path)]
        sides = [(text(name.split("/", 1)[1]), self.path / SIDE / name) for name in _side_names(self.path)]
        return segments + sides

    def remove(self, file: Path) -> None:
        """Delete a file that the store has."""
        with contextlib.suppress(FileNotFoundError):
            file.unlink()

    def close(self) -> None:
        """Unlock the directory; delete it when nothing is left in it."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / "taken").unlink()
        remove_if_empty(self.path)
        self._lock.release()


class Lock:
    """flock(2) on a file, held until released or until the process ends."""

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            BlockingIOError: somebody else has it. OSError: the directory is gone, or there are no locks.
        """
        if fcntl is None:
            raise OSError("no flock on this system")
        self._path = path
        self._fd = open_apart(os.fspath(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not path.exists():
                raise FileNotFoundError(f"{path} is gone")  # noqa: TRY301 (closes below)
        except BaseException:
            os.close(self._fd)
            raise
        _locks.add(self)

    def release(self) -> None:
        """Give the lock up."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


# -- who owns a directory: one lock for each process and root, however many sub-runs there are


class _Owner:
    """This process, as the owner of directories in one root."""

    def __init__(self, root: Path) -> None:
        self.path = root / f"{os.getpid()}.{os.urandom(4).hex()}.owner"
        self.lock = Lock(self.path)
        self.directories = 0

    def renew(self) -> None:
        """Make the lock anew where somebody has deleted all of the root: without, we would count as dead."""
        if not self.path.exists():
            self.lock.release()
            self.lock = Lock(self.path)


_owners: dict[Path, _Owner] = {}
_owners_lock = threading.Lock()


def own(directory: Path) -> None:
    """Say that this process owns a new directory."""
    with _owners_lock:
        owner = _owners.get(directory.parent)
        if owner is None:
            owner = _owners[directory.parent] = _Owner(directory.parent)
        owner.renew()
        owner.directories += 1
    (directory / _OWNER).write_text(owner.path.name, encoding="utf-8")


def own_again(directory: Path) -> None:
    """Say so once more where somebody has deleted the directory and it was made again."""
    with _owners_lock:
        owner = _owners[directory.parent]
        owner.renew()
    (directory / _OWNER).write_text(owner.path.name, encoding="utf-8")


def disown(directory: Path) -> None:
    """Leave a directory of our own to whoever takes it; delete it when nothing is left in it."""
    remove_if_empty(directory)
    with contextlib.suppress(FileNotFoundError):
        (directory / _OWNER).unlink()
    with _owners_lock:
        owner = _owners[directory.parent]
        owner.directories -= 1
        if not owner.directories:
            del _owners[directory.parent]
            with contextlib.suppress(FileNotFoundError):
                owner.path.unlink()
            owner.lock.release()


def _owner_lives(directory: Path) -> bool:
    try:
        path = directory.parent / (directory / _OWNER).read_text(encoding="utf-8")
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two that ask at once do not take each other for the owner.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return False
    finally:
        os.close(handle)


def _forget() -> None:
    """In a forked child: a copy of a handle would keep the lock when the parent has died."""
    global _owners_lock  # noqa: PLW0603 (another thread of the parent may have held it)
    _owners_lock = threading.Lock()
    for lock in list(_locks):
        lock.release()
    _owners.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


# -- the root


def default_roots() -> list[Path]:
    """Return where spools may be, the best place first."""
    given = os.environ.get("TBWRITER_SPOOL_DIR")
    if given:
        return [Path(absolute(given, "TBWRITER_SPOOL_DIR"))]
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    user = os.getuid() if hasattr(os, "getuid") else 0
    roots = []
    with contextlib.suppress(ValueError):  # a user of a container may have no home
        roots.append(Path(absolute(state, "XDG_STATE_HOME")) / "tbwriter" / "spool")
    with contextlib.suppress(OSError):  # no directory for temporary files can be written
        roots.append(Path(tempfile.gettempdir()) / f"tbwriter-{user}")
    return roots


def usable_root(spool_dir: str | os.PathLike[str] | None) -> Path:
    """Return the first root that can be used, created if it is missing.

    Raises:
        OSError: none can.
    """
    roots = [Path(absolute(os.fspath(spool_dir), "spool_dir"))] if spool_dir is not None else default_roots()
    # Anybody may have made the one for temporary files; what the user names, as a volume of a container, may be root's.
    is_named = spool_dir is not None or bool(os.environ.get("TBWRITER_SPOOL_DIR"))
    failure: OSError | None = None
    for root in roots:
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not is_named and hasattr(os, "getuid") and root.stat().st_uid != os.getuid():
                raise PermissionError(f"{root} belongs to another user")
            _probe(root)
            return root.absolute()
        except OSError as exc:  # noqa: PERF203 (each place on its own)
            failure = failure or exc
    raise failure or OSError("there is neither a home directory nor one for temporary files")


def _probe(root: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="probe.", dir=root) as directory:
        Lock(Path(directory) / "lock").release()
        with open(Path(directory) / "data", "wb") as file:
            file.write(b"x")


def spooled_names(root: Path, url: str) -> list[str]:
    """Return the names of all event files that wait for a URL, of owners dead or alive."""
    return [text(name) for path in directories(root, url) for name in _segment_names(path)]


def leftovers(root: Path, url: str | None = None) -> Iterator[Leftover]:
    """Take what dead owners left, for one URL or for all, in the order of `directories`."""
    for path in directories(root, url):
        yield from take(path)


def take(path: Path) -> list[Leftover]:
    """Take one spool directory; nothing where its owner lives."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        return [Leftover(path)]
    return []


def is_being_taken(root: Path, url: str) -> bool:
    """Say whether somebody else is at work on what a dead owner left for a URL."""
    for path in directories(root, url):
        if (path / "taken").exists():
            try:
                Lock(path / "lock").release()
            except BlockingIOError:
                return True
            except OSError:
                continue
    return False


def directories(root: Path, url: str | None = None) -> list[Path]:
    """Return the spool directories for a URL, or for all, in the order in which readers must get what they hold.

    Event files are named so that they sort after all that waited when they were begun. Their directories are not, in
    one second or after the clock was set back. Those of other users, in a root that several use, are left out.
    """
    pattern = "*.*.*.*" if url is None else f"{key(url)}.*"
    found = [path for path in root.glob(pattern) if os.path.exists(path / "url.json")]  # False where we may not look
    return sorted(found, key=lambda path: (_segment_names(path)[:1], path.name.split(".")[1:]))


def key(url: str) -> str:
    """Return what the directories of one URL begin with."""
    return hashlib.sha1(without_user(url).rstrip("/").encode(), usedforsecurity=False).hexdigest()[:10]


def _segment_names(path: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(path) if name not in _OWN_FILES and not name.endswith(".part"))
    except FileNotFoundError:
        return []


def _side_names(path: Path) -> list[str]:
    side = path / SIDE
    return sorted(file.relative_to(side).as_posix() for file in side.rglob("*") if file.is_file())


def remove_if_empty(path: Path) -> None:
    """Delete a spool directory that holds nothing more to ship."""
    if not _segment_names(path) and not _side_names(path):
        shutil.rmtree(path, ignore_errors=True)
