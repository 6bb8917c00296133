"""Weights that follow load: their gain, their stability, their announcements."""
