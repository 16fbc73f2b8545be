"""HTTP clients: only GET and HEAD of plain URLs are looks (policy design, HTTP)."""

from __future__ import annotations

import re
import urllib.parse
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import hosts, paths
from oikos.policy.scene import Flow
from oikos.policy.words import HOLE, Tag, Word

if TYPE_CHECKING:
    from oikos.policy.call import Call

# Devices and services that act on GET say so in the path or the query.
ACTION = re.compile(
    r"(?i)(?:[?&/=_.-]|^)(?:turn=|cmnd=|cmd=|command=|action=|switch=|state=(?:on|off)|power=|relay/\d\?|webhook|hook/|"
    r"(?:power_?o(?:n|ff)|toggle|reboot|restart|shutdown|poweroff|reset|delete|remove|destroy|drop|flush|purge|clear|kill|stop|enable|disable|upgrade|"
    r"install|deploy|trigger|exec|execute|quit|reload|unlock|insert|create|logout|unsubscribe|wol|wake|publish|disarm|(?:factory|setup|disk|sd|flash|fs)[-_/]?(?:format|default|defaults|erase|wipe)|erase|wipe)(?![a-z])|"
    r"(?:set|update|start|build|run|lock|open|close|write|add|send|arm)(?=[/?]|$)|set=)"
)
_SQL_WRITE = re.compile(
    r"(?i)\b(?:drop|truncate|delete|insert|alter|create|update|grant|optimize|rename|attach|detach|kill)(?:\s|%20|\+)"
)
_SAFE_SCHEME = re.compile(r"(?i)^(?:https?://)?(?![a-z][a-z0-9+.-]*://)")


_DESTROY_ACTION = re.compile(
    r"(?i)_delete_by_query|delete_series|clean_tombstones|(?:command|cmd|action)[\"']?\s*[=:]\s*[\"']?(?:reboot|shutdown|stop|destroy|delete|wipe|reset)\b|"
    r"\b(?:drop|truncate)[\s+]+(?:table|database|schema|measurement|series|user|index)\b|\bdelete[\s+]+from\b|"
    r"[/?&](?:delete|destroy|purge|wipe|drop|erase|factory-?reset|reboot|shutdown|poweroff)(?:[/?&_-]|$)"
)
"""What a request that may change something says when it destroys."""


def _destroys(this: Call, texts: list[Word], host: str) -> None:
    for word in texts:
        found = _DESTROY_ACTION.search(re.sub(r"^(?:[a-zA-Z]+://)?[^/?]*(?=/)", "", word.text))
        if found:
            why = f"Asks {host or 'another machine'} for `{found.group().strip('/?&')}`."
            this.walker.destroy("http.destroy", word.span, why, this.scene, thing=host)
            return


def judge_url(this: Call, word: Word, *, method: str = "GET") -> str:
    """Judge one URL of a GET or HEAD; returns its host."""
    walker, scene = this.walker, this.scene
    host = ""
    for text in word.values or (word.text,):
        scheme = re.match(r"(?i)([a-z][a-z0-9+.-]*)://", text)
        if scheme and scheme.group(1).lower() not in ("http", "https", "ws", "wss"):
            _scheme(this, word, scheme.group(1).lower(), text)
            continue
        host = hosts.host_of(text).replace(HOLE, "")
        rest = urllib.parse.unquote(re.sub(r"^(?:[a-zA-Z]+://)?[^/?]*", "", text))
        action = ACTION.search(rest)
        if action or _SQL_WRITE.search(rest.replace("+", " ")):
            what = action.group().strip("?&/=_.-") if action else "a statement"
            walker.change(
                "http.action",
                word.span,
                f"The address asks for an action ({what}), although it is only fetched.",
                scene,
            )
        if re.search(
            r"(?i)/secrets?(?:/|$|\?)|/(?:access_?)?tokens?(?:/|$)|/v1/(?:kv|secret)/|computeMetadata.*token|iam/security-credentials",
            rest,
        ):
            walker.change(
                "http.secret", word.span, "The address names a secret.", scene, EffectKind.SENSITIVE, thing=host
            )
    if not word.literal and not word.values:
        tags = word.tags
        if Tag.SECRET in tags:
            walker.destroy(
                "egress.secret",
                word.span,
                "Secret material leaves in an address.",
                scene,
                EffectKind.EGRESS,
                EffectKind.SENSITIVE,
                thing=host,
            )
        elif tags & {Tag.FILE, Tag.BULK, Tag.DECODED, Tag.NETWORK} and scene.inserted is None:
            walker.change(
                "egress.data", word.span, "Contents of files leave in an address.", scene, EffectKind.EGRESS, thing=host
            )
        elif (word.splits and tags) or (word.text[:1] == HOLE and word.splits):
            walker.unclear("http.dynamic", word.span, "The address is only known when the shell runs.", scene)
    if host and not hosts.is_loopback(host):
        walker.find("http.host", Risk.READ_ONLY, word.span, f"Asks {host}.", scene, (EffectKind.EGRESS,), host)
    return host


