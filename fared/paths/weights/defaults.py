"""Defaults of weights, apart so that the configuration has them without numpy."""

MAX_PATHS = 64
MAX_WEIGHT = 256
MEASURE_PERIOD = 1.0
TIME_CONSTANT = 20.0
DEAD_BAND = 0.05
FLOOR = 0.02
