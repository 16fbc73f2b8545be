"""The chain of migrations: forward only; a released one is never edited, for databases have passed it."""