def _scheme(this: Call, word: Word, scheme: str, text: str) -> None:
    walker, scene = this.walker, this.scene
    if scheme == "file":
        path = re.sub(r"(?i)^file://[^/]*", "", text)
        if paths.is_secret(path):
            walker.change(
                "read.secret",
                word.span,
                f"Shows {path}, which is secret material.",
                scene,
                EffectKind.SENSITIVE,
                thing=path,
            )
        else:
            walker.change("http.scheme", word.span, "Reads a file through an address.", scene)
    elif re.search(r"(?i)flush_?all|flushdb|shutdown|delete|drop", text):
        walker.destroy("http.smuggle", word.span, f"Sends a destructive command through the scheme {scheme}.", scene)
    elif scheme in ("ftp", "ftps", "sftp") and text.endswith("/"):
        walker.change(
            "http.scheme",
            word.span,
            f"The scheme {scheme} is not a plain look.",
            scene,
            EffectKind.EGRESS,
            thing=hosts.host_of(text),
        )
    else:
        walker.unclear("http.scheme", word.span, f"The scheme {scheme} is not a plain look.", scene)


_CURL_DATA = (
    "-d",
    "--data",
    "--data-ascii",
    "--data-binary",
    "--data-raw",
    "--data-urlencode",
    "--json",
    "-F",
    "--form",
    "--form-string",
    "-T",
    "--upload-file",
)


