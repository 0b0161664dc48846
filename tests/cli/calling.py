"""Call the command in this process."""

import json


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


def command(*arguments):
    """Run `tbwriter` with arguments, as a user would."""
    from typer.testing import CliRunner

    from tbwriter.cli._app import app

    return Answer(CliRunner().invoke(app, [str(argument) for argument in arguments]))
