"""Paths with a meaning: secret material, and places whose loss or change takes a host down."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import posixpath
import re

from oikos.domain.verdict import EffectKind
from oikos.policy.words import HOLE

# One expression per kind of place. Paths are compared after lexical normalisation; a dynamic piece (HOLE) and a
# glob match anything they could match, because these tables only ever raise a class.
_SECRET = re.compile(
    r"""(?:^|/)(?:
      etc/(?:shadow|gshadow)(?:-|\.\w+)?$ | g?shadow-?$ | s?hadow-?$
    | etc/(?:sudoers|sudoers\.d/.+)$
    | \.ssh/(?:id_[^/]*|identity|[^/]*_(?:rsa|dsa|ecdsa|ed25519))(?<!\.pub)$
    | id_(?:rsa|dsa|ecdsa|ed25519)(?:_\w+)?$
    | etc/ssh/ssh_host_[^/]*_key$ | ssh_host_[^/]*_key$
    | etc/ssl/private(?:/.*)?$ | private/[^/]*\.(?:key|pem)$ | privkey\d*\.pem$ | [^/]*\.key$ | [^/]*-key\.pem$
    | etc/pve/(?:priv|local)(?:/.*(?:key|\.pw|token|shadow|cfg).*)?$ | etc/pve/priv(?:/.*)?$
    | \.env(?:\.[\w.-]+)?$ | [^/]*\.env$ | environ$
    | \.aws/credentials$ | \.aws/sso/.* | \.config/gcloud/.* | \.azure/.*token.*
    | \.kube/config$ | kubeconfig(?:\.\w+)?$ | k3s\.yaml$ | etc/kubernetes/(?:admin|super-admin|controller-manager|scheduler|kubelet)\.conf$
    | etc/kubernetes/pki/.*\.key$ | rancher/k3s/server/(?:token|node-token)$ | node-token$
    | \.pgpass$ | \.my\.cnf$ | etc/mysql/debian\.cnf$ | \.mylogin\.cnf$ | \.netrc$ | _netrc$ | \.pypirc$ | \.npmrc$
    | \.git-credentials$ | \.docker/config\.json$ | \.vault-token$ | \.gnupg(?:/.*)?$ | \.password-store(?:/.*)?$
    | \.terraformrc$ | credentials\.tfrc\.json$ | terraform\.tfstate(?:\.backup)?$ | \.cargo/credentials(?:\.toml)?$
    | rclone\.conf$ | etc/rclone\.conf$ | \.restic[-_]?pass.* | restic[-_]pass(?:word)?(?:\.txt)?$ | \.borg[-_]?pass.*
    | \.config/borg/keys(?:/.*)?$ | etc/wireguard(?:/.*)?$ | wg\d+\.conf$ | etc/openvpn/.*\.(?:key|auth|ovpn)$
    | NetworkManager/system-connections(?:/.*)?$ | wpa_supplicant[^/]*\.conf$ | \.nmconnection$
    | etc/ppp/(?:chap|pap)-secrets$ | etc/ipsec\.secrets$ | etc/ipsec\.d/private(?:/.*)?$ | etc/swanctl/private/.*
    | etc/samba/smbpasswd$ | passdb\.tdb$ | secrets\.tdb$ | etc/krb5\.keytab$ | [^/]*\.keytab$ | [^/]*\.kdbx$
    | \.smbcredentials$ | [^/]*(?:smb|cifs)[-_.]?cred[^/]* | \.htpasswd$ | htpasswd$
    | secrets?\.(?:ya?ml|json|toml|env|txt|enc|ini)$ | secrets?/[^/]+$ | run/secrets(?:/.*)?$ | etc/credstore(?:\.encrypted)?/.*
    | [^/]*(?:password|passwd|passphrase|secret|token|credential)s?\.(?:txt|json|ya?ml|conf|ini)$ | [^/]*[-_.]passwd\.txt$
    | \.(?:bash|zsh|psql|mysql|rediscli|python|sqlite)_history$ | master\.key$ | \.secret$ | secret_key(?:_base)?$
    | [^/]*\.(?:p12|pfx|jks|ppk)$ | proxmox-backup/(?:authkey\.key|.*token\.shadow|user\.cfg)$
    | tailscaled\.state$ | acme\.json$ | etc/nut/upsd\.users$ | etc/msmtprc$ | \.msmtprc$ | sasl_passwd$
    | (?:root|home/[\w.-]+|(?:etc|srv|opt)/[\w.-]+)/\.?(?:token|password|passphrase|api[_-]?key)$
    | dev/(?:mem|kmem|port)$ | proc/kcore$ | proc/[^/]+/(?:environ|mem|auxv)$ | security/opasswd$
    | \.ssh$ | \.ssh/\*$ | wp-config\.php$ | nextcloud/config/config\.php$ | etc/mosquitto/(?:passwd|pwfile|passwords?)[^/]*$ | etc/ddclient\.conf$
    | letsencrypt/accounts/.* | \.?cloudflared/[^/]*\.json$ | [^/]*\.ovpn$ | etc/apt/auth\.conf(?:\.d/.*)?$ | gh/hosts\.yml$ | \.?vault[-_]pass[^/]*$
    | run/credentials/.* | etc/corosync/authkey$ | etc/exim4/passwd\.client$ | \.storage/auth[^/]*$ | cloud/instances?/.*user-data.*$
    | \.rediscli_auth$ | etc/openldap/.*secret.* | etc/freeradius/.*clients\.conf$ | \.config/sops/age/keys\.txt$ | \.age-key.* | identity\.age$
    | var/lib/(?:systemd/random-seed|sss/secrets/.*)$
    | oikos-[0-9a-f]{32}(?:/.*)?$
    )""",
    re.VERBOSE,
)
# What a copy of a file is called: packed, dated, numbered, or left behind by an editor or a package manager.
_COPY = re.compile(
    r"(?:\.(?:gz|bz2|xz|zst|lz4|lzma|Z|bak|old|orig|save|sav|swp|backup|bkp|copy|tmp|new|dpkg-\w+|rpm(?:save|new|orig)|ucf-\w+|pacnew|pacsave|\d+)"
    r"|[-._]\d{4}-?\d\d-?\d\d(?:[T_-]?\d+)?|~|-|\s*\(\d\))+$"
)
# Things that only look like the names above.
_HARMLESS = re.compile(r"(?:\.pub|\.example|\.sample|\.template|\.dist|\.env\.example|known_hosts|authorized_keys)$")
# Disk contents to standard output are secret material too (LABELS: "raw disk/memory to stdout").
_BLOCK = re.compile(
    r"^/dev/(?:sd[a-z*?]|hd[a-z]|vd[a-z]|xvd[a-z]|nvme\d|mmcblk\d|md\d|md/|dm-\d|mapper/|loop\d|zd\d|zvol/|nbd\d|rbd\d|"
    r"disk/|pve/|vg\w*/|ubuntu-vg/|mtd|sr\d|st\d|nst\d)"
)
_MEMORY = re.compile(r"^/(?:dev/(?:mem|kmem|port)|proc/kcore|proc/[^/]+/mem)$")
# Whole-file writes here lock people out, or stop the machine from booting.
_CRITICAL = re.compile(
    r"""^(?:
      /etc/(?:passwd|shadow|gshadow|group|sudoers|ld\.so\.preload|crypttab)-?$ | /etc/sudoers\.d/ | /etc/pam\.d/ | /etc/pam\.conf$
    | /etc/security/ | /boot(?:/|$) | /efi(?:/|$) | /lib/modules/ | /usr/lib/modules/
    | .*/\.ssh/authorized_keys2?$ | /etc/ssh/ssh_host_ | /etc/pve/corosync\.conf$ | /etc/corosync/
    | /proc/sysrq-trigger$ | /sys/.*/(?:delete|remove|unbind|carrier|online)$ | /sys/(?:block|class/block)/[^/]+/device/state$ | /sys/power/
    | /sys/firmware/efi/ | /dev/(?:mem|kmem|port)$ | /dev/watchdog
    )""",
    re.VERBOSE,
)
_SINKS = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2", "/dev/tty", "/dev/full"))
_SYSTEM_BIN = frozenset(
    (
        "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/lib/nagios/plugins",
        "/snap/bin", "/usr/games", "/usr/lib/postfix", "/opt/bin", "/usr/lib/systemd", "/run/current-system/sw/bin",
        "/opt/homebrew/bin", "/usr/libexec",
    )
)  # fmt: skip
_SYSTEM_TREE = re.compile(
    r"^/(?:$|\*|etc|usr|bin|sbin|lib|lib32|lib64|boot|var|root|dev|proc|sys|opt|home|srv|run)?/?\*?$"
)
_SPREAD = re.compile(r"[*?]|\[[^\]]*\]")


def normal(path: str, cwd: str = "") -> str:
    """Lexically normalised path, joined to `cwd` when relative and `cwd` is known."""
    path = re.sub(r"^(?:~(?:\w+)?|\$HOME|\$\{HOME\})(?=/|$)", "/root", path)
    if cwd and not path.startswith("/"):
        path = posixpath.join(cwd, path)
    out = posixpath.normpath(path)
    out = out[1:] if out.startswith("//") else out
    return re.sub(r"^/proc/[^/]+/root(?=/)", "", out)


def is_secret(text: str, cwd: str = "") -> bool:
    """Whether a word names secret material; `text` may be `KEY=PATH`, `@PATH` or `host:PATH`."""
    for piece in _pieces(text):
        path = normal(piece, cwd)
        original = _COPY.sub("", path)
        if _HARMLESS.search(path) or _HARMLESS.search(original):
            continue
        if (
            lies_in_a_run(path)
            or _SECRET.search(path)
            or _MEMORY.match(path)
            or (original != path and _SECRET.search(original))
        ):
            return True
        if _SPREAD.search(path) and any(_glob_meets(path, known) for known in _WELL_KNOWN):
            return True
    return False


_WELL_KNOWN = ("/etc/shadow", "/etc/gshadow", "/root/.ssh/id_rsa", "/root/.ssh/id_ed25519", "/home/a/.ssh/id_ed25519")


def _glob_meets(pattern: str, path: str) -> bool:
    """Whether a glob that is not wide open matches the path."""
    last = pattern.rsplit("/", 1)[-1]
    if not re.sub(r"[*?\[\]\0]", "", last) or not re.search(r"[a-z]{2}", last):
        return False
    translated = "".join(
        piece if piece.startswith("[") else {"*": "[^/]*", "?": "[^/]", HOLE: "[^/]*"}.get(piece, re.escape(piece))
        for piece in re.findall(r"\[[^\]]+\]|.", pattern)
    )
    try:
        return re.fullmatch(translated, path) is not None
    except re.error:
        return True


_WILD = re.compile(r"[*?\[\0]")
"""Begins a piece of a path that stands for more than itself."""


def _could_be(part: str, at: int) -> bool:
    """Whether a part of a path could be that part of `/tmp/oikos-RUN/NAME`, where another run's secrets lie."""
    lead, *more = _WILD.split(part, maxsplit=1)
    if at == 0:
        return "tmp".startswith(lead) if more else part == "tmp"
    if at == 2:
        return re.fullmatch(r"[A-Za-z0-9_*?\[\]!^\0-]+", part) is not None
    tail = re.split(r"[*?\]\0]", part)[-1]
    began = "oikos-".startswith(lead) or re.fullmatch(r"oikos-[0-9a-f]*", lead) is not None
    if more:
        return began and re.fullmatch(r"[oiks-]*[0-9a-f]*", tail) is not None
    return re.fullmatch(r"oikos-[0-9a-f]{32}", part) is not None


