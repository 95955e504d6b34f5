"""Arm CoreSight: the 16-byte frames in which several trace sources share one buffer or one set of pins."""
