"""The command, run in this process as a user would call it."""

import pytest
from hypothesis import HealthCheck, settings

pytest.importorskip("typer")
from calling import command

settings.register_profile("tbwriter", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tbwriter")


@pytest.fixture
def tbwriter_command():
    return command
