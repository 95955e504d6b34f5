"""Tests of the rows and their texts."""
