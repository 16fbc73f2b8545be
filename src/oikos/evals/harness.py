"""Plays a manifest: a fresh home, the world's hosts, the model, the scripted operator; then judges (SPEC R9.1)."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

from oikos.adapters.clock import SystemClock
from oikos.adapters.model.scripted import load_script
from oikos.bootstrap import LAB_MARK, Oikos, new_id, open_oikos, open_store, prepare_home
from oikos.config import SECRET_KEYS, Config, Value, load
from oikos.domain import events as ev
from oikos.domain.errors import ConfigError, OikosError, Refusal
from oikos.domain.inventory import Entity, Fact
from oikos.domain.run import Stream
from oikos.domain.session import Phase, State, evolve
from oikos.evals.assertions import Judgement, judge
from oikos.evals.local import LocalScene
from oikos.evals.manifest import LOCAL, Followup, Manifest
from oikos.evals.operator import SCRIPT, Moments, Operator
from oikos.evals.trial import Effort, Scene, Trial, Turn, helps
from oikos.evals.worker import Worker

Build = Callable[[Manifest, int], Scene]
"""Makes the lab hosts of a manifest's world, with its faults, from a seed."""

RESTING = frozenset(set(Phase) - {Phase.EXECUTING, Phase.WAITING})
SCRIPT_FILE = "model.yaml"
PRIVATE = frozenset({"secrets", "approver-token", SCRIPT_FILE})
"""What of a home is meant to hold secrets, or is not written by Oikos."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How one eval went."""

    name: str
    seed: int
    seconds: float
    judgements: tuple[Judgement, ...] = ()
    error: str = ""
    kept: Path | None = None
    """When it failed: database, transcript, the hosts' own logs; of an eval on a server the transcript."""
    remote: bool = False
    """Played on a server: what was kept is no home."""
    effort: Effort = field(default_factory=Effort)
    helped: bool = False
    """Its manifest plays a model that needs help (`max_operator_ticks` above 0)."""

    @property
    def ok(self) -> bool:
        """Everything held."""
        return not self.error and bool(self.judgements) and all(judgement.ok for judgement in self.judgements)


# ---- a home ---------------------------------------------------------------------------------------------------------


def lab_config(
    home: Path,
    model: str,
    script: Path | None,
    environ: Mapping[str, str],
    *,
    limits: Sequence[tuple[str, float]] = (),
    secrets: Sequence[tuple[str, str]] = (),
) -> Config:
    """The configuration of a home made for the lab, written into it; a live model is the operator's own.

    Raises:
        ConfigError: live, and no provider is configured.
    """
    tables: dict[str, dict[str, object]] = {"model": {"kind": model}, "limits": dict(limits), "secrets": {}}
    own: Mapping[str, Value] = _live(environ) if model == "live" else {}
    if own:
        tables["model"] = {key: own[f"model.{key}"].value for key in ("kind", "name", "base_url", "timeout_s")}
    elif script is not None:
        tables["model"]["script"] = str(script)
    prepare_home(home)
    for name, value in secrets:
        file = home / f"given-{name}.secret"
        file.write_text(value, encoding="utf-8")
        tables["secrets"][name] = f"file:{file}"
    (home / "oikos.toml").write_text(_toml(tables), encoding="utf-8")
    config = load({"OIKOS_HOME": str(home), "HOME": environ.get("HOME", "/")})
    keys = {key: own[key] for key in SECRET_KEYS if key in own}  # a key is never written down
    return replace(config, values={**config.values, **keys})


def _live(environ: Mapping[str, str]) -> Mapping[str, Value]:
    own = load(environ)
    if own.text("model.kind") != "provider":
        raise ConfigError("a live model is wanted: set model.kind = provider, model.base_url and model.name")
    return own.values


def _toml(tables: Mapping[str, Mapping[str, object]]) -> str:
    """Texts and numbers only: TOML writes them as JSON does."""
    lines: list[str] = []
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


async def furnish(config: Config, entities: Sequence[Entity], facts: Sequence[Fact] = ()) -> None:
    """Make a home for lab hosts: only in such a one the script channel may decide (SPEC R3.6)."""
    await asyncio.to_thread(_mark, config.home)
    async with open_store(config) as store:
        for entity in entities:
            await store.put_entity(replace(entity, lab=True))
        if facts:
            await store.put_facts(facts)


def _mark(home: Path) -> None:
    prepare_home(home)
    (home / LAB_MARK).write_text("made by the lab\n", encoding="utf-8")


# ---- playing --------------------------------------------------------------------------------------------------------


