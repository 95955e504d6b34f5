"""Arm's trace bus as devices on the simulated bus: bridges that lead there, funnels, replicators, and TMCs."""
