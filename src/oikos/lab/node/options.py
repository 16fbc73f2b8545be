"""Command-line arguments as a node takes them: `--key value`, `--key=value`, `-key value`, positionals."""

from __future__ import annotations

import re

from oikos.lab.node.errors import Die, bad_parameter

NUMBERS = frozenset("memory swap cores cpuunits onboot unprivileged start protection console tty template".split())
SETTINGS = (NUMBERS - {"start"}) | frozenset(
    "hostname description arch ostype rootfs features tags nameserver searchdomain cpulimit lock startup timezone "
    "hookscript".split()
)
CREATE_ONLY = frozenset(
    "storage password ssh-public-keys start force pool ignore-unpack-errors unique bwlimit restore".split()
)
INDEXED = re.compile(r"(net|mp|dev|unused)\d+")
HOSTNAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9-]+)*")
LEAST_MEMORY = 16


def usage(verb: str, positional: tuple[str, ...]) -> str:
    return f"pct {verb} " + " ".join(f"<{name}>" for name in positional) + " [OPTIONS]"


def parse(verb: str, argv: list[str], positional: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """Positionals, exactly as many as named, and options. Raises: Die."""
    found: list[str] = []
    options: dict[str, str] = {}
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            found += rest
            break
        option = re.fullmatch(r"--?([A-Za-z][A-Za-z0-9-]*)(?:=(.*))?", word, re.DOTALL)
        if option is None:
            found.append(word)
        elif option[2] is not None:
            options[option[1]] = option[2]
        else:
            takes = bool(rest) and re.match(r"--?[A-Za-z]", rest[0]) is None
            options[option[1]] = rest.pop(0) if takes else "1"
    if len(found) != len(positional):
        few = "not enough" if len(found) < len(positional) else "too many"
        raise Die(f"400 {few} arguments\n{usage(verb, positional)}")
    for name, value in zip(positional, found, strict=True):
        if name in ("vmid", "newid") and re.fullmatch(r"[1-9]\d{2,8}", value) is None:
            raise bad_parameter(
                name, f"invalid format - value does not look like a valid VM ID\n{usage(verb, positional)}"
            )
    return found, options


def check(verb: str, options: dict[str, str], extra: frozenset[str] = frozenset()) -> None:
    """Refuse unknown options and values of the wrong kind. Raises: Die."""
    for key, value in options.items():
        if key not in SETTINGS and key not in extra and INDEXED.fullmatch(key) is None:
            raise Die(f"Unknown option: {key}\n400 unable to parse option\n{usage(verb, ('vmid',))}")
        if key in NUMBERS and not value.isdigit():
            raise bad_parameter(key, f"type check ('integer') - got '{value}'\n{usage(verb, ('vmid',))}")
    if int(options.get("memory", LEAST_MEMORY)) < LEAST_MEMORY:
        raise bad_parameter("memory", f"value must have a minimum value of {LEAST_MEMORY}")
    if HOSTNAME.fullmatch(options.get("hostname", "x")) is None:
        raise bad_parameter("hostname", "invalid format - value does not look like a valid DNS name")


def properties(text: str, default: str | None = None) -> dict[str, str]:
    """`a=1,b=2` as a mapping; a part without `=` gets the default key."""
    found: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if equals:
            found[key] = value
        elif default is not None:
            found[default] = part
    return found