async def play(
    manifest: Manifest, *, seed: int, home: Path, build: Build, environ: Mapping[str, str], model: str | None = None
) -> tuple[Trial, tuple[Judgement, ...]]:
    """Play one manifest to its end and judge it; what the hosts recorded is kept in the home when it fails.

    Raises:
        OikosError: it could not be played; one line.
    """
    await asyncio.to_thread(prepare_home, home)
    scene = await asyncio.to_thread(_scene, manifest, seed, home, build)
    ok = False
    try:
        async with asyncio.timeout(manifest.timeout_s):
            trial = await _trial(manifest, model or manifest.model, scene, home, environ)
        judgements = [await asyncio.to_thread(judge, assertion, trial, scene) for assertion in manifest.expect]
        problems = "; ".join(trial.audit)
        judgements.append(Judgement(assertion="audit", ok=not problems, saw=problems or "the record is whole"))
        if manifest.script is not None and model is None:
            judgements.append(await asyncio.to_thread(_played, manifest, trial))
        judgements += _happened(manifest, trial, scripted=model is None and manifest.script is not None)
        ok = all(judgement.ok for judgement in judgements)
        return trial, tuple(judgements)
    except TimeoutError:
        raise OikosError(f"not finished after {manifest.timeout_s} s") from None
    finally:
        if scene is not None:
            await asyncio.to_thread(_put_away, scene, home, keep=not ok)


def _scene(manifest: Manifest, seed: int, home: Path, build: Build) -> Scene | None:
    if not manifest.world:
        return None
    if manifest.world != LOCAL:
        return build(manifest, seed)
    return LocalScene(Path(tempfile.mkdtemp(prefix="workshop-")), seed, manifest.files)


def _put_away(scene: Scene, home: Path, *, keep: bool) -> None:
    try:
        if keep:
            for name, text in scene.logs().items():
                (home / f"{name}.log").write_text(text, encoding="utf-8")
    finally:
        scene.close()


async def _trial(manifest: Manifest, model: str, scene: Scene | None, home: Path, environ: Mapping[str, str]) -> Trial:
    values = {**(scene.values if scene is not None else {}), "home": str(home)}
    script = await asyncio.to_thread(_write_script, manifest, home, values) if model == "scripted" else None
    config = await asyncio.to_thread(
        lambda: lab_config(home, model, script, environ, limits=manifest.limits, secrets=manifest.secrets)
    )
    await furnish(config, *_known(manifest, scene))
    operator = Operator(manifest.operator, values)
    worker = Worker(home, environ) if manifest.crash else None
    try:
        async with open_oikos(config, work=worker is None) as oikos:
            talk = _Talk(manifest, oikos, scene, values, operator, worker)
            await talk.through()
            outputs = await _outputs(oikos)
            audit = await oikos.store.verify()
            inventory = await oikos.store.inventory()
    finally:
        if worker is not None:
            await worker.kill()
    return Trial(
        turns=tuple(talk.turns),
        inventory=inventory,
        outputs=outputs,
        ticks=sum(turn.ticks for turn in talk.turns),
        audit=audit.problems,
        hosts=frozenset(entity.slug for entity in scene.entities) if scene is not None else frozenset(),
        files=await asyncio.to_thread(_kept, home),
        crashes=talk.crashes,
        faults=talk.faults,
        unused=operator.unused,
    )


def _write_script(manifest: Manifest, home: Path, values: Mapping[str, str]) -> Path:
    """The script with the values of this play; the model of a killed process reads it again."""
    assert manifest.script is not None, "a scripted manifest has a script"
    text = manifest.script.read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    file = home / SCRIPT_FILE
    file.write_text(text, encoding="utf-8")
    return file


def _known(manifest: Manifest, scene: Scene | None) -> tuple[list[Entity], list[Fact]]:
    """The world's hosts and what the manifest adds to the inventory."""
    entities = {entity.slug: entity for entity in (scene.entities if scene is not None else ())}
    facts: list[Fact] = []
    now_s = SystemClock().now().wall_s
    for known in manifest.entities:
        entity = entities.get(known.name) or Entity(id=new_id(), kind=known.kind, slug=known.name)
        parent = entities[known.parent].id if known.parent in entities else entity.parent
        entities[known.name] = replace(entity, parent=parent, mode=known.mode or entity.mode)
        facts += [
            Fact(entity_id=entity.id, key=key, value=json.dumps(value), source="import:manifest", observed_s=now_s)
            for key, value in known.facts
        ]
    return list(entities.values()), facts


async def _outputs(oikos: Oikos) -> dict[str, bytes]:
    return {
        row.run_id: await oikos.store.output(row.run_id, Stream.OUT) + await oikos.store.output(row.run_id, Stream.ERR)
        for row in await oikos.store.runs(limit=10_000)
    }


def _kept(home: Path) -> bytes:
    """Whatever Oikos wrote to disk."""
    found = [file for file in home.rglob("*") if file.is_file() and file.suffix != ".secret"]
    return b"\n".join(file.read_bytes() for file in sorted(found) if file.relative_to(home).parts[0] not in PRIVATE)


def _played(manifest: Manifest, trial: Trial) -> Judgement:
    """Whether the script was played to its end: one that broke off early would prove nothing."""
    assert manifest.script is not None, "asked of scripted manifests only"
    wanted = len(load_script(manifest.script).turns)
    said: Counter[str] = Counter(
        record.session_id for record in trial.records() if isinstance(record.event, ev.AssistantSaid)
    )
    most = max(said.values(), default=0)
    broken = [
        state.blocked.reason
        for state in (turn.state for turn in trial.turns)
        if state.blocked and state.blocked.on == "model"
    ]
    saw = "; ".join((f"{most} of {wanted} responses", *broken))
    return Judgement(assertion="script", ok=most >= wanted and not broken, saw=saw)


