"""Whether a directory lies on a file system that other machines see too: read from Linux's mount table.

There a record that was written is seen by other clients when it was synced, and not before; and what the client's
cache writes back in its own order leaves zeros for a moment, from which TensorBoard's readers never recover.
"""

from __future__ import annotations

import io
import os
import re

# The types of /proc/filesystems, and the sub-types of FUSE behind a dot: fuse.sshfs, fuse.juicefs, ... What autofs will
# mount at the first look is hardly ever a local disk.
_SHARED = frozenset(
    {
        "9p",
        "afs",
        "autofs",
        "beegfs",
        "beegfs_nodev",
        "ceph",
        "cifs",
        "fuse",
        "glusterfs",
        "gpfs",
        "lustre",
        "smb3",
        "virtiofs",
    }
)
_SHARED_FAMILIES = ("nfs", "fuse.")
# FUSE over an object store: a sync, or the end of a file, uploads all of the file again.
_OBJECT_STORES = frozenset(
    {
        *("fuse.blobfuse2", "fuse.cosfs", "fuse.gcsfuse", "fuse.geesefs", "fuse.goofys", "fuse.obsfs", "fuse.ossfs"),
        *("fuse.rclone", "fuse.s3fs"),
    }
)
_TABLE = "/proc/self/mountinfo"
_ESCAPE = re.compile(r"\\([0-7]{3})")


def mounted_type(path: str, table: str) -> str | None:
    """Return the type of the file system that a path lies on; None where no mount of the table is above it.

    Args:
        path: absolute, without symbolic links.
        table: the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
    """
    found, longest = None, -1
    for line in table.split("\n"):
        # "36 35 98:0 /root /mount/point rw,noatime master:1 - ext4 /dev/sda rw": any number of fields before the dash.
        before, dash, behind = line.partition(" - ")
        fields = before.split(" ")
        if not dash or len(fields) < 6:
            continue
        point = _ESCAPE.sub(_unescape, fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        # Of mounts on one point the last covers the others: autofs, and then what it mounted.
        if inside and len(point) >= longest:
            found, longest = behind.split(" ", 1)[0], len(point)
    return found


def _unescape(match: re.Match[str]) -> str:
    """Return a blank, tab, line end, hash or backslash from its three octal digits."""
    return chr(int(match[1], 8))


def file_system(directory: str) -> str | None:
    """Return the type of the file system of an existing directory; None where the system does not tell."""
    try:
        # Not `open`: there is none when a `__del__` at the end of the interpreter still adds something.
        with io.open(_TABLE, encoding="utf-8", errors="surrogateescape") as table:  # noqa: UP020
            return mounted_type(os.path.realpath(directory), table.read())
    except OSError:
        return None


def is_shared(kind: str | None) -> bool:
    """Say whether other machines may see a file system of this type; not told is local."""
    return kind is not None and (kind in _SHARED or kind.startswith(_SHARED_FAMILIES))


def is_object_store(kind: str | None) -> bool:
    """Say whether a file system of this type keeps each file as one object."""
    return kind in _OBJECT_STORES
