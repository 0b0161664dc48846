"""Nothing is set up for all tests; this file puts `tests` on the import path, for the helpers beside it."""
