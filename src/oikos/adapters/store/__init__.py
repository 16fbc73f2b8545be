"""The Store port on SQL: event streams, runs with their output, facts, consents, read models."""
