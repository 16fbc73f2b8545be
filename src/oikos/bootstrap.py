"""The composition root: builds adapters and application from a configuration, and takes them down again.

The only module that builds a Runner. Heavy libraries are imported when the part that needs them is built, so that
a command loads only what it uses.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from oikos import data
from oikos.adapters.clock import SystemClock
from oikos.adapters.secrets import KnownSecrets, SecretFiles
from oikos.adapters.store.sql import SqlStore
from oikos.adapters.wake.local import LocalWake
from oikos.adapters.worker import Worker
from oikos.app.execute import Executor, Standing
from oikos.app.feed import Feed
from oikos.app.fleet import Fleet
from oikos.app.hints import Hints
from oikos.app.nomos import Nomos
from oikos.app.prompt import Prompt, soul
from oikos.app.runs import Runs
from oikos.app.service import Service
from oikos.app.supervisor import Supervisor
from oikos.app.teaching import Teaching
from oikos.app.tools import Tools
from oikos.config import Config, Target, resolve_secret
from oikos.domain.consent import Channel, Principal, Role
from oikos.domain.errors import ConfigError, StoreError, TargetError
from oikos.domain.inventory import AccessPath, Become, Entity, Inventory, Mode, Transport
from oikos.domain.run import RunOrder
from oikos.domain.secret_files import StandIn, named_in, placed
from oikos.domain.state import Budgets
from oikos.domain.verdict import Verdict
from oikos.ports import Classify, Clock, Enroller, Model, Runner, Store, Wake

if TYPE_CHECKING:
    from oikos.adapters.fleet.spool import Filled
    from oikos.policy.classify import Classifier

SELF = "self"
"""Slug of the machine that Oikos itself runs on."""
LAB_MARK = "LAB"
"""A home with this file was made by the lab; only there may operator scripts decide (SPEC R3.6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oikos:
    """A running application."""

    config: Config
    clock: Clock
    store: Store
    service: Service
    supervisor: Supervisor
    feed: Feed
    fleet: Fleet
    runner: Runner
    model: Model
    wake: Wake
    classify: Classify
    secrets: SecretFiles
    lab: bool
    tasks: asyncio.TaskGroup
    """For background work of a face; cancelled when the application closes."""

    async def open_session(self, by: Principal, *, mode: str = "ask") -> str:
        """A new session with the configured model."""
        return await self.service.open(by, model=self.model.name, mode=mode, lab=self.lab)


def new_id() -> str:
    """128 random bits in hex."""
    return secrets.token_hex(16)


@asynccontextmanager
async def open_store(config: Config, clock: Clock | None = None) -> AsyncIterator[Store]:
    """Just the store, for commands that only read.

    Raises:
        StoreError: it cannot be used; one line with the remedy.
    """
    await asyncio.to_thread(prepare_home, config.home)
    store = await SqlStore.open(config.database_path, clock=clock or SystemClock())
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def open_oikos(
    config: Config, *, model: Model | None = None, clock: Clock | None = None, budgets: Budgets | None = None,
    runner: Runner | None = None, work: bool = True, only: Callable[[], str] | None = None,
) -> AsyncIterator[Oikos]:  # fmt: skip
    """The whole application; with `work` its supervisor runs until the context ends.

    `only` names the one session to work on (a CLI that asks one thing); empty means every session.

    Raises:
        ConfigError, StoreError: one line with the remedy.
    """
    clock = clock or SystemClock()
    parts = await asyncio.to_thread(_parts, config, clock, model, runner)
    owner = f"{socket.gethostname()}:{os.getpid()}:{new_id()[:8]}"
    # leaving goes backwards: first every task ends, so that none sees its connection or its store close under it
    async with (
        _closing(parts.model, parts.runner), open_store(config, clock) as store, _alive(store, config.home, owner),
        _children() as tasks,
    ):  # fmt: skip
        await sync_targets(store, config)
        lab = parts.marked and is_lab_fleet(await store.inventory())
        feed, fleet, wake = Feed(store, clock), Fleet(store, clock), LocalWake()
        teaching = Teaching(store, clock, new_id)
        classify = make_classify(lambda: parts.classifier or make_classifier(config), teaching)
        known = parts.secrets
        model, runner = parts.model, parts.runner
        runs = Runs(
            store=store,
            runner=runner,
            clock=clock,
            feed=feed,
            fleet=fleet,
            secrets=known,
            hints=parts.hints,
            tasks=tasks,
        )
        executor = Executor(
            runs=runs, runner=runner, clock=clock, classify=classify, ids=new_id, fleet=fleet,
            standing=standing_of(config),
        )  # fmt: skip
        tools = Tools(store=store, clock=clock, classify=classify, fleet=fleet, executor=executor)
        nomos = Nomos(
            model=model,
            tools=tools,
            executor=executor,
            feed=feed,
            clock=clock,
            secrets=known,
            budgets=budgets or budgets_of(config),
        )
        supervisor = Supervisor(
            store=store, clock=clock, feed=feed, wake=wake, nomos=nomos, runs=runs,
            prompt=lambda: Prompt(parts.soul), owner=owner, tasks=tasks, report=_report,
        )  # fmt: skip
        service = Service(store=store, clock=clock, ids=new_id, feed=feed, wake=wake, secrets=known, runs=runs)
        oikos = Oikos(
            config=config, clock=clock, store=store, service=service, supervisor=supervisor, feed=feed, fleet=fleet,
            runner=runner, model=model, wake=wake, classify=classify, secrets=parts.files, lab=lab, tasks=tasks,
        )  # fmt: skip
        if work:
            tasks.create_task(supervisor.run(only))
        yield oikos


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What is read from files before anything runs; off the event loop, for it blocks."""

    runner: Runner
    model: Model
    classifier: Classifier | None
    """None: the packaged rules, loaded when the first command is judged."""
    hints: Hints
    soul: str
    secrets: KnownSecrets
    files: SecretFiles
    marked: bool


def _parts(config: Config, clock: Clock, model: Model | None, runner: Runner | None) -> _Parts:
    prepare_home(config.home)
    known = KnownSecrets(known_secrets(config))
    files = secret_files(config, known)
    return _Parts(
        runner=runner or make_runner(config, clock, files), model=model or make_model(config, clock),
        classifier=make_classifier(config) if config.texts("policy.rules") else None, hints=Hints(),
        soul=soul_of(config), secrets=known, files=files,
        marked=(config.home / LAB_MARK).is_file(),
    )  # fmt: skip


@asynccontextmanager
async def _closing(model: Model, runner: Runner) -> AsyncIterator[None]:
    """Let go of connections at the end."""
    try:
        yield
    finally:
        await model.close()
        await runner.close()


@asynccontextmanager
async def _alive(store: Store, home: Path, owner: str) -> AsyncIterator[None]:
    """Say that this process lives, and free what the dead of this home held: nobody waits for their leases to end."""
    worker = await asyncio.to_thread(Worker, home / "workers", owner)
    try:
        for dead in await asyncio.to_thread(worker.dead):
            await store.free_leases(dead)
            await asyncio.to_thread(worker.forget, dead)
        yield
    finally:
        await asyncio.to_thread(worker.close)


class _Over(Exception):
    """Ends a task group whose work goes on until it is told to stop."""


@asynccontextmanager
async def _children() -> AsyncIterator[asyncio.TaskGroup]:
    """A TaskGroup whose tasks are cancelled, not awaited, when the block ends; a single failure comes out as itself."""

    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
            raise _Over  # from the body: a child's failure would leave a cancellation on this task (Python 3.11)
    except BaseExceptionGroup as group:
        failures = [error for error in _leaves(group) if not isinstance(error, _Over)]
        if failures:
            raise failures[0] from None


def _leaves(group: BaseException) -> list[BaseException]:
    if isinstance(group, BaseExceptionGroup):
        return [leaf for error in group.exceptions for leaf in _leaves(error)]
    return [group]


def _report(session_id: str, error: Exception) -> None:
    """A defect, one JSON line on standard error: standard output belongs to the face."""
    import structlog

    processors: list[structlog.typing.Processor] = [
        structlog.processors.TimeStamper(fmt="iso", utc=True), structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(),
    ]  # fmt: skip
    log = structlog.wrap_logger(structlog.PrintLogger(sys.stderr), processors=processors)
    log.error("turn failed", session_id=session_id, exc_info=error)


# ---- parts ----------------------------------------------------------------------------------------------------


def prepare_home(home: Path) -> None:
    """The state directory, for its owner only (security/THREATS T27).

    Raises:
        ConfigError: it belongs to somebody else, or cannot be made.
    """
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        info = home.lstat()
    except OSError as error:
        raise ConfigError(
            f"the home {home} cannot be made ({error.strerror}): set OIKOS_HOME to a directory of yours"
        ) from None
    if info.st_uid != os.geteuid():
        raise ConfigError(f"the home {home} belongs to another user: set OIKOS_HOME to a directory of yours")
    if info.st_mode & 0o077:
        home.chmod(0o700)


def is_lab_fleet(inventory: Inventory) -> bool:
    """Whether there are targets and every one of them is a lab host."""
    reachable = [entity for entity in inventory.entities.values() if entity.access is not None and not entity.gone]
    return bool(reachable) and all(entity.lab for entity in reachable)


def budgets_of(config: Config) -> Budgets:
    """The configured limits per plan."""
    return Budgets(
        iterations=config.number("limits.iterations"), tokens=config.number("limits.tokens"),
        runs=config.number("limits.runs"), wall_s=config.number("limits.wall_s"),
    )  # fmt: skip


def known_secrets(config: Config) -> dict[str, str]:
    """Values Oikos itself holds, by name, for exact masking (SPEC R5.10). What is not set yet is skipped."""
    references = {**config.secrets, "model.api_key": config.text("model.api_key")}
    references |= {f"{name}.become_password": target.become_password for name, target in config.targets.items()}
    found: dict[str, str] = {}
    for name, reference in references.items():
        if reference:
            try:
                found[name] = resolve_secret(reference)
            except ConfigError:
                continue  # whoever needs it says so
    return secret_files(config).all() | {name: value for name, value in found.items() if value}


def secret_files(config: Config, known: KnownSecrets | None = None) -> SecretFiles:
    """Where answers to questions of kind secret are kept; what it reads and keeps is masked from then on."""
    return SecretFiles(config.home / "secrets", known)


def soul_of(config: Config) -> str:
    """The system prompt: the operator's own, or the package's (SPEC R8.3)."""
    path = config.text("soul")
    if not path:
        return soul()
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"soul: {path} cannot be read ({error}): correct the path, or leave it out") from None


def make_classifier(config: Config | None = None) -> Classifier:
    """The classifier with the operator's own rules."""
    from oikos.policy import default_classifier
    from oikos.policy.classify import Classifier
    from oikos.policy.knowledge import load
    from oikos.policy.parser import ShfmtParser

    if config is None:
        return default_classifier()
    extra = [Path(path).expanduser() for path in config.texts("policy.rules")]
    return Classifier(ShfmtParser(), load(extra), self_names=("oikos", str(config.home)))


def make_classify(load: Callable[[], Classifier], teaching: Teaching) -> Classify:
    """Classify in a bounded number of worker threads: parsing starts a process. What needs none is judged at once.

    A command with secret files is judged as the shell will read it, with a path in the place of each.
    """
    slots = asyncio.Semaphore(4)
    loaded: list[Classifier] = []

    def judge(text: str, stdin: str | None) -> Verdict:
        if not loaded:
            loaded.append(load())
        return loaded[0].classify(text, stdin)

    async def classify(text: str, target_id: str = "", stdin: str | None = None) -> Verdict:
        # No run is called so: the secret files of real ones are nobody else's to read.
        stand_in = StandIn(command=text, run_id=f"own{new_id()}") if named_in(text) else None
        read = text if stand_in is None else stand_in.text
        verdict = loaded[0].quick(read, stdin) if loaded else None
        if verdict is None:
            async with slots:
                verdict = await asyncio.to_thread(judge, read, stdin)
        if stand_in is not None:
            verdict = stand_in.told(verdict)
        return await teaching.judge(verdict, target_id) if target_id else verdict

    return classify


def make_runner(config: Config, clock: Clock, files: SecretFiles | None = None) -> Runner:
    """Runs on real machines; secrets are put into standard input and files at the very start (SPEC R2.11)."""
    from oikos.adapters.fleet.runner import FleetRunner

    notes = config.home / "runs"
    notes.mkdir(mode=0o700, exist_ok=True)
    fill = None if files is None else partial(_filled, files)
    return FleetRunner(clock=clock, notes=notes, secret=_target_secret, fill=fill)


async def _filled(files: SecretFiles, order: RunOrder) -> Filled:
    """The order as it travels."""
    from oikos.adapters.fleet.spool import Filled

    if files.changed():  # another process was given one since; asking costs no thread's turn
        await asyncio.to_thread(files.refresh)
    names, stdin, held = named_in(order.command), order.stdin, dict[str, str]()
    try:
        if names:
            held = await asyncio.to_thread(files.files, names)
        if stdin is not None:
            stdin = await asyncio.to_thread(files.fill, stdin)
    except ConfigError as error:
        raise TargetError(str(error)) from None
    command = placed(order.command, order.run_id)
    return Filled.of(order, command=command, stdin=stdin, files=held)


def _target_secret(reference: str) -> str:
    try:
        return resolve_secret(reference)
    except ConfigError as error:
        raise TargetError(str(error)) from None


@asynccontextmanager
async def make_enroller() -> AsyncIterator[Enroller]:
    """First contact with machines, for `oikos fleet`."""
    from oikos.adapters.fleet.carrier import Carrier
    from oikos.adapters.fleet.enroll import Enroller as FleetEnroller
    from oikos.adapters.fleet.pool import Pool

    pool = Pool()
    try:
        yield FleetEnroller(Carrier(pool, secret=_target_secret, clock=SystemClock()))
    finally:
        await pool.close()


def make_model(config: Config, clock: Clock) -> Model:
    """The configured model."""
    match config.text("model.kind"):
        case "provider":
            from oikos.adapters.model.endpoint import Deadlines, endpoint
            from oikos.adapters.model.provider import Provider

            base_url, name = config.text("model.base_url"), config.text("model.name")
            if not base_url or not name:
                raise ConfigError(
                    "model.kind is provider: set model.base_url and model.name (an OpenAI-compatible endpoint)"
                )
            deadlines = Deadlines(first_s=config.number("model.timeout_s"))
            key = resolve_secret(config.text("model.api_key"))
            return Provider(endpoint(base_url, name, key=key, deadlines=deadlines), clock=clock)
        case "scripted":
            from oikos.adapters.model.scripted import Scripted, load_script

            script = config.text("model.script")
            if not script:
                raise ConfigError("model.kind is scripted: set model.script to a YAML file")
            return Scripted(load_script(Path(script)))
        case _:
            from oikos.adapters.model.runbook import RunbookBrain
            from oikos.adapters.model.runbook_file import load_runbooks

            directories = [data.path("runbooks"), *(Path(path).expanduser() for path in config.texts("model.runbooks"))]
            return RunbookBrain([book for directory in directories for book in load_runbooks(directory)])


# ---- the fleet of the configuration ----------------------------------------------------------------------------


async def sync_targets(store: Store, config: Config) -> None:
    """Make the inventory's entities what `[targets.NAME]` says (SPEC R6.0); what was enrolled stays."""
    try:
        await _sync_targets(store, config)
    except StoreError:
        await _sync_targets(store, config)  # another process made the same entity at the same moment


async def _sync_targets(store: Store, config: Config) -> None:
    inventory = await store.inventory()
    by_slug = {entity.slug: entity for entity in inventory.entities.values()}
    if SELF not in by_slug and SELF not in config.targets:
        await store.put_entity(controller())
    ids = {name: by_slug[name].id if name in by_slug else new_id() for name in config.targets}
    for name, target in config.targets.items():
        known = by_slug.get(name)
        wanted = entity_of(target, ids.get(target.parent or target.via, ""), known, ids[name])
        if wanted != known:
            await store.put_entity(wanted)


def controller() -> Entity:
    """Oikos's own machine: locked, also as an inner machine, until an admin says otherwise (SPEC R3.13)."""
    names = {socket.gethostname(), socket.gethostname().split(".")[0], "localhost", "127.0.0.1", "::1"}
    return Entity(id=new_id(), kind="controller", slug=SELF, mode=Mode.LOCKED, aliases=tuple(sorted(names)))


def entity_of(target: Target, parent: str, known: Entity | None, entity_id: str) -> Entity:
    """The entity of a configured target, keeping identity, host keys and support found at enrolment."""
    access = AccessPath(
        transport=Transport(target.transport), address=target.address, port=target.port, user=target.user,
        key=str(Path(target.key).expanduser()) if target.key else "", via=target.via, guest=target.guest,
        become=Become(target.become), become_password=target.become_password,
    )  # fmt: skip
    if known is not None and known.access is not None:
        access = replace(access, host_keys=known.access.host_keys, support=known.access.support)
    guest = target.transport in ("pct", "docker")
    kind = (
        target.kind if target.kind != "host" or not guest else {"pct": "lxc", "docker": "container"}[target.transport]
    )
    base = known or Entity(id=entity_id, kind=kind, slug=target.name)
    return replace(base, kind=kind, parent=parent if guest or target.parent else "", mode=Mode(target.mode),
                   access=access,
                   aliases=target.aliases, gone=False)  # fmt: skip


def local_principal(config: Config, *, channel: Channel = Channel.CLI) -> Principal:
    """Who is at the keyboard: the configured operator, else the login user. Attended only at a terminal."""
    name = config.text("operator.name") or _login()
    attended = sys.stdin is not None and sys.stdin.isatty()
    return Principal(id=name, role=Role(config.text("operator.role")), channel=channel, attended=attended)


def standing_of(config: Config) -> Standing:
    """Who still holds the role approver: the person here by the configuration, a token by the token file (SPEC R3.6).

    Of others this process knows nothing; whoever let them in answers for them.
    """
    here = config.text("operator.name") or _login()
    held = Role(config.text("operator.role")).rank >= Role.APPROVER.rank

    async def standing(by: str) -> bool:
        from oikos.web.tokens import ID_PREFIX, Tokens

        if not by.startswith(ID_PREFIX):
            return by != here or held
        try:
            rows = await asyncio.to_thread(Tokens(config.home).rows)
        except ConfigError:
            return False  # a damaged file proves no role
        return any(row.principal.id == by and row.principal.may_approve for row in rows)

    return standing


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid{os.geteuid()}"
