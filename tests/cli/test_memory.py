"""What a command takes of memory does not grow with its files: each goes through more than it may take."""

import os
import subprocess
import sys

import pytest
from damaged import NAME, field, scalar, value, version

MOST_MIB = 150  # Python with NumPy and Rich takes 60
FILE_MIB = 220


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Pictures of 1 MiB, many small ones, scalars, and a torn tail."""
    place = tmp_path_factory.mktemp("large")
    pixels = os.urandom(1 << 20)

    def picture(step, size):
        return value(
            step, f"picture {step % 7}", field(4, field(1, 8) + field(2, 8) + field(3, 3) + field(4, pixels[:size]))
        )

    with (place / NAME.format(second=1_700_000_000, pid=1)).open("wb") as file:
        file.write(version())
        for step in range(FILE_MIB):
            file.write(picture(step, 1 << 20))
            file.writelines(picture(step, 1 << 10) for _ in range(5))
            file.writelines(scalar(step * 100 + number, 1.0) for number in range(100))
        file.write(scalar(1 << 20, 1.0)[:-3])
    return place


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    ["inspect", "doctor", "verify", "cat", "export", "repair -o out", "merge -o out", "thin --every 3 -o out",
     "rewind --step 150 -o out"],
)  # fmt: skip
def test_a_command_takes_less_memory_than_its_file(large, tmp_path, command):
    name, *more = command.split()
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM, name, str(large), *more],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode in {0, 1}, ended.stderr
    assert int(ended.stderr.split()[-1]) < MOST_MIB * 1024


# ru_maxrss would count what the parent of a new process has.
_PROGRAM = """
import re, sys
from tbwriter.cli import main
try:
    main()
finally:
    print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1], file=sys.stderr)
"""
