"""Hypothesis without deadlines: a busy machine is no defect."""

from hypothesis import settings

settings.register_profile("tailtrace", deadline=None)
settings.load_profile("tailtrace")
