"""Forks: a simulated hart that goes on from a place of the past, and of which nothing reaches the target."""
