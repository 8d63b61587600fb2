"""Settings of all tests."""

import signal

from hypothesis import settings

# How long an example takes says more of the machine than of the code; benchmarks measure time.
settings.register_profile("bluetree", deadline=None)
settings.load_profile("bluetree")

# A shell starts its background jobs with SIGINT ignored, and what a test starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
