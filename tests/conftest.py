"""What all tests have in common."""

from hypothesis import settings

# How long an example takes is up to the machine, and no test asserts a speed.
settings.register_profile("rvtrace", deadline=None)
settings.load_profile("rvtrace")