def curl(this: Call) -> Flow | None:
    """curl: method, bodies, uploads, headers from files."""
    walker, scene = this.walker, this.scene
    urls = [*this.line.args, *this.values("--url")]
    host = next((hosts.host_of(word.text) for word in urls if word.literal), "")
    get = this.has("-G", "--get")
    method = ""
    for word in this.values("-X", "--request"):
        method = word.text.upper()
        if word.literal and method in ("GET", "HEAD", "OPTIONS"):
            continue
        if method == "DELETE" or HOLE in method:
            walker.destroy("http.delete", word.span, f"Deletes something on {host}.", scene, thing=host)
        else:
            walker.change(
                "http.method",
                word.span,
                f"Sends a {method} request, which may change something on {host}.",
                scene,
                EffectKind.EGRESS,
                thing=host,
            )
    body = [used for used in this.line.used if used.name in _CURL_DATA]
    for used in body:
        value = used.value
        text = value.text if value else ""
        if (
            get
            and used.name.startswith(("-d", "--data"))
            and "@" not in text[:1]
            and value is not None
            and not (value.tags & {Tag.SECRET, Tag.FILE})
        ):
            if ACTION.search("?" + text):
                walker.change("http.action", used.word.span, "The query asks for an action.", scene)
            continue
        if method not in ("GET", "HEAD") or text.startswith("@") or method:
            walker.change(
                "http.body",
                used.word.span,
                f"Sends data to {host or 'another machine'}.",
                scene,
                EffectKind.EGRESS,
                thing=host,
            )
        _leak(this, used.word if value is None else value, text, host, upload=True)
    if method not in ("GET", "HEAD", "OPTIONS", "") or (body and not get):
        _destroys(this, [*urls, *(used.value for used in body if used.value is not None)], host)
    for name in (
        "-H",
        "--header",
        "-b",
        "--cookie",
        "-A",
        "--user-agent",
        "-e",
        "--referer",
        "--url-query",
        "--variable",
        "--expand-url",
        "--proxy-header",
        "-u",
        "--user",
    ):
        for word in this.values(name):
            file = (
                word.text[1:]
                if word.text.startswith("@")
                else re.sub(r"^[^@=]*@", "", word.text)
                if name in ("--url-query", "--variable")
                else ""
            )
            if name in ("-b", "--cookie") and "=" not in word.text:
                file = word.text
            if name not in ("-u", "--user"):
                _leak(this, word, ("@" + file) if file else "", host, upload=False)
            if file and name not in ("-b", "--cookie") and not paths.is_secret(file):
                walker.change(
                    "http.file",
                    word.span,
                    f"Takes the text of a request from the file {file.replace(HOLE, '…')}.",
                    scene,
                    EffectKind.EGRESS,
                    thing=host,
                )
            elif Tag.SECRET not in word.tags and word.tags & {Tag.FILE, Tag.BULK} and name not in ("-u", "--user"):
                walker.change(
                    "egress.data",
                    word.span,
                    "Contents of files go into a request.",
                    scene,
                    EffectKind.EGRESS,
                    thing=host,
                )
            override = re.match(r"(?i)x-http-method(?:-override)?\s*:\s*(\w+)", word.text)
            if override:
                walker.change("http.method", word.span, f"Asks for the method {override.group(1)} in a header.", scene)
    for word in this.values("-w", "--write-out"):
        if any("%output{" in text for text in word.spellings()):
            walker.change("http.write-out", word.span, "The format of the summary can write a file.", scene)
    for word in urls:
        judge_url(this, word)
    for word in this.line.loose:
        if word not in urls:
            walker.unclear(
                "dynamic.curl",
                word.span,
                "This word is only known when the shell runs, and curl has options that change things.",
                scene,
            )
    if (
        body
        and scene.stdin.tags
        and host
        and any(
            (used.value.text if used.value else "") in ("@-", "-", "@/dev/stdin", ".")
            or used.name in ("-T", "--upload-file")
            for used in body
        )
    ):
        _stdin_leak(this, host)
    return Flow(frozenset((Tag.NETWORK,)), None, True)


def _leak(this: Call, word: Word, text: str, host: str, *, upload: bool) -> None:
    """Secret material in a body, a header or a file that is sent."""
    files = [piece for piece in re.split(r"[=,;]", text) if piece.startswith(("@", "<"))]
    named = [piece[1:] for piece in files] + ([text] if upload and "/" in text else [])
    if Tag.SECRET in word.tags or any(paths.is_secret(name, this.walker.cwd) for name in named):
        this.walker.destroy(
            "egress.secret",
            word.span,
            f"Secret material goes to {host or 'another machine'}; that cannot be taken back.",
            this.scene,
            EffectKind.EGRESS,
            EffectKind.SENSITIVE,
            thing=host,
        )
    elif upload and hosts.is_third_party(host) and word.tags & {Tag.BULK, Tag.FILE}:
        this.walker.destroy(
            "egress.bulk",
            word.span,
            f"Data goes to {host}; that cannot be taken back.",
            this.scene,
            EffectKind.EGRESS,
            thing=host,
        )


def _stdin_leak(this: Call, host: str) -> None:
    tags = this.scene.stdin.tags
    if Tag.SECRET in tags:
        this.walker.destroy(
            "egress.secret",
            this.span,
            f"Secret material goes to {host}; that cannot be taken back.",
            this.scene,
            EffectKind.EGRESS,
            EffectKind.SENSITIVE,
            thing=host,
        )
    elif hosts.is_third_party(host) and tags & {Tag.BULK, Tag.FILE}:
        this.walker.destroy(
            "egress.bulk",
            this.span,
            f"Data goes to {host}; that cannot be taken back.",
            this.scene,
            EffectKind.EGRESS,
            thing=host,
        )