def _happened(manifest: Manifest, trial: Trial, *, scripted: bool) -> list[Judgement]:
    """Whether all that was to go wrong did, and a script made the operator decide all that the manifest foresees.

    Of a model that is free in what it does no rule need be used.
    """
    kills, faults = len(manifest.crash), sum(bool(fault.at) for fault in manifest.faults)
    decided = len(manifest.operator) if scripted else 0
    told = (
        ("crash", trial.crashes, kills), ("faults", trial.faults, faults),
        ("operator", decided - len(trial.unused), decided),
    )  # fmt: skip
    unused = "".join(f"; not used: when {rule.when}, {rule.do}" for rule in trial.unused)
    return [
        Judgement(assertion=name, ok=was == wanted, saw=f"{was} of {wanted}{unused if name == 'operator' else ''}")
        for name, was, wanted in told
        if wanted
    ]


class _Talk:
    """The operator's messages, one turn after the other, and the kills in between."""

    def __init__(
        self,
        manifest: Manifest,
        oikos: Oikos,
        scene: Scene | None,
        values: Mapping[str, str],
        operator: Operator,
        worker: Worker | None,
    ) -> None:
        self._manifest = manifest
        self._oikos = oikos
        self._scene = scene
        self._values = values
        self._operator = operator
        self._worker = worker
        self._seen = 0
        self._faults = tuple(fault for fault in manifest.faults if fault.at)
        self._moments = Moments()
        self.turns: list[Turn] = []
        self.crashes = 0
        self.faults = 0

    async def through(self) -> None:
        """All turns."""
        if self._worker is not None:
            await self._worker.start()
        session_id = ""
        for message in (Followup(text=self._manifest.prompt, fresh=True), *self._manifest.followups):
            if message.fresh:
                session_id = await self._oikos.open_session(SCRIPT, mode="look" if self._manifest.look else "ask")
                self._seen = 0
            before = self._seen
            text = self._fill(message.text)
            state = await self._turn(session_id, text)
            truth = {**self._values, **(await asyncio.to_thread(self._scene.truth) if self._scene is not None else {})}
            records = tuple(await self._oikos.service.history(session_id, after=before))
            ticks = helps(records, session_id, self._operator.pushes)
            turn = Turn(session_id=session_id, text=text, state=state, records=records, truth=truth, ticks=ticks)
            self.turns.append(turn)
            self._seen = state.seq

    def _fill(self, text: str) -> str:
        if self._scene is not None:
            text = text.replace("{prompt}", self._scene.prompt).replace("{followup}", self._scene.followup)
        for name, value in self._values.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    async def _turn(self, session_id: str, text: str) -> State:
        """Send a message and let the scripted operator decide until the session rests."""
        sent = await self._oikos.service.send(session_id, text, SCRIPT)
        if isinstance(sent, Refusal):
            raise OikosError(f"the message was refused ({sent.code}): {sent.text}")
        seq = sent.seq
        while True:
            state = await rest(self._oikos, session_id, seq, self._meddle)
            card = await self._oikos.service.card(session_id)
            done = await self._operator.decide(self._oikos.service, card) if card is not None else None
            if done is None:
                return state
            seq = done.seq

    async def _meddle(self, record: ev.Recorded) -> None:
        """The next fault and the next crash of the manifest, and what the operator does unasked, after their event."""
        if record.seq <= self._seen:
            return
        self._seen = record.seq
        kind = self._moments.kind(record.event)
        if not kind:
            return
        if self._scene is not None and self.faults < len(self._faults) and self._faults[self.faults].at == kind:
            fault = self._faults[self.faults]
            self.faults += 1
            await asyncio.sleep(fault.after_s * self._manifest.pace)
            await asyncio.to_thread(self._scene.inject, fault.host, fault.fault, fault.words)
        crashes = self._manifest.crash
        if self._worker is not None and self.crashes < len(crashes) and crashes[self.crashes].at == kind:
            crash = crashes[self.crashes]
            self.crashes += 1
            await asyncio.sleep(crash.after_s)
            await self._worker.kill()
            await self._worker.start()
        state = await self._oikos.service.state(record.session_id)
        rule = self._operator.after(kind, state.generation)
        if rule is not None:
            await asyncio.sleep(rule.after_s)
            await self._operator.interrupt(self._oikos.service, record.session_id, rule)


Watch = Callable[[ev.Recorded], Awaitable[None]]


async def rest(oikos: Oikos, session_id: str, after: int, watch: Watch | None = None) -> State:
    """Wait until the session is neither executing nor waiting and no turn holds it (SPEC R9.1)."""
    state = State()
    async with aclosing(oikos.feed.follow(session_id, ephemeral=False)) as items:
        async for item in items:
            if not isinstance(item, ev.Recorded):
                continue
            if watch is not None:
                await watch(item)
            state = evolve(state, item)
            if state.seq >= after and state.phase in RESTING and not state.turn:
                newest = await oikos.service.state(session_id)
                if newest.seq == state.seq:
                    return state
    raise OikosError("the feed ended by itself")
