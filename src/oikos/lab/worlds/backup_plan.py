"""What the seed decides about the `backup` world: every name, path, time and fault of it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal, get_args

from oikos.lab.worlds.world import draws

Fault = Literal["stale_lock", "not_mounted", "not_readable", "no_destination"]
FAULTS: tuple[Fault, ...] = get_args(Fault)

HOSTS = ("vault", "attic", "cellar", "larder", "barn", "depot", "keep", "silo")
UNITS = (
    ("cloud-backup", "Cloud backup"),
    ("rclone-backup", "Nightly copy to the cloud"),
    ("offsite-sync", "Off-site copy"),
    ("remote-backup", "Backup to the remote"),
    ("cloud-archive", "Nightly cloud archive"),
    ("offsite-mirror", "Mirror of the house to the cloud"),
)
RUNNERS = ("backup-runner", "sync-runner", "backup-jobs", "archive-runner", "mirror-jobs")
JOBS = ("photos", "repos", "documents", "music", "recipes", "letters", "manuals", "scans", "notes", "ledgers")
TARGETS = ("/mnt/offsite", "/mnt/remote", "/mnt/cloud", "/mnt/bucket", "/mnt/coldstore")
OLD_PLACES = ("/srv", "/srv/data", "/srv/nas", "/data", "/srv/share")
NEW_PLACES = ("/srv/archive", "/data/house", "/tank/family", "/home/shared", "/srv/pool", "/tank/store", "/data/moved")
EXTENSIONS = {"photos": "jpg", "music": "flac", "scans": "pdf", "manuals": "pdf", "ledgers": "csv"}
#: A timer that fires while the scenario runs would be another story.
QUIET_MINUTES = 180


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """`files` maps relative paths to text, as the source directory holds them now."""

    name: str
    source: str
    files: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupPlan:
    """`failing` was moved from its `source` to `moved_to` by hand; `failed_nights` is how often the log says so."""

    seed: int
    host: str
    timer: str
    description: str
    service: str
    program: str
    hour: int
    minute: int
    target: str
    disk: str
    jobs: tuple[Job, ...]
    failing: Job
    moved_to: str
    since_moved: str
    nights: int
    failed_nights: int
    fault: Fault
    lock_pid: int

    @property
    def schedule(self) -> str:
        return f"*-*-* {self.hour:02}:{self.minute:02}:00"

    @property
    def config(self) -> str:
        return f"/etc/{self.program}/{self.program}.conf"

    @property
    def jobs_dir(self) -> str:
        return f"/etc/{self.program}/jobs.d"

    @property
    def log(self) -> str:
        return f"/var/log/{self.program}/runs.jsonl"

    def job_config(self, job: Job) -> str:
        return f"{self.jobs_dir}/{job.name}.conf"

    def dest(self, job: Job) -> str:
        return f"{self.target}/{job.name}"


def plan(seed: int, minute_of_day: int, fault: Fault | None = None) -> BackupPlan:
    """Draw a plan.

    `minute_of_day` is the host's clock now: a schedule that would fire within the next QUIET_MINUTES is put off by
    twice that. A given `fault` overrides the drawn one and changes nothing else.
    """
    rng = draws("backup", seed)
    name, description = rng.choice(UNITS)
    # Half of the houses let a timer start a service of another name.
    service = name if rng.random() < 0.5 else rng.choice(RUNNERS)
    at = rng.randrange(24) * 60 + rng.choice((5, 10, 15, 20, 30, 40, 45, 50))
    if (at - minute_of_day) % 1440 <= QUIET_MINUTES:
        at = (at + 2 * QUIET_MINUTES) % 1440
    jobs = tuple(_job(rng, job) for job in sorted(rng.sample(JOBS, rng.choice((2, 3)))))
    failing = rng.choice(jobs)
    moved_to = f"{rng.choice(NEW_PLACES)}/{failing.name}"
    nights = rng.randint(9, 20)
    drawn = rng.choice(FAULTS)
    target = rng.choice(TARGETS)
    return BackupPlan(
        seed=seed,
        host=f"{rng.choice(HOSTS)}-{rng.randint(2, 9)}",
        timer=name,
        description=description,
        service=service,
        program=name,
        hour=at // 60,
        minute=at % 60,
        target=target,
        disk=f"/var/lib/disks/{target.rpartition('/')[2]}",
        jobs=jobs,
        failing=failing,
        moved_to=moved_to,
        since_moved=f"new-{rng.randrange(1000, 10000)}.txt",
        nights=nights,
        failed_nights=rng.randint(1, 5),
        fault=fault or drawn,
        lock_pid=rng.randint(20_000, 60_000),
    )


def _job(rng: random.Random, name: str) -> Job:
    suffix = EXTENSIONS.get(name, "txt")
    files = {}
    for number in range(rng.randint(6, 14)):
        folder = rng.choice(("", f"{rng.randint(2015, 2026)}/", f"{rng.choice(('old', 'new', 'misc'))}/"))
        files[f"{folder}{name[:3]}-{number:03}.{suffix}"] = f"{name} {number} {rng.getrandbits(64):016x}\n"
    return Job(name=name, source=f"{rng.choice(OLD_PLACES)}/{name}", files=files)
