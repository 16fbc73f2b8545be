"""Configuration: one TOML file, every key overridable by environment, and where each value came from.

The file is `$OIKOS_CONFIG`, else `oikos.toml` in the home; never the current directory (security/THREATS T32).
`OIKOS_MODEL_BASE_URL` overrides `[model] base_url`; with `_FILE` appended the value is read from the named file.
Secrets are references, `env:NAME` or `file:PATH`, and are resolved only when they are used (SPEC R5.10).
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import cast

from oikos.app.arguments import BadArguments, check
from oikos.domain.errors import ConfigError
from oikos.domain.inventory import NAME
from oikos.domain.value import dataclass

Raw = dict[str, object]

_STRING: Mapping[str, object] = {"type": "string", "maxLength": 4096}
_POSITIVE: Mapping[str, object] = {"type": "number", "minimum": 1}


def _table(**properties: Mapping[str, object]) -> Mapping[str, object]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


TARGET = _table(
    address=_STRING,
    port={"type": "integer", "minimum": 1, "maximum": 65535},
    user=_STRING,
    key=_STRING,
    via=_STRING,
    transport={"type": "string", "enum": ["ssh", "local", "pct", "docker"]},
    guest=_STRING,
    kind=_STRING,
    parent=_STRING,
    become={"type": "string", "enum": ["none", "sudo"]},
    become_password=_STRING,
    mode={"type": "string", "enum": ["locked", "look", "ask"]},
    aliases={"type": "array", "items": _STRING},
)
SCHEMA = _table(
    model=_table(
        kind={"type": "string", "enum": ["runbook", "provider", "scripted"]},
        name=_STRING,
        base_url=_STRING,
        api_key=_STRING,
        script=_STRING,
        runbooks={"type": "array", "items": _STRING},
        timeout_s=_POSITIVE,
    ),
    database=_table(url=_STRING),
    limits=_table(iterations=_POSITIVE, tokens=_POSITIVE, runs=_POSITIVE, wall_s=_POSITIVE),
    operator=_table(name=_STRING, role={"type": "string", "enum": ["viewer", "operator", "approver", "admin"]}),
    secrets={"type": "object", "properties": {}, "additionalProperties": _STRING},
    targets={"type": "object", "properties": {}, "additionalProperties": TARGET},
    soul=_STRING,
    policy=_table(rules={"type": "array", "items": _STRING}),
)

DEFAULTS: Mapping[str, object] = {
    "model.kind": "runbook",
    "model.name": "",
    "model.base_url": "",
    "model.api_key": "",
    "model.script": "",
    "model.runbooks": [],
    "model.timeout_s": 300.0,
    "database.url": "",
    "limits.iterations": 40.0,
    "limits.tokens": 2_000_000.0,
    "limits.runs": 200.0,
    "limits.wall_s": 14400.0,
    "operator.name": "",
    "operator.role": "admin",
    "soul": "",
    "policy.rules": [],
}
"""Every plain key with its default; tables of targets and secrets have none."""

SECRET_KEYS = frozenset({"model.api_key"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A `[targets.NAME]` table (SPEC R6.0)."""

    name: str
    address: str = ""
    port: int = 22
    user: str = "root"
    key: str = ""
    via: str = ""
    transport: str = "ssh"
    guest: str = ""
    kind: str = "host"
    parent: str = ""
    become: str = "none"
    become_password: str = ""
    mode: str = "ask"
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One setting and where it came from."""

    value: object
    origin: str
    """`default`, `file PATH`, `environment NAME`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything configured, checked."""

    home: Path
    path: Path
    values: Mapping[str, Value]
    targets: Mapping[str, Target] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    """References by name."""

    def text(self, key: str) -> str:
        """A text setting."""
        return cast("str", self.values[key].value)

    def number(self, key: str) -> float:
        """A number setting."""
        return float(cast("float", self.values[key].value))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list setting."""
        return tuple(cast("list[str]", self.values[key].value))

    @property
    def database_path(self) -> Path:
        """The SQLite file."""
        url = self.text("database.url")
        if not url:
            return self.home / "oikos.db"
        if not url.startswith("sqlite:///"):
            raise ConfigError(
                f"database.url: {url.split(':', 1)[0]} is not supported yet: use sqlite:///PATH, or leave it out"
            )
        return Path(url.removeprefix("sqlite:///")).expanduser()


