"""Variable names: which assignments can change what later commands do (policy design, assignments)."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import re

# Prefixes and exports that change how output looks or how long a client waits, nothing else.
_FREE = re.compile(
    r"""(?:LC_\w+ | LANG | LANGUAGE | TZ | NO_COLOR | CLICOLOR(?:_FORCE)? | FORCE_COLOR | COLUMNS | LINES | TERM_PROGRAM
    | DEBIAN_FRONTEND | DEBIAN_PRIORITY | APT_LISTCHANGES_FRONTEND | NEEDRESTART_(?:MODE|SUSPEND) | UCF_FORCE_CONFF\w+
    | SYSTEMD_(?:COLORS|URLIFY|LOG_LEVEL|EMOJI) | PGPASSWORD | PGCONNECT_TIMEOUT | PGTZ | PGHOST | PGPORT | PGUSER | PGDATABASE
    | PGAPPNAME | PGSSLMODE | MYSQL_PWD | REDISCLI_AUTH | MYSQL_HOST | RESTIC_REPOSITORY | RESTIC_PASSWORD | RESTIC_PASSWORD_FILE
    | RESTIC_CACHE_DIR | BORG_REPO | BORG_PASSPHRASE | BORG_RELOCATED_REPO_ACCESS_IS_OK | BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK
    | PBS_REPOSITORY | PBS_PASSWORD | PBS_FINGERPRINT | HUMAN_READABLE | BLOCKSIZE | BLOCK_SIZE | DU_BLOCK_SIZE | DF_BLOCK_SIZE
    | TIME_STYLE | LS_COLORS | GREP_COLORS? | JQ_COLORS | PS_FORMAT | TIMEFORMAT | S_TIME_FORMAT | S_COLORS | QUOTING_STYLE
    | ANSIBLE_(?:NOCOLOR|FORCE_COLOR) | DOCKER_(?:CLI_HINTS|BUILDKIT) | COMPOSE_(?:ANSI|STATUS_STDOUT|PROGRESS)
    | BUILDKIT_PROGRESS | KUBECTL_\w*COLOR\w* | GIT_(?:TERMINAL_PROMPT|OPTIONAL_LOCKS) | GIT_PAGER_IN_USE
    | HOMEBREW_NO_\w+ | PIP_(?:DISABLE_PIP_VERSION_CHECK|NO_INPUT) | NPM_CONFIG_(?:UPDATE_NOTIFIER|FUND|AUDIT) | TF_IN_AUTOMATION
    | CI | AWS_(?:REGION|DEFAULT_REGION|DEFAULT_OUTPUT|MAX_ATTEMPTS) | ETCDCTL_API | WATCH_INTERVAL)""",
    re.VERBOSE,
)
# Free only with these values.
_FREE_VALUES = {
    "PAGER": ("cat", ""),
    "GIT_PAGER": ("cat", ""),
    "SYSTEMD_PAGER": ("cat", ""),
    "MANPAGER": ("cat", ""),
    "PSQL_PAGER": ("cat", ""),
    "AWS_PAGER": ("cat", ""),
    "DELTA_PAGER": ("cat", ""),
    "BAT_PAGER": ("cat", ""),
    "SYSTEMD_LESS": ("-FRX", "FRXMK", "FRSXMK", ""),
    "LESS": ("-FRX", "FRX", "-R", "-FX", "-F", "-X", "-S", "-SR", ""),
    "LESSSECURE": ("1",),
    "TERM": ("dumb", "xterm", "xterm-256color", "vt100", "linux"),
    "GIT_CONFIG_NOSYSTEM": ("1",),
    "MOST_SWITCHES": ("",),
    "DOCKER_HOST": ("unix:///var/run/docker.sock", "unix:///run/docker.sock"),
    "KUBECONFIG": ("/etc/rancher/k3s/k3s.yaml", "/etc/kubernetes/admin.conf"),
    "HOME": ("/root",),
    "DBUS_SESSION_BUS_ADDRESS": ("unix:path=/run/user/1000/bus", "unix:path=/run/user/0/bus"),
}
# Free only with values of this form: the folders only root installs to, the run-time folder systemd makes for a user.
_FREE_FORMS = {
    "PATH": re.compile(r"(?:/usr(?:/local)?)?/s?bin(?::(?:/usr(?:/local)?)?/s?bin)*"),
    "XDG_RUNTIME_DIR": re.compile(r"/run/user/\d+"),
}
# Names a shell, a loader or a common program acts on: not even a plain shell variable may be called so.
_ACTING = re.compile(
    r"""(?:PATH | POSIXLY_CORRECT | GETOPT_COMPATIBLE | \w*_GNU_nonoption_argv_flags_ | IFS | CDPATH | ENV | BASH_\w+ | BASHOPTS | SHELLOPTS | PS[0-4] | PROMPT_COMMAND | HOME | PWD | OLDPWD | SHELL | GLOBIGNORE
    | FPATH | ZDOTDIR | HISTFILE | FCEDIT | EXECIGNORE | TERMINFO\w* | TERM | LD_\w+ | DYLD_\w+ | GCONV_PATH | LOCPATH
    | NLSPATH | MALLOC_\w+ | GLIBC_TUNABLES | GETCONF_DIR | HOSTALIASES | RES_OPTIONS | LOCALDOMAIN | RESOLV_\w+ | TMPDIR | TMPPREFIX | TMP | TEMP
    | \w*PAGER | \w*EDITOR | VISUAL | BROWSER | LESS\w* | MORE | GIT_\w+ | HG\w* | SVN_\w+ | PYTHON\w+ | PERL\w* | RUBY\w* | NODE_\w+ | npm_\w+ | NPM_\w+
    | LUA_\w+ | JAVA_\w+ | _JAVA_OPTIONS | JDK_\w+ | CLASSPATH | \w*_RSH | \w*_SSH | \w*_SSH_COMMAND | \w*_COMMAND | \w*_ASKPASS\w* | \w*PASSCOMMAND
    | XDG_\w+ | KUBECONFIG | DOCKER_\w+ | COMPOSE_\w+ | CONTAINER_\w+ | BUILDKIT_\w+ | ANSIBLE_\w+ | AWS_\w+ | CLOUDSDK_\w+ | AZURE_\w+ | GOOGLE_\w+
    | RCLONE_\w+ | RESTIC_\w+ | BORG_\w+ | RSYNC_\w+ | TAR_OPTIONS | GZIP | BZIP2? | XZ_\w+ | ZSTD_\w+ | MAKE\w* | MAKEFILES | CC | CXX | LD | AR
    | MAN\w* | GROFF_\w+ | CURL_\w+ | SSLKEYLOGFILE | SSL_\w+ | OPENSSL_\w+ | WGETRC | \w*_PROXY | \w*_proxy | PG\w+ | MYSQL_\w+ | PSQL\w* | PSQLRC
    | SQLITE_\w+ | APT_\w+ | DPKG_\w+ | RPM_\w+ | TF_\w+ | VAULT_\w+ | CONSUL_\w+ | HELM_\w+ | AWKPATH | AWKLIBPATH | GAWK_\w+ | SCREENRC | TMUX\w*
    | VIMINIT | EXINIT | VIM | MYVIMRC | INPUTRC | EMACS\w* | SUDO_\w+ | SSH_\w+ | PKG_CONFIG\w* | QT_\w+ | GTK_\w+ | GIO_\w+ | DBUS_\w+ | LIBVIRT_\w+
    | VIRSH_\w+ | ZPOOL_\w+ | ZFS_\w+ | LVM_\w+ | SYSTEMD_\w+ | NOTIFY_SOCKET | DEBUGINFOD_\w+ | PAM_\w+ | KRB5\w* | LDAP\w* | SASL_\w+ | PIP_\w+
    | VIRTUAL_ENV | CONDA_\w+ | GO\w* | CARGO_\w+ | RUST\w* | GEM_\w+ | BUNDLE_\w+ | COMPOSER_\w+ | PHP\w* | PHPRC | R_\w+ | JULIA_\w+)""",
    re.VERBOSE,
)
_SECRETIVE = re.compile(r"(?i)(?:pass|secret|token|key|cred|auth)")


_HOLDS = re.compile(
    r"(?i)(?:^|_)(?:pass|passwd|password|passphrase|pw|secret|token|credentials?|apikey|privkey|jwt)(?:$|_|\d)|"
    r"(?:password|passwd|secret|token|apikey|api_key|private_key|access_key|master_key|encryption_key)s?$"
)


def holds_secret(name: str) -> bool:
    """Whether a variable of that name very likely holds a password or token; stricter than `is_secretive`."""
    return _HOLDS.search(name) is not None


def free_for_commands(name: str, value: str | None) -> bool:
    """Whether `name=value` before a command, or exported, changes nothing but looks; `value` None: not literal."""
    if name in _FREE_FORMS:
        return value is not None and _FREE_FORMS[name].fullmatch(value) is not None
    if name in _FREE_VALUES:
        return value in _FREE_VALUES[name]
    return _FREE.fullmatch(name) is not None


def acts_on_shell(name: str) -> bool:
    """Whether a shell variable of that name steers the shell or programs it starts."""
    return _ACTING.fullmatch(name) is not None


def is_secretive(name: str) -> bool:
    """Whether the name says its value is a secret."""
    return _SECRETIVE.search(name) is not None
