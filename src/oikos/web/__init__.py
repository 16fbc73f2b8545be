"""The HTTP face: bearer tokens, routes, the event stream, and the server around them (SPEC R7.1)."""
