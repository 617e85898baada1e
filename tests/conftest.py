"""Settings of the property tests, for every test module."""

import os

from hypothesis import HealthCheck, settings

# Shared cores make times say nothing, so no deadline. The same examples on every run; with
# ROOFLINEKIT_HYPOTHESIS=search many more, and new ones each time.
_QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much]
settings.register_profile(
    "repo", deadline=None, max_examples=50, derandomize=True, suppress_health_check=_QUIET
)
settings.register_profile("search", deadline=None, max_examples=300, suppress_health_check=_QUIET)
settings.load_profile(os.environ.get("ROOFLINEKIT_HYPOTHESIS", "repo"))
