"""Oikos runs the household of a small fleet: one agent, one gate, every byte on record."""
