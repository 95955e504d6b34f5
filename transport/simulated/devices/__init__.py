"""The trace components of the simulated target, of the Trace Control Interface 1.0, and its tandem-trace port."""
