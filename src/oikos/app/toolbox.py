"""The tools a model is offered (SPEC §2): names, schemas, descriptions. No parameter carries consent (R2.1)."""

from __future__ import annotations

from collections.abc import Mapping

from oikos.domain.run import MAX_TIMEOUT_S
from oikos.ports import ToolSpec

_TEXT: Mapping[str, object] = {"type": "string", "minLength": 1, "maxLength": 16000}
_NAME: Mapping[str, object] = {"type": "string", "minLength": 1, "maxLength": 200}
_OPTIONAL_TEXT: Mapping[str, object] = {"type": "string", "maxLength": 16000}


def _object(required: tuple[str, ...] = (), **properties: Mapping[str, object]) -> Mapping[str, object]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _list(items: Mapping[str, object], description: str = "") -> Mapping[str, object]:
    return {"type": "array", "items": items, **({"description": description} if description else {})}


_PREAUTHORISE = _object(
    ("object",),
    object={**_NAME, "description": "the one thing it may destroy, such as 131"},
    max_uses={"type": "integer", "minimum": 1, "maximum": 10},
    condition={
        "anyOf": [{"type": "string", "enum": ["always"]}, _object(("after_failed",), after_failed={"type": "integer"})]
    },
)
_COMMAND: Mapping[str, object] = {
    "anyOf": [_TEXT, _object(("command",), command=_TEXT, stdin=_OPTIONAL_TEXT, preauthorise=_PREAUTHORISE)]
}
_STEP = _object(("title", "target"), title=_NAME, target=_NAME, commands=_list(_COMMAND), undo=_OPTIONAL_TEXT)
_CHECK = _object(
    ("target", "command"), target=_NAME, command=_TEXT, expect_exit={"type": "integer"}, expect_text=_OPTIONAL_TEXT
)
_CREATES = _object(
    ("name", "kind", "on"),
    name={**_NAME, "description": "host name the new container will have; later steps and checks use it as target"},
    kind={"type": "string", "enum": ["lxc"]},
    on={**_NAME, "description": "the node that it is created on"},
)

TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="set_goal",
        description="State the goal in one sentence. Opens nothing: gather context with list_entities, get_entity and "
        "search_facts, then propose_plan (mandatory, also for read-only work).",
        parameters=_object(("goal",), goal=_TEXT),
    ),
    ToolSpec(
        name="propose_plan",
        description="Propose ordered steps, each with title, target and the exact commands where known, and checks: "
        "read-only commands that prove the goal. A plan that only looks is accepted at once; anything else waits "
        "for the operator. Mark destructive commands you want allowed beforehand with preauthorise.",
        parameters=_object(("steps",), steps=_list(_STEP), checks=_list(_CHECK), creates=_list(_CREATES)),
    ),
    ToolSpec(
        name="update_plan_step",
        description="Mark a step of the live plan running, done, failed or skipped, with a note.",
        parameters=_object(
            ("seq", "status"),
            seq={"type": "integer"},
            status={"type": "string", "enum": ["pending", "running", "done", "failed", "skipped"]},
            note=_OPTIONAL_TEXT,
        ),
    ),
    ToolSpec(
        name="run",
        description="Run one shell command on one target and get its real result. Name the step it belongs to. Inside "
        "an approved plan you may run any ordinary change its goal needs on its machines, also to recover "
        "from a failure. A secret never stands in a command: pass {{secret:NAME}} in stdin, or write "
        "{{secret_file:NAME}} where the program expects a file name, as in --password-file {{secret_file:NAME}}; the "
        "file is on the target while the command runs, readable for its login and root.",
        parameters=_object(
            ("target", "command"),
            target=_NAME,
            command=_TEXT,
            step={"type": "integer"},
            timeout_s={"type": "number", "minimum": 1, "maximum": MAX_TIMEOUT_S},
            background={"type": "boolean"},
            keep={
                "type": "boolean",
                "description": "at the time limit go on in the background instead of being killed",
            },
            stdin=_OPTIONAL_TEXT,
            rerun={**_OPTIONAL_TEXT, "description": "why a command that already succeeded is repeated"},
        ),
    ),
    ToolSpec(
        name="read_output",
        description="Read more of a run's output: a range of lines, or the lines that contain a literal text.",
        parameters=_object(
            ("run",),
            run=_NAME,
            stream={"type": "string", "enum": ["stdout", "stderr"]},
            lines=_list({"type": "integer"}, "first and last line, from 1; negative counts from the end"),
            grep=_NAME,
        ),
    ),
    ToolSpec(
        name="wait",
        description="Let time pass, or wait until a background run ends.",
        parameters=_object(
            ("seconds", "reason"), seconds={"type": "number", "minimum": 0, "maximum": 3600}, reason=_NAME, run=_NAME
        ),
    ),
    ToolSpec(
        name="list_entities",
        description="The machines and other things Oikos knows, with kind, parent, mode and how fresh their facts are.",
        parameters=_object(kind=_NAME),
    ),
    ToolSpec(
        name="get_entity",
        description="Everything known of one entity: facts with source and age.",
        parameters=_object(("name",), name=_NAME),
    ),
    ToolSpec(
        name="search_facts",
        description="Facts whose entity, key or value contains a text.",
        parameters=_object(("query",), query=_NAME),
    ),
    ToolSpec(
        name="update_entity_attributes",
        description="Write what a run showed into the inventory: attribute values of an entity, citing the run's id.",
        parameters=_object(
            ("entity", "attributes", "run"),
            entity=_NAME,
            run=_NAME,
            ttl_s={"type": "number", "minimum": 1},
            attributes={
                "type": "object",
                "properties": {},
                "additionalProperties": {"anyOf": [{"type": t} for t in ("string", "number", "boolean")]},
            },
        ),
    ),
    ToolSpec(
        name="ask_operator",
        description="Ask the operator for what only they have. Ends the turn; their answer resumes it. Of a secret you "
        "get the name, never the value: run takes {{secret:NAME}} in stdin, {{secret_file:NAME}} in the command.",
        parameters=_object(
            ("question",),
            question=_TEXT,
            kind={"type": "string", "enum": ["text", "choice", "secret"]},
            choices=_list(_NAME),
            secret_name=_NAME,
        ),
    ),
    ToolSpec(
        name="complete_task",
        description="End the task: done (verified), failed (what was tried and the state of each touched target) or "
        "nothing_to_do. Write back first. evidence lists the run ids that prove it.",
        parameters=_object(
            ("outcome", "summary"),
            outcome={"type": "string", "enum": ["done", "failed", "nothing_to_do"]},
            summary=_TEXT,
            evidence=_list(_NAME),
        ),
    ),
)

BY_NAME: Mapping[str, ToolSpec] = {tool.name: tool for tool in TOOLS}
