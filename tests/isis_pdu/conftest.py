"""Property tests here run without a deadline: continuous integration shares its cores."""

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
