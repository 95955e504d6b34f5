"""Tests of the CoreSight components."""
