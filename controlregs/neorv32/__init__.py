"""NEORV32's TRACER, which is not of the Trace Control Interface: its registers, and the procedures that use them."""
