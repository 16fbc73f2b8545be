"""Evals: a manifest says what is asked and what must then be true; the harness plays and scores it."""
