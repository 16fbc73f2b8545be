"""Real test hosts on one machine, made from Linux namespaces: `with Lab("t1") as lab: lab.add("web1")`.

Each host has its own PID 1 (systemd), root filesystem (an overlay), network namespace with an address on a private
bridge, and a real OpenSSH server. A host of kind `pve` also has LXC and a `pct` that makes real, nested containers.
Standard library only (but for the command line); needs root. Protection from accidents, not a security boundary.
"""

from oikos.lab.errors import LabError
from oikos.lab.host import Host
from oikos.lab.lab import Lab

__all__ = ["Host", "Lab", "LabError"]
