"""What all tests stand on; this file also puts `tests` on the import path, for the helpers beside it."""

import signal

from hypothesis import HealthCheck, settings

# No deadline, as shared machines stall; nothing left on disk. Every run tries the same examples, so that what fails is
# the change and not luck; `--hypothesis-profile explore` looks for new ones.
_COMMON = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, **_COMMON)
settings.register_profile("explore", **_COMMON)
settings.load_profile("repeatable")

# A background job of a shell ignores Ctrl-C, and so would every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
