"""`oikos classify --jsonl`: a command is judged with what it is given on standard input."""

from __future__ import annotations

import json

from tests.cli.conftest import Cli


def test_a_line_may_say_what_the_command_is_given(cli: Cli) -> None:
    rows: list[dict[str, object]] = [
        {"id": 1, "command": "bash", "stdin": "uptime\n"},
        {"id": 2, "command": "bash", "stdin": "rm -rf /srv/a\n"},
        {"id": 3, "command": "bash", "stdin": None},
        {"id": 4, "command": "bash", "stdin": 5},
    ]
    ended = cli("classify", "--jsonl", stdin="\n".join(map(json.dumps, rows)))
    told = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.code == 1
    assert [row.get("risk") for row in told] == ["read_only", "destructive", "config_mutation", None]
    assert told[3]["error"] == 'line 4: "stdin" must be a string'
