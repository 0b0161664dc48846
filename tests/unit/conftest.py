"""One Hypothesis profile for all property tests: no deadline, as shared machines stall, and nothing left on disk."""

from hypothesis import settings

settings.register_profile("tbwriter", deadline=None, database=None)
settings.load_profile("tbwriter")
