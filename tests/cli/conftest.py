"""The command, run in this process as a user would call it."""

import json

import pytest
from hypothesis import HealthCheck, settings

pytest.importorskip("typer")
from typer.testing import CliRunner

settings.register_profile(
    "tbwriter", deadline=None, database=None, suppress_health_check=list(HealthCheck), max_examples=50
)
settings.load_profile("tbwriter")


class Answer:
    """What a command said, and its exit code."""

    def __init__(self, result):
        self.code, self.out, self.err = result.exit_code, result.stdout, result.stderr
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def tbwriter_command():
    from tbwriter.cli._app import app

    return lambda *arguments: Answer(CliRunner().invoke(app, [str(argument) for argument in arguments]))
