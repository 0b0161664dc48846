"""Generate the modules in tbwriter/_pb and msbridge/_pb from the .proto files in proto.

    python proto/generate.py           write the files
    python proto/generate.py --check   exit with 1 when the checked-in files differ

Needs `grpcio-tools==1.63.2` and no other version: README.md beside this file says why.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (
    "tbwriter/_pb/tfevents.proto",
    "tbwriter/_pb/plugins.proto",
    "msbridge/_pb/mindspore_summary.proto",
)
OUTPUTS = tuple(source.replace(".proto", ending) for source in SOURCES for ending in ("_pb2.py", "_pb2.pyi"))
GENERATOR = "grpcio-tools==1.63.2"


def generate(out: Path) -> None:
    """Run protoc into `out`.

    Raises:
        SystemExit: protoc failed, or its output would not import on the oldest supported protobuf.
    """
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{ROOT / 'proto'}",
        f"--python_out={out}",
        f"--pyi_out={out}",
        *SOURCES,
    ]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise SystemExit(f"protoc failed; it needs {GENERATOR}: pip install {GENERATOR} setuptools")
    if any("runtime_version" in (out / name).read_text(encoding="utf-8") for name in OUTPUTS):
        raise SystemExit(f"this protoc is too new: its output asks for protobuf >= 5.27; want {GENERATOR}")


def main() -> int:
    """Write the generated files, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        stale = []
        for name in OUTPUTS:
            new = (Path(folder) / name).read_bytes()
            if check:
                if not (ROOT / name).exists() or (ROOT / name).read_bytes() != new:
                    stale.append(name)
            else:
                (ROOT / name).write_bytes(new)
    if stale:
        print(f"stale: {', '.join(stale)}; run: python proto/generate.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
