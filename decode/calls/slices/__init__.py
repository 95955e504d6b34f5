"""Calls as slices of time, with what is too short to be drawn summed up."""
