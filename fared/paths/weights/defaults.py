"""Defaults of weights that follow load, apart so that the configuration has them without numpy."""

TIME_CONSTANT = 20.0
DEAD_BAND = 0.05
FLOOR = 0.02
