"""The mount table: which file system a path lies on, and whether other machines see it."""

import sys

import pytest

from tbwriter.sinks._mounts import file_system, is_object_store, is_shared, mounted_type

# Lines as of proc_pid_mountinfo(5) and real machines.
TABLE = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw,discard
40 27 0:37 / /home rw,relatime shared:20 - autofs systemd-1 rw,fd=52,timeout=0,direct
41 40 0:45 / /home rw,relatime shared:21 master:3 - nfs4 10.0.0.1:/home rw,vers=4.2,hard
42 27 0:50 / /lustre rw,relatime - lustre 10.0.0.2@tcp:/fs rw,flock
43 42 8:1 /scratch /lustre/local\040disk rw,relatime - xfs /dev/sda1 rw
44 27 0:51 / /mnt/a\011b\134c rw,relatime - fuse.sshfs me@host: rw
45 27 259:1 /var/data /srv rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw
46 27 0:52 / /nas rw,relatime propagate_from:2 shared:7 master:9 - cifs //nas/share rw
48 27 0:61 /export /containers/x/home rw,relatime - nfs server:/export rw
a line that is none
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/root/runs", "ext4"),
        ("/home", "nfs4"),  # what was mounted last on a point covers the rest: autofs first
        ("/home/me/runs", "nfs4"),
        ("/homestead", "ext4"),  # no mount point of that name
        ("/lustre/runs", "lustre"),
        ("/lustre/local disk/runs", "xfs"),
        ("/lustre/local", "lustre"),
        ("/mnt/a\tb\\c/runs", "fuse.sshfs"),
        ("/srv/runs", "ext4"),  # a bind mount
        ("/nas/runs", "cifs"),  # any number of optional fields
        ("/containers/x/home/runs", "nfs"),  # a bind mount of a shared file system
    ],
)
def test_a_path_lies_on_the_mount_whose_point_is_its_longest_prefix(path, kind):
    assert mounted_type(path, TABLE) == kind


@pytest.mark.parametrize("table", ["", "\n", "a line that is none\n", "1 2 3\n - ext4\n"])
def test_without_a_mount_above_a_path_nothing_is_known(table):
    assert mounted_type("/runs", table) is None


@pytest.mark.parametrize(
    "kind",
    [
        *("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "9p", "virtiofs", "glusterfs", "autofs"),
        *("fuse", "fuse.sshfs", "fuse.s3fs", "fuse.juicefs", "fuse.ceph-fuse", "fuse.glusterfs"),
    ],
)
def test_a_file_system_of_many_machines_is_shared(kind):
    assert is_shared(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk", "ntfs3", "vfat", None])
def test_a_disk_of_this_machine_is_not_shared(kind):
    assert not is_shared(kind)


def test_a_mount_of_an_object_store_is_known():
    assert is_object_store("fuse.s3fs")
    assert not is_object_store("fuse.sshfs")
    assert not is_object_store(None)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_table_of_this_machine_is_read_through_symbolic_links(tmp_path):
    (tmp_path / "link").symlink_to("/proc/self")
    assert file_system(str(tmp_path / "link")) == "proc"
