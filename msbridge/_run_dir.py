"""A directory for a run, named by what sets it apart. Needs no MindSpore."""

import hashlib
import itertools
import json
import os
import re
import secrets
import time
from typing import Any

_MOST_CHARACTERS = 100
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
    `parameters.json`; below a URL nothing is made or stored, and the name ends in the time and four random digits.

    On several ranks call it on one of them, and hand the result to the others.

    Args:
        base: a directory or URL.
        parameters: in the order in which they name the directory. None is left out.

    Raises:
        OSError: the directory cannot be made. ValueError: its "~" stands for no home directory.
    """
    name, root = _name(parameters), os.fspath(base)
    if "://" in root:
        found = f"{root.rstrip('/')}/{name}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    else:
        root = os.path.expanduser(root)
        if root.startswith("~"):
            raise ValueError(f"base begins with {root.partition('/')[0]!r}, and there is no such home directory")
        root = os.path.abspath(root)
        os.makedirs(root, exist_ok=True)
        found = _made(os.path.join(root, name))
        with open(os.path.join(found, PARAMETERS), "w", encoding="utf-8") as file:
            json.dump(parameters, file, indent=1, default=str, ensure_ascii=False)
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
    if len(name) > _MOST_CHARACTERS:
        mark = hashlib.sha256(repr(sorted(parameters.items())).encode()).hexdigest()[:8]
        name = f"{name[:_MOST_CHARACTERS]}-{mark}"
    return name


def _plain(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return re.sub(r"[^\w.+-]+", "-", text).strip("-.") or "x"
