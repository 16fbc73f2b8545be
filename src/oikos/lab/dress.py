"""What the lab changes in a fresh Debian root filesystem: fewer units at boot, a small journal, key-only SSH."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from oikos.lab import tree

#: Units that make no sense without hardware of one's own, or would start work nobody asked for.
MASKED = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer", "e2scrub_reap.service",
    "console-getty.service", "getty@.service", "systemd-udevd.service", "modprobe@.service",
    "systemd-modules-load.service", "sys-kernel-debug.mount", "sys-kernel-tracing.mount",
    "sys-kernel-config.mount", "sys-fs-fuse-connections.mount", "dev-hugepages.mount", "dev-mqueue.mount",
    "proc-sys-fs-binfmt_misc.automount", "systemd-update-utmp.service", "systemd-update-utmp-runlevel.service",
    "systemd-sysctl.service", "systemd-remount-fs.service", "systemd-sysusers.service",
    "systemd-tmpfiles-setup-dev.service", "systemd-user-sessions.service", "systemd-update-done.service",
    "systemd-journald-audit.socket", "systemd-pcrphase.service", "systemd-pcrphase-sysinit.service",
    "systemd-random-seed.service", "systemd-machine-id-commit.service", "unattended-upgrades.service",
)  # fmt: skip
#: Started when first asked for (by D-Bus activation) instead of at every boot.
LAZY = ("dbus.service", "systemd-logind.service")
UNITS = "/etc/systemd/system"
JOURNALD = """[Journal]
Storage=persistent
SystemMaxFileSize=2M
SystemMaxUse=16M
RuntimeMaxFileSize=2M
RuntimeMaxUse=8M
"""
MANAGER = "[Manager]\nDefaultTimeoutStopSec=10s\nDefaultEnvironment=LANG=C.UTF-8\n"
SSHD = """PermitRootLogin prohibit-password
PasswordAuthentication no
HostKey /etc/ssh/ssh_host_ed25519_key
UseDNS no
MaxStartups 200
MaxSessions 200
PrintMotd no
"""


def dress(root: Path) -> None:
    """Everything below is idempotent and touches nothing outside `root`."""
    for unit in MASKED:
        tree.link(root, f"{UNITS}/{unit}", "/dev/null")
    for unit in LAZY:
        for place in ("lib/systemd/system", "usr/lib/systemd/system", "etc/systemd/system"):
            for wanted in (root / place).glob(f"*.wants/{unit}"):
                wanted.unlink()
    tree.write(root, "/etc/systemd/journald.conf.d/lab.conf", JOURNALD)
    tree.write(root, "/etc/systemd/system.conf.d/lab.conf", MANAGER)
    tree.write(root, "/etc/ssh/sshd_config.d/lab.conf", SSHD)
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    tree.write(root, "/etc/machine-id", "")
    tree.write(root, "/etc/default/locale", "LANG=C.UTF-8\n")
    tree.write(root, "/etc/resolv.conf", "")
    tree.directory(root, "root/.ssh", 0o700)


def lend_apt_settings(root: Path) -> None:
    """Give hosts this machine's own apt options and extra certificate authorities, whatever they are.

    They are read when the base is built and live in the cache only.
    """
    options = [file.read_text(encoding="utf-8") for file in sorted(Path("/etc/apt/apt.conf.d").glob("99*"))]
    if options:
        tree.write(root, "/etc/apt/apt.conf.d/90machine", "\n".join(options))
    authorities = sorted(Path("/usr/local/share/ca-certificates").glob("*.crt"))
    if authorities:
        place = tree.directory(root, "usr/local/share/ca-certificates")
        for authority in authorities:
            shutil.copy(authority, place)
        subprocess.run(["chroot", str(root), "update-ca-certificates"], capture_output=True, check=True)
