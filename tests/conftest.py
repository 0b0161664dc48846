"""What all tests stand on; this file also puts `tests` on the import path, for the helpers beside it."""

import signal

# A background job of a shell ignores Ctrl-C, and so would every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
