"""The Wake port: how a session that has something to do is found and woken."""
