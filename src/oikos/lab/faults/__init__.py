"""Faults a scenario can put in. All act from outside the host, as the world does."""
