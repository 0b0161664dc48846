"""What a test needs of the machine it runs on."""

import importlib.util
import os

import pytest


def cannot_run(reason):
    """Skip this test; in CI, which installs all that tests need, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must be able to run this: {reason}")
    pytest.skip(reason)


def need(*packages):
    """Go on if these can be imported."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            cannot_run(f"{package} is not installed")
