"""Look for bytes that break a target, guided by what code they reach.

    pip install atheris
    python tests/fuzz/run.py events --seconds 600

What breaks is left in build/fuzz/<target>/; copy it into tests/fuzz/corpus/<target>/, where test_fuzz.py replays it.
`--shrink` writes the smallest set of inputs that reaches the same code into the corpus.
"""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(HERE)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args()
    corpus, found = HERE / "corpus" / options.target, ROOT / "build" / "fuzz" / options.target
    for folder in (corpus, found / "inputs"):
        folder.mkdir(parents=True, exist_ok=True)
    limits = ["-rss_limit_mb=1500", "-timeout=20", "-max_len=4096", f"-artifact_prefix={found}/"]
    if options.child:
        # libFuzzer starts itself again for --shrink, by what it takes for its name.
        name = f"{sys.executable} {__file__} {options.target} --child"
        return fuzz(options.target, [name, *sys.argv[sys.argv.index("--child") + 1 :]])
    what = [sys.executable, __file__, options.target, "--child"]
    if options.shrink:
        work = [*limits, "-merge=1", str(corpus), str(found / "inputs")]
    else:
        work = [*limits, f"-max_total_time={options.seconds}", str(found / "inputs"), str(corpus)]
    return subprocess.run([*what, *work], check=False).returncode


def fuzz(target, arguments):
    """Have libFuzzer call a target until its time is over."""
    import atheris

    with atheris.instrument_imports(include=["tbwriter", "msbridge"]):
        import targets
    targets.be_quiet()
    atheris.Setup(arguments, targets.TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