def lies_in_a_run(path: str) -> bool:
    """Whether a normal path or pattern may name a secret file of some run."""
    parts = path.split("/")
    return len(parts) == 4 and parts[0] == "" and all(map(_could_be, parts[1:], range(3)))


def reaches_runs(path: str, *, levels: int = 3) -> bool:
    """Whether the secret files of runs lie below a normal path or pattern, at most so many levels down."""
    parts = [] if path == "/" else path.split("/")[1:]
    deep = path.startswith("/") and len(parts) < 3 <= len(parts) + levels
    return deep and all(map(_could_be, parts, range(3)))


def could_be_run_secret(name: str) -> bool:
    """Whether a pattern for file names may mean a secret file of a run."""
    return _could_be(name.rsplit("/", 1)[-1], 2)


def _pieces(text: str) -> tuple[str, ...]:
    pieces = [text]
    for mark in ("=", "@", ":", ","):
        if mark in text:
            pieces.extend(text.split(mark)[1:])
    if len(text) > 2 and text[0] == "-" and text[1] != "-":
        pieces.append(text[2:])
    return tuple(piece for piece in pieces if piece)


def is_consuming(path: str) -> bool:
    """Whether reading the file takes something away from another reader."""
    return (
        re.search(r"^/proc/kmsg$|/trace_pipe$|^/dev/(?:input/|hidraw|watchdog|tty(?:S|USB|ACM)\d)", normal(path))
        is not None
    )


