"""The Model port: a provider over HTTP, the runbook brain, a script for tests."""
