"""What every contender is given, and the tool that the peers offer."""

from __future__ import annotations

import os
import subprocess

BASE_URL, WORK, N = os.environ["BASE_URL"], os.environ["WORK"], int(os.environ["N"])
SYSTEM = "You are a careful operations agent. Use the tool until the goal is met."
TASK = "Run the command the scripted number of times, then stop."


def run_tool(command: str) -> str:
    """The command's exit code and output."""
    given = {"capture_output": True, "text": True, "check": False}
    done = subprocess.run(command, shell=True, **given)  # allow: shell - what the peers' own tools do; it is `true N`
    return f"exit {done.returncode}\n{done.stdout}{done.stderr}"