def is_block_device(path: str) -> bool:
    """Whether the path is a raw disk, partition or volume."""
    return _BLOCK.match(normal(path)) is not None


def is_sink(path: str) -> bool:
    """Whether writing there leaves nothing behind."""
    return path in _SINKS or (posixpath.normpath(path) in _SINKS and ".." not in path.split("/"))


def is_critical(path: str) -> bool:
    """Whether a write there can lock people out, lose a disk or stop the host."""
    where = normal(path)
    return _CRITICAL.match(where) is not None or is_block_device(where)


def in_system_bin(path: str) -> bool:
    """Whether a program path lies directly in a directory only root installs to."""
    return posixpath.dirname(path) in _SYSTEM_BIN and ".." not in path.split("/")


def is_system_tree(path: str) -> bool:
    """Whether the path is a top-level system directory (or everything)."""
    return _SYSTEM_TREE.match(normal(path.rstrip("/") or "/")) is not None


_WRITE_EFFECTS: tuple[tuple[re.Pattern[str], EffectKind], ...] = (
    (
        re.compile(
            r"/etc/(?:passwd|shadow|gshadow|group|sudoers|pam\.d|pam\.conf|security|doas\.conf|polkit-1)|/\.ssh/|authorized_keys|ld\.so\.preload"
        ),
        EffectKind.PRIVILEGE,
    ),
    (
        re.compile(
            r"/etc/(?:ssh/|network|netplan|hosts\.(?:allow|deny)|resolv\.conf|nftables|iptables|ufw|wireguard|NetworkManager|systemd/network|"
            r"pve/(?:firewall|corosync)|corosync)|^/sys/class/net/"
        ),
        EffectKind.CONNECTIVITY,
    ),
    (re.compile(r"^/dev/|^/boot|^/efi|^/sys/firmware"), EffectKind.IRREVERSIBLE),
    (re.compile(r"^/proc/sysrq|^/sys/power|/(?:delete|remove|unbind)$"), EffectKind.OUTAGE),
)


def write_effects(path: str) -> tuple[EffectKind, ...]:
    """Effects of writing to a path."""
    return tuple(kind for pattern, kind in _WRITE_EFFECTS if pattern.search(path))
