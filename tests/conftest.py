"""Settings of all tests."""

from hypothesis import settings

# How long an example takes says more of the machine than of the code; benchmarks measure time.
settings.register_profile("bluetree", deadline=None)
settings.load_profile("bluetree")