def home(environ: Mapping[str, str] = os.environ) -> Path:
    """Where Oikos keeps its state: `$OIKOS_HOME`, else the user's data directory."""
    given = environ.get("OIKOS_HOME")
    if given:
        return Path(given).expanduser().absolute()
    base = environ.get("XDG_DATA_HOME") or str(Path(environ.get("HOME", "/")) / ".local" / "share")
    return Path(base) / "oikos"


def load(environ: Mapping[str, str] = os.environ, *, path: Path | None = None) -> Config:
    """Read and check the configuration.

    Raises:
        ConfigError: one line that names file, key and what was expected.
    """
    where = home(environ)
    file = path or (Path(environ["OIKOS_CONFIG"]).expanduser() if environ.get("OIKOS_CONFIG") else where / "oikos.toml")
    raw = _read(file, must=path is not None or bool(environ.get("OIKOS_CONFIG")))
    _check(raw, file)
    values: dict[str, Value] = {key: Value(value=value, origin="default") for key, value in DEFAULTS.items()}
    for key, value in _flat(raw):
        values[key] = Value(value=value, origin=f"file {file}")
    for key in DEFAULTS:
        found = _from_environment(key, environ)
        if found is not None:
            values[key] = found
    _known_environment(environ)
    targets = {
        name: _target(name, table, file) for name, table in cast("Mapping[str, Raw]", raw.get("targets", {})).items()
    }
    secrets = cast("Mapping[str, str]", raw.get("secrets", {}))
    for name, reference in secrets.items():
        _check_reference(reference, f"{file}: secrets.{name}")
    for name in SECRET_KEYS:
        place = values[name].origin.replace("file ", "", 1)
        _check_reference(cast("str", values[name].value), f"{place}: {name}")
    _check_ways(targets, file)
    return Config(home=where, path=file, values=values, targets=targets, secrets=secrets)


def resolve_secret(reference: str, environ: Mapping[str, str] = os.environ) -> str:
    """The value behind `env:NAME` or `file:PATH`; an empty reference is an empty value.

    Raises:
        ConfigError: it is not there.
    """
    if not reference:
        return ""
    kind, _, name = reference.partition(":")
    match kind:
        case "env":
            if name not in environ:
                raise ConfigError(f"the secret {reference} is not set: export {name} before you start Oikos")
            return environ[name]
        case "file":
            try:
                return Path(name).expanduser().read_text(encoding="utf-8").rstrip("\n")
            except OSError as error:
                raise ConfigError(
                    f"the secret file {name} cannot be read ({error.strerror}): create it with mode 0600"
                ) from None
            except UnicodeDecodeError:
                raise ConfigError(f"the secret file {name} is not UTF-8 text") from None
        case _:
            raise ConfigError("a secret is given as env:NAME or file:PATH, never as itself")


def _read(file: Path, *, must: bool) -> Raw:
    try:
        info = file.stat()
        data = file.read_bytes()
    except FileNotFoundError:
        if must:
            raise ConfigError(f"there is no configuration file {file}: create it, or unset OIKOS_CONFIG") from None
        return {}
    except OSError as error:
        raise ConfigError(f"{file} cannot be read ({error.strerror})") from None
    if info.st_mode & stat.S_IWOTH or (info.st_uid not in (os.geteuid(), 0)):
        raise ConfigError(f"{file} could be changed by other users: chown it to yourself and chmod 600")
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: {error}") from None


def _check(raw: Raw, file: Path) -> None:
    try:
        check(raw, SCHEMA, "configuration")
    except BadArguments as error:
        raise ConfigError(f"{file}: {error}") from None


def _check_reference(reference: str, where: str) -> None:
    if reference and not reference.startswith(("env:", "file:")):
        raise ConfigError(f"{where}: write a reference, env:NAME or file:PATH, never the secret itself")


