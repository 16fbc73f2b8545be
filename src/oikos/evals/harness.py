"""Plays a manifest: a fresh home, the world's hosts, the model, the scripted operator; then judges (SPEC R9.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

from oikos.app.service import Card, Done
from oikos.bootstrap import LAB_MARK, Oikos, new_id, open_oikos, open_store, prepare_home
from oikos.config import Config, Value, load
from oikos.domain import events as ev
from oikos.domain.consent import Channel, Principal, Role
from oikos.domain.errors import ConfigError, OikosError, Refusal
from oikos.domain.inventory import Entity
from oikos.domain.run import Stream
from oikos.domain.session import Phase, State, evolve
from oikos.evals.assertions import Judgement, judge
from oikos.evals.manifest import Manifest, OperatorRule
from oikos.evals.trial import Scene, Trial, Turn

Build = Callable[[str, int], Scene]
"""Makes a world's hosts: name of the world, seed."""

RESTING = frozenset(set(Phase) - {Phase.EXECUTING, Phase.WAITING})
SCRIPT = Principal(id="script", role=Role.APPROVER, channel=Channel.SCRIPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How one eval went."""

    name: str
    seed: int
    seconds: float
    judgements: tuple[Judgement, ...] = ()
    error: str = ""
    home: Path | None = None
    """Kept when it failed: database and transcript."""

    @property
    def ok(self) -> bool:
        """Everything held."""
        return not self.error and bool(self.judgements) and all(judgement.ok for judgement in self.judgements)


def lab_config(home: Path, model: str, script: Path | None, environ: Mapping[str, str]) -> Config:
    """The configuration of a home made for the lab; a live model is the operator's own.

    Raises:
        ConfigError: live, and no provider is configured.
    """
    settings = load({k: v for k, v in environ.items() if k not in ("OIKOS_HOME",)}) if model == "live" else None
    base = load({"OIKOS_HOME": str(home), "HOME": environ.get("HOME", "/")})
    values = dict(base.values)
    if settings is not None:
        if settings.text("model.kind") != "provider":
            raise ConfigError("the manifest wants a live model: set model.kind = provider, model.base_url and model.name")
        values |= {key: value for key, value in settings.values.items() if key.startswith("model.")}
    else:
        values["model.kind"] = Value(value=model, origin="manifest")
        values["model.script"] = Value(value=str(script or ""), origin="manifest")
    return replace(base, values=values, secrets=settings.secrets if settings is not None else base.secrets)


async def furnish(config: Config, entities: tuple[Entity, ...]) -> None:
    """Make a home for lab hosts: only in such a one the script channel may decide (SPEC R3.6)."""
    prepare_home(config.home)
    (config.home / LAB_MARK).write_text("made by the lab\n", encoding="utf-8")
    async with open_store(config) as store:
        for entity in entities:
            await store.put_entity(replace(entity, lab=True))


async def play(manifest: Manifest, *, seed: int, home: Path, build: Build, environ: Mapping[str, str],
               model: str | None = None) -> tuple[Trial, tuple[Judgement, ...]]:  # fmt: skip
    """Play one manifest to its end and judge it.

    Raises:
        OikosError: it could not be played; one line.
    """
    scene = await asyncio.to_thread(build, manifest.world, seed) if manifest.world else None
    try:
        config = lab_config(home, model or manifest.model, manifest.script, environ)
        await furnish(config, (*(scene.entities if scene is not None else ()), *_known(manifest, scene)))
        async with asyncio.timeout(manifest.timeout_s):
            trial = await _session(manifest, config, scene)
        judgements = [await asyncio.to_thread(judge, assertion, trial, scene) for assertion in manifest.expect]
        problems = "; ".join(trial.audit)
        judgements.append(Judgement(assertion="audit", ok=not problems, saw=problems or "the record is whole"))
        return trial, tuple(judgements)
    except TimeoutError:
        raise OikosError(f"not finished after {manifest.timeout_s} s") from None
    finally:
        if scene is not None:
            await asyncio.to_thread(scene.close)


def _known(manifest: Manifest, scene: Scene | None) -> tuple[Entity, ...]:
    by_slug = {entity.slug: entity.id for entity in scene.entities} if scene is not None else {}
    return tuple(
        Entity(id=new_id(), kind=known.kind, slug=known.name, parent=by_slug.get(known.parent, "")) for known in manifest.entities
    )


async def _session(manifest: Manifest, config: Config, scene: Scene | None) -> Trial:
    async with open_oikos(config) as oikos:
        session_id = await oikos.open_session(SCRIPT, mode="look" if manifest.look else "ask")
        operator = _Operator(manifest.operator)
        turns: list[Turn] = []
        for text in (manifest.prompt, *manifest.followups):
            message = _message(text, scene)
            state, records = await _turn(oikos, session_id, message, operator, after=turns[-1].state.seq if turns else 0)
            truth = await asyncio.to_thread(scene.truth) if scene is not None else {}
            turns.append(Turn(text=message, state=state, records=records, truth=truth))
        rows = await oikos.store.runs(session_id=session_id, limit=10_000)
        outputs = {
            row.run_id: await oikos.store.output(row.run_id, Stream.OUT) + await oikos.store.output(row.run_id, Stream.ERR)
            for row in rows
        }
        audit = await oikos.store.verify()
        return Trial(
            session_id=session_id, turns=tuple(turns), inventory=await oikos.store.inventory(), outputs=outputs, ticks=operator.ticks,
            hosts=frozenset(e.slug for e in scene.entities) if scene is not None else frozenset(), audit=audit.problems,
        )  # fmt: skip


def _message(text: str, scene: Scene | None) -> str:
    if scene is None:
        return text
    return text.replace("{prompt}", scene.prompt).replace("{followup}", scene.followup)


async def _turn(oikos: Oikos, session_id: str, text: str, operator: _Operator, *, after: int) -> tuple[State, tuple[ev.Recorded, ...]]:
    """Send a message and let the scripted operator decide until the session rests."""
    sent = await oikos.service.send(session_id, text, SCRIPT)
    if isinstance(sent, Refusal):
        raise OikosError(f"the message was refused ({sent.code}): {sent.text}")
    seq = sent.seq
    while True:
        state = await rest(oikos, session_id, seq)
        card = await oikos.service.card(session_id)
        rule = operator.rule_for(card) if card is not None else None
        if card is None or rule is None:
            records = tuple(await oikos.service.history(session_id, after=after))
            return state, records
        done = await operator.act(oikos, card, rule)
        if isinstance(done, Refusal):
            raise OikosError(f"the scripted operator was refused ({done.code}): {done.text}")
        seq = done.seq


async def rest(oikos: Oikos, session_id: str, after: int) -> State:
    """Wait until the session is neither executing nor waiting and no turn holds it (SPEC R9.1)."""
    state = State()
    async with aclosing(oikos.feed.follow(session_id, ephemeral=False)) as items:
        async for item in items:
            if not isinstance(item, ev.Recorded):
                continue
            state = evolve(state, item)
            if state.seq >= after and state.phase in RESTING and not state.turn:
                newest = await oikos.service.state(session_id)
                if newest.seq == state.seq:
                    return state
    raise OikosError("the feed ended by itself")


class _Operator:
    """The operator script: the first rule that fits and is not used up."""

    def __init__(self, rules: tuple[OperatorRule, ...]) -> None:
        self._rules = list(rules)
        self._used = [0] * len(rules)
        self.ticks = 0

    def rule_for(self, card: Card) -> OperatorRule | None:
        for number, rule in enumerate(self._rules):
            if rule.when != card.kind or self._used[number] >= rule.times:
                continue
            if rule.generation is not None and rule.generation != card.generation:
                continue
            self._used[number] += 1
            return None if rule.do == "leave" else rule
        return None

    async def act(self, oikos: Oikos, card: Card, rule: OperatorRule) -> Done | Refusal:
        service, session_id = oikos.service, card.session_id
        match rule.do:
            case "approve":
                return await service.approve(session_id, card, SCRIPT)
            case "reject":
                return await service.reject(session_id, SCRIPT, reason=rule.text)
            case "changes":
                self.ticks += 1
                return await service.ask_for_changes(session_id, rule.text, SCRIPT)
            case "confirm":
                return await service.confirm(session_id, rule.text, SCRIPT)
            case "answer":
                self.ticks += 1
                return await service.send(session_id, rule.text, SCRIPT)
            case _:
                raise OikosError(f"the scripted operator cannot {rule.do}")