def wget(this: Call) -> Flow | None:
    """wget looks only with `-O -`, `-O /dev/null` or `--spider`."""
    walker, scene = this.walker, this.scene
    out = this.value("-O", "--output-document")
    host = next((hosts.host_of(word.text) for word in this.line.args if word.literal), "")
    if this.has("--delete-after"):
        walker.unclear("wget.delete", this.span, "Downloads files and deletes them again.", scene)
    if out is not None and out.literal and not paths.is_sink(out.text):
        walker.written[paths.normal(out.text, walker.cwd)] = ""
    if not this.has("--spider"):
        if out is None:
            walker.change(
                "wget.write",
                this.span,
                "Downloads into a file.",
                scene,
                EffectKind.EGRESS,
                thing=host,
            )
        elif not (out.literal and (out.text == "-" or paths.is_sink(out.text))):
            this_path = paths.normal(out.text, walker.cwd)
            walker.find(
                "wget.write",
                Risk.CONFIG_MUTATION,
                out.span,
                f"Downloads into {out.text.replace(HOLE, '…')}.",
                scene,
                paths.write_effects(this_path),
                this_path,
            )
    for name in ("--post-data", "--body-data", "--post-file", "--body-file"):
        for word in this.values(name):
            walker.change("http.body", word.span, f"Sends data to {host}.", scene, EffectKind.EGRESS, thing=host)
            _leak(this, word, "@" + word.text if name.endswith("file") else word.text, host, upload=True)
    for word in this.values("--method"):
        if word.text.upper() == "DELETE":
            walker.destroy("http.delete", word.span, f"Deletes something on {host}.", scene, thing=host)
        elif word.text.upper() not in ("GET", "HEAD") or not word.literal:
            walker.change(
                "http.method", word.span, f"Sends a {word.text} request.", scene, EffectKind.EGRESS, thing=host
            )
    for name in ("--header", "-U", "--user-agent", "--referer"):
        for word in this.values(name):
            _leak(this, word, "", host, upload=False)
    for word in this.line.args:
        judge_url(this, word)
    for word in this.line.loose:
        if word not in this.line.args:
            walker.unclear("dynamic.wget", word.span, "This word is only known when the shell runs.", scene)
    return Flow(frozenset((Tag.NETWORK,)), None, True)


def httpie(this: Call) -> Flow | None:
    """`http [METHOD] URL [ITEM…]`; items make it a POST."""
    walker, scene = this.walker, this.scene
    args = list(this.line.args)
    method = "GET"
    if args and re.fullmatch(r"[A-Za-z]+", args[0].text) and len(args) > 1 and args[0].text.isupper():
        method = args.pop(0).text
    items = [word for word in args[1:] if re.search(r"[^=]=[^=]|:=|@|=$", word.text) and "==" not in word.text]
    if method == "DELETE":
        walker.destroy("http.delete", this.span, "Deletes something.", scene)
    elif method not in ("GET", "HEAD", "OPTIONS") or items or (scene.stdin.piped and scene.stdin.tags):
        walker.change(
            "http.method",
            this.span,
            f"Sends a {method if method != 'GET' else 'POST'} request.",
            scene,
            EffectKind.EGRESS,
        )
    host = hosts.host_of(args[0].text) if args else ""
    for word in items:
        if "@" in word.text:
            _leak(this, word, "@" + word.text.split("@", 1)[1], host, upload=True)
    if method not in ("GET", "HEAD", "OPTIONS") or items:
        _destroys(this, args, host)
    for word in args[:1]:
        judge_url(this, word)
    return Flow(frozenset((Tag.NETWORK,)), None, True)


def lxdapi(this: Call) -> Flow | None:
    """`lxc query -X METHOD`: without a method it reads."""
    for word in this.values("-X", "--request"):
        if word.text.upper() not in ("GET", "HEAD"):
            this.walker.change("http.method", word.span, "Changes something on the server.", this.scene)
    return ghapi(this)


def ghapi(this: Call) -> Flow | None:
    """`gh api -X METHOD`, `lxc query -X METHOD`."""
    for word in this.values("-X", "--method", "--request"):
        if word.text.upper() == "DELETE" or not word.literal:
            this.walker.destroy("http.delete", word.span, "Deletes something on the server.", this.scene)
    return None