def _check_ways(targets: Mapping[str, Target], file: Path) -> None:
    """No way goes in a circle, and every parent is a target. A `via` may also be what `oikos fleet add` added."""
    for target in targets.values():
        if target.parent and target.parent not in targets:
            problem = f"parent names no target: {target.parent}; add [targets.{target.parent}] or leave it out"
            raise ConfigError(f"{file}: targets.{target.name}: {problem}")
        for key in ("via", "parent"):
            passed, name = {target.name}, cast("str", getattr(target, key))
            while name:
                if name in passed:
                    raise ConfigError(
                        f"{file}: targets.{target.name}: {key} goes in a circle ({name}): correct one of them"
                    )
                passed.add(name)
                name = cast("str", getattr(targets[name], key)) if name in targets else ""


def _flat(raw: Raw) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for name, value in raw.items():
        if name in ("targets", "secrets"):
            continue
        if isinstance(value, dict):
            found += [(f"{name}.{key}", item) for key, item in value.items()]
        else:
            found.append((name, value))
    return found


def _variable(key: str) -> str:
    return "OIKOS_" + key.upper().replace(".", "_")


_OWN = frozenset({"OIKOS_HOME", "OIKOS_CONFIG", "OIKOS_LAB_STATE", "OIKOS_LAB_CACHE", "OIKOS_APPROVER_TOKEN"})
"""Variables that are no setting."""


def _known_environment(environ: Mapping[str, str]) -> None:
    known = {_variable(key) for key in DEFAULTS}
    for name in environ:
        if (
            not name.startswith("OIKOS_")
            or name in _OWN
            or name.startswith(("OIKOS_LAB_", "OIKOS_TEST_", "OIKOS_DEMO_"))
        ):
            continue
        if name not in known and name.removesuffix("_FILE") not in known:
            raise ConfigError(f"the environment variable {name} names no setting: `oikos config show` lists them")


def _from_environment(key: str, environ: Mapping[str, str]) -> Value | None:
    name = _variable(key)
    if name in environ:
        return Value(value=_typed(key, environ[name], name), origin=f"environment {name}")
    if f"{name}_FILE" in environ:
        path = environ[f"{name}_FILE"]
        if key in SECRET_KEYS:  # the file is the secret: it is read only when it is used
            return Value(value=f"file:{path}", origin=f"environment {name}_FILE")
        return Value(
            value=_typed(key, _value_in(path, f"{name}_FILE"), f"{name}_FILE"), origin=f"environment {name}_FILE"
        )
    return None


def _value_in(path: str, name: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").rstrip("\n")
    except OSError as error:
        raise ConfigError(f"environment {name}: {path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"environment {name}: {path} is not UTF-8 text") from None


def _typed(key: str, text: str, name: str) -> object:
    table, _, leaf = key.rpartition(".")
    properties = cast("Mapping[str, Mapping[str, object]]", SCHEMA["properties"])
    schema = (
        cast("Mapping[str, Mapping[str, object]]", properties[table]["properties"])[leaf] if table else properties[leaf]
    )
    value: object = text
    try:
        if schema["type"] == "number":
            value = float(text)
        elif schema["type"] == "array":
            value = [item for item in re.split(r"[,:]", text) if item]
        check(value, schema, key)
    except ValueError:
        raise ConfigError(f"environment {name}: {text!r} is no number") from None
    except BadArguments as error:
        raise ConfigError(f"environment {name}: {error}") from None
    return value


def _target(name: str, table: Raw, file: Path) -> Target:
    if not NAME.fullmatch(name):
        rule = "a name is lower-case letters, digits, '.', '_', '-' and begins with a letter or digit"
        raise ConfigError(f"{file}: targets.{name}: {rule}")
    aliases = tuple(cast("list[str]", table.pop("aliases", [])))
    target = Target(name=name, aliases=aliases, **table)  # type: ignore[arg-type]  # checked against TARGET
    needs = {"ssh": ("address",), "pct": ("via", "guest"), "docker": ("via", "guest"), "local": ()}[target.transport]
    for key in needs:
        if not getattr(target, key):
            raise ConfigError(f"{file}: targets.{name}: transport {target.transport} needs {key}")
    if target.become_password and not target.become_password.startswith(("env:", "file:")):
        raise ConfigError(f"{file}: targets.{name}: become_password is a reference, env:NAME or file:PATH")
    return target
