"""Tests of session/packs."""
