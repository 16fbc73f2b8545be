"""The arguments of a tool call: JSON text checked strictly against the tool's own schema.

Model output is never trusted and never an exception: what does not fit becomes one sentence that the model can
act on (SPEC R8.1). The subset of JSON Schema is the one that `oikos.app.toolbox` uses; the schema that the model
is shown and the schema that is enforced are one object.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

import orjson

from oikos.domain.mask import Secrets, mask_text

MAX_ARGUMENT_BYTES = 256 * 1024

Schema = Mapping[str, object]
_NAMES = {"string": "a string", "integer": "a whole number", "number": "a number", "boolean": "true or false",
          "array": "a list", "object": "an object"}  # fmt: skip


class BadArguments(Exception):
    """The call does not fit its tool; the text says where and what was expected."""


def parse(text: str, schema: Schema) -> dict[str, object]:
    """The arguments as an object that fits the schema.

    Raises:
        BadArguments: not JSON, not an object, an unknown or missing or wrongly typed field.
    """
    if len(text) > MAX_ARGUMENT_BYTES:
        raise BadArguments(f"the arguments are longer than {MAX_ARGUMENT_BYTES} characters")
    if "\\u0000" in text:
        raise BadArguments("a NUL character cannot be used")
    try:
        value = orjson.loads(text.encode("utf-8", "replace")) if text.strip() else {}
    except orjson.JSONDecodeError as error:
        raise BadArguments(f"the arguments are not valid JSON: {error}") from None
    check(value, schema, "arguments")
    return cast("dict[str, object]", value)


def check(value: object, schema: Schema, where: str) -> None:
    """Check a decoded value against a schema.

    Raises:
        BadArguments: says where and what was expected.
    """
    if "anyOf" in schema:
        return _check_any(value, cast("Sequence[Schema]", schema["anyOf"]), where)
    kind = cast("str", schema["type"])
    if not _fits(value, kind):
        raise BadArguments(f"{where} must be {_NAMES[kind]}")
    if "enum" in schema and value not in cast("Sequence[object]", schema["enum"]):
        raise BadArguments(f"{where} must be one of {', '.join(map(str, cast('Sequence[object]', schema['enum'])))}")
    match value:
        case str():
            _check_text(value, schema, where)
        case bool():
            pass
        case int() | float():
            _check_number(value, schema, where)
        case list():
            items = cast("Schema", schema["items"])
            for number, item in enumerate(value):
                check(item, items, f"{where}[{number}]")
        case dict():
            _check_object(value, schema, where)
        case _:
            pass


def _check_any(value: object, options: Sequence[Schema], where: str) -> None:
    wrong: list[str] = []
    for option in options:
        try:
            return check(value, option, where)
        except BadArguments as error:
            wrong.append(str(error))
    raise BadArguments(" or ".join(dict.fromkeys(wrong)))


def _fits(value: object, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


def _check_text(value: str, schema: Schema, where: str) -> None:
    least = cast("int", schema.get("minLength", 0))
    most = cast("int", schema.get("maxLength", MAX_ARGUMENT_BYTES))
    if len(value.strip()) < least:
        raise BadArguments(f"{where} is empty")
    if len(value) > most:
        raise BadArguments(f"{where} is longer than {most} characters")


def _check_number(value: float, schema: Schema, where: str) -> None:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and value < cast("float", low):
        raise BadArguments(f"{where} must be at least {low}")
    if high is not None and value > cast("float", high):
        raise BadArguments(f"{where} must be at most {high}")


def _check_object(value: Mapping[str, object], schema: Schema, where: str) -> None:
    properties = cast("Mapping[str, Schema]", schema.get("properties", {}))
    for name in cast("Sequence[str]", schema.get("required", ())):
        if name not in value:
            raise BadArguments(f"{where} lacks {name}")
    extra = schema.get("additionalProperties", False)
    for name, item in value.items():
        if name in properties:
            check(item, properties[name], f"{where}.{name}" if where not in ("arguments", "configuration") else name)
        elif extra is False:
            known = ", ".join(properties) or "none"
            raise BadArguments(f"{where} has the unknown field {name}; known are: {known}")
        elif isinstance(extra, Mapping):
            check(item, cast("Schema", extra), f"{where}.{name}")


def mask_arguments(text: str, secrets: Secrets) -> str:
    """The arguments without secrets, still JSON when they were.

    Each string is masked by itself, as the command or text that it is; then the whole, for keys that look secret.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return mask_text(text, secrets)
    masked = _mask_strings(value, secrets)
    inside = text if masked == value else orjson.dumps(masked).decode()
    whole = mask_text(inside, secrets)
    try:
        orjson.loads(whole)
    except orjson.JSONDecodeError:  # the marker fell across the syntax
        return inside
    return whole


def _mask_strings(value: object, secrets: Secrets) -> object:
    match value:
        case str():
            return mask_text(value, secrets)
        case list():
            return [_mask_strings(item, secrets) for item in value]
        case dict():
            return {key: _mask_strings(item, secrets) for key, item in value.items()}
        case _:
            return value
