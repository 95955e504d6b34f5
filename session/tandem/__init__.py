"""Tandem traces in a session: shown group by group, checked against a model, read while they are made."""
