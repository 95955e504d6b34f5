"""Tests of `reports.pgo`."""
