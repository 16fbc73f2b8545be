"""What the seed decides about the `service_down` world: which service, and which of five ways it is broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from oikos.lab.worlds.world import draws

Variant = Literal["missing_binary", "bad_user", "bad_directory", "flapping", "port_taken"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)

HOSTS = ("porch", "hall", "study", "kitchen", "loft", "garden", "parlour")
APPS = ("dashboard", "wiki", "bookmarks", "cookbook", "albums", "inventory", "journaler", "weather", "tasks", "library")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    """`program` is where the binary really is; `user` and `directory` are what the unit should say."""

    seed: int
    variant: Variant
    host: str
    app: str
    neighbour: str
    user: str
    wrong_user: str
    version: str
    wrong_version: str
    port: int
    neighbour_port: int
    directory: str
    wrong_directory: str
    page: str

    @property
    def unit(self) -> str:
        return f"{self.app}.service"

    @property
    def program(self) -> str:
        return f"/opt/{self.app}/{self.version}/{self.app}-server"

    @property
    def test_directory(self) -> str:
        """Somebody's trial page; the leftover process of variant port_taken serves it."""
        return f"/opt/{self.app}/test"

    @property
    def wrong(self) -> str:
        """What the cause is: the value in the unit, the file's owner, or the unit that holds the port."""
        return {
            "missing_binary": self.program.replace(self.version, self.wrong_version),
            "bad_user": self.wrong_user,
            "bad_directory": self.wrong_directory,
            "flapping": "root",
            "port_taken": f"{self.app}-test.service",
        }[self.variant]

    @property
    def right(self) -> str:
        """What it should be instead; the port for `port_taken`."""
        return {
            "missing_binary": self.program,
            "bad_user": self.user,
            "bad_directory": self.directory,
            "flapping": self.user,
            "port_taken": str(self.port),
        }[self.variant]

    @property
    def config(self) -> str:
        return f"/etc/{self.app}/{self.app}.conf"


def plan(seed: int, variant: Variant | None = None) -> ServicePlan:
    """Draw a plan. A given `variant` overrides the drawn one and changes nothing else."""
    rng = draws("service_down", seed)
    drawn = rng.choice(VARIANTS)
    app, neighbour = rng.sample(APPS, 2)
    port = rng.randint(3000, 9000)
    major, minor = rng.randint(1, 9), rng.randint(1, 9)
    root = rng.choice(("/var/lib", "/srv"))
    return ServicePlan(
        seed=seed,
        variant=variant or drawn,
        host=f"{rng.choice(HOSTS)}-{rng.randint(2, 9)}",
        app=app,
        neighbour=neighbour,
        user=f"svc-{app}",
        wrong_user=rng.choice((f"{app}-svc", f"www-{app}", f"{app}d")),
        version=f"{major}.{minor}",
        wrong_version=f"{major}.{minor - 1}",
        port=port,
        neighbour_port=port + rng.randint(1, 50),
        directory=f"{root}/{app}",
        wrong_directory=f"{root}/{app}-{rng.choice(('data', 'old', 'files'))}",
        page=f"<h1>{app}</h1><p>{rng.getrandbits(64):016x}</p>\n",
    )
