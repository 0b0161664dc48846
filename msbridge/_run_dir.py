"""A directory for a run, named by what sets it apart. Needs no MindSpore."""

import hashlib
import itertools
import json
import math
import os
import re
import secrets
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from tbwriter import sinks

_MOST_CHARACTERS = 100
_MOST_BYTES = 120  # an encrypted home directory takes 143 in a name, and more characters may follow
_MOST_LEVELS = 10  # of lists within lists, which may hold themselves
PARAMETERS = "parameters.json"


class RunDir(str):
    """The path or URL of a run's directory, and the hyper-parameters it was named after.

    TensorBoardCallback draws them as a row of the HParams dashboard.
    """

    __slots__ = ("parameters",)
    parameters: dict[str, Any]


def run_dir(base: str | os.PathLike[str], **parameters: Any) -> RunDir:
    """Make a new directory below `base`, such as `model=resnet50_lr=0.1_seed=1`, and store the parameters in it.

    No two calls get one directory, in this process or in another: a second one with the same parameters gets a name
    that ends in `-2`. Long names are cut, and end in a hash of all parameters. The parameters are in
    `parameters.json`, as text where JSON has no such kind; below a URL nothing is made or stored, and the name ends in
    the time and four random digits.

    On several ranks call it on one of them, and hand the result to the others.

    Args:
        base: a directory, `~`, `os.PathLike`, or a URL.
        parameters: in the order in which they name the directory. None is left out.

    Raises:
        TypeError, ValueError: `base` is no directory or URL. OSError: the directory cannot be made.
    """
    name, root = _name(parameters), sinks.normalise(base, "base")
    if "://" in root:
        found = f"{root.rstrip('/')}/{name}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    else:
        os.makedirs(root, exist_ok=True)
        found = _made(os.path.join(root, sinks.local(name)))
        with open(os.path.join(found, PARAMETERS), "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(_storable(parameters), file, indent=1, ensure_ascii=False)
            file.write("\n")
    path = RunDir(found)
    path.parameters = dict(parameters)
    return path


def _made(path: str) -> str:
    candidates = itertools.chain([path], (f"{path}-{number}" for number in itertools.count(2)))
    return next(candidate for candidate in candidates if _is_new(candidate))


def _is_new(path: str) -> bool:
    try:
        os.mkdir(path)
    except FileExistsError:
        return False
    return True


def _name(parameters: dict[str, Any]) -> str:
    parts = [f"{key}={_plain(value)}" for key, value in parameters.items() if value is not None]
    name = "_".join(parts) or "run"
    cut = name[:_MOST_CHARACTERS].encode()[:_MOST_BYTES].decode(errors="ignore")
    if cut != name:
        mark = hashlib.sha256(repr(sorted(parameters.items())).encode()).hexdigest()[:8]
        name = f"{cut}-{mark}"
    return name


def _storable(value: Any, levels: int = _MOST_LEVELS) -> Any:
    """Give a value as JSON has it: arrays as lists, and text for what there is no other place for."""
    if levels and isinstance(value, Mapping):
        return {str(key): _storable(item, levels - 1) for key, item in value.items()}
    if levels and isinstance(value, list | tuple | set | frozenset):
        return [_storable(item, levels - 1) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    return _storable(value.tolist()) if isinstance(value, np.ndarray | np.generic) else str(value)


def _plain(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return re.sub(r"[^\w.+-]+", "-", text).strip("-.") or "x"
