"""The mask over this machine's own root, for hosts of kind `machine`: no build, private directories hidden.

Nothing is installed on the machine: an SSH server it lacks is unpacked into the mask.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from oikos.lab import dress, layers, tree
from oikos.lab.command import run

#: Directories of the machine that a host must not show. A new private directory would have to be added.
HIDDEN = (
    "root", "home", "tmp", "srv", "mnt", "media", "opt", "run", "var/lib/oikos-lab", "var/cache/oikos-lab", "var/log",
    "var/tmp", "etc/cron.d", "etc/ssl/private",
)  # fmt: skip
#: Directories of the root that are Debian's; every other one is somebody's own, and hidden too.
DEBIAN = frozenset("bin boot dev etc lib lib32 lib64 libx32 proc run sbin sys usr var lost+found".split())
SSHD_CONFIG = "Include /etc/ssh/sshd_config.d/*.conf\nUsePAM no\nSubsystem sftp /usr/lib/openssh/sftp-server\n"


def mask(cache: Path) -> Path:
    """The mask, made when missing. Raises: LabError when the server's packages cannot be fetched."""
    final = cache / f"mask-{layers.VERSION}"
    if final.is_dir():
        return final
    cache.mkdir(parents=True, exist_ok=True)
    part = final.with_name(f"{final.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    own = {p.name for p in Path("/").iterdir() if p.is_dir() and not p.is_symlink() and p.name not in DEBIAN}
    for hidden in sorted({*HIDDEN, *own}):
        os.setxattr(tree.directory(part.parent, f"{part.name}/{hidden}"), "trusted.overlay.opaque", b"y")
    for sticky in ("tmp", "var/tmp"):
        (part / sticky).chmod(0o1777)
    (part / "var/log/journal").mkdir()
    (part / "root").chmod(0o700)
    if not os.path.exists("/usr/sbin/sshd"):
        _unpack_sshd(cache, part)
    dress.dress(part)
    tree.write(part, "/etc/fstab", "")
    tree.write(part, "/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 0\n", 0o755)
    part.rename(final)
    return final


def _unpack_sshd(cache: Path, part: Path) -> None:
    debs, files = cache / ".sshd-debs", part / ".x"
    debs.mkdir(exist_ok=True)
    run(["apt-get", "download", "-qq", "openssh-server", "openssh-sftp-server", "libwrap0"], cwd=str(debs))
    for deb in debs.glob("*.deb"):
        run(["dpkg", "-x", str(deb), str(files)])
    if (files / "lib").is_dir() and os.path.islink("/lib"):
        # The machine's /lib is a link to /usr/lib: put the files where they will be found.
        run(["cp", "-a", f"{files}/lib/.", f"{files}/usr/lib/"])
        shutil.rmtree(files / "lib")
    run(["cp", "-a", f"{files}/.", str(part)])
    shutil.rmtree(files)
    shutil.rmtree(debs)
    users = Path("/etc/passwd").read_text(encoding="utf-8")
    tree.write(part, "/etc/passwd", f"{users}sshd:x:990:65534::/run/sshd:/usr/sbin/nologin\n")
    tree.write(part, "/etc/ssh/sshd_config", SSHD_CONFIG)
    tree.link(part, "/etc/systemd/system/multi-user.target.wants/ssh.service", "/lib/systemd/system/ssh.service")
