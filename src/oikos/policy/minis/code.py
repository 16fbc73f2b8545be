"""One-line programs in general-purpose languages: only what is plainly a computation is a look."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind
from oikos.policy import danger, paths, unwrap
from oikos.policy.scene import EMPTY, Flow
from oikos.policy.words import HOLE, Tag, Word

if TYPE_CHECKING:
    from oikos.policy.call import Call

_MODULES = frozenset(
    "sys json math datetime time re string collections itertools functools statistics decimal fractions base64 hashlib hmac binascii struct textwrap ipaddress "
    "calendar random platform pprint operator uuid csv html urllib.parse unicodedata zlib locale getpass_  secrets socket".split()
)
_ATTRIBUTES_BAD = frozenset(
    "system popen spawn exec remove unlink rmdir removedirs rename replace_ mkdir makedirs chmod chown kill fork putenv symlink link truncate write writelines "
    "open run call check_call check_output Popen rmtree move copy copyfile copytree urlopen urlretrieve connect send sendall bind listen modules path_hooks "
    "create_connection create_server sendto sendmsg settrace setprofile exit_ load_module import_module eval exec_module environ getenv environb".split()
)
_CALLS = frozenset(
    "print len range sum min max sorted list dict set tuple str int float bool abs round divmod pow enumerate zip map filter any all ord chr hex oct bin repr "
    "format isinstance type iter next reversed bytes bytearray frozenset complex slice hash id input_ ascii callable".split()
)
_DESTROYS = re.compile(
    r"\b(?:rmtree|rmSync|unlink(?:Sync)?|rmdir(?:Sync)?|remove(?:dirs|_tree)?|File\.delete|FileUtils\.rm\w*|os\.remove|fs\.rm|rm\s+-[rf]|Remove-Item|DROP\s|deleteMany|dropDatabase|"
    r"reboot|poweroff|shutdown|mkfs|file\s+delete|delete-(?:file|directory))\b"
)
_WRITTEN = re.compile(r"open\(\s*['\"](/[^'\"]+)['\"]\s*,\s*['\"][wax>+]")
"""Files a program opens for writing."""
_FETCHES = re.compile(
    r"urlopen|urllib\.request|requests\.(?:get|post)|LWP|Net::HTTP|file_get_contents\(['\"]https?:|fetch\(|httpx?\.get"
)
_RUNS = re.compile(r"\b(?:exec|eval|compile|system|instance_eval|Function)\b")
_SIMPLE = frozenset(
    "print say printf puts echo p console log if unless and or not eq ne lt gt le ge length uc lc join sprintf int abs sqrt time localtime substr index next last "
    "my for foreach chomp x F BEGIN END phpversion PHP_VERSION PHP_EOL RUBY_VERSION process version versions _VERSION NR foo n t".split()
)
"""Words of a one-line program that only computes and prints."""
_SAFE_MODULES = frozenset(
    "json.tool calendar this platform site_ sysconfig timeit_ base64 tabnanny ast tokenize dis".split()
)


def python(this: Call) -> Flow | None:
    """`python3 -c TEXT`, `python3 -m MODULE`, `python3 FILE`, `… | python3`."""
    walker, scene = this.walker, this.scene
    if this.has("-c"):
        word = this.value("-c")
        if word is None:
            return EMPTY
        _text(this, word, _python_reads)
        return None
    module = this.value("-m")
    if module is not None:
        name = module.text
        rest = [word.text for word in this.line.args]
        if (
            name == "json.tool"
            and len([one for one in rest if not one.startswith("-")]) <= 1
            and not any(one == "--in-place" for one in rest)
        ):
            return None
        if name in _SAFE_MODULES and name != "json.tool":
            return None
        if name in ("zipfile", "tarfile") and rest[:1] and rest[0] in ("-l", "--list", "-t", "--test"):
            return None
        if name in ("pip", "pip3"):
            program = walker.knowledge.program("pip")
            if program is not None:
                from oikos.policy import judge

                judge.apply(walker, "pip", program, [Word("pip", span=module.span), *this.line.args], scene)
                return None
        walker.unclear("exec.module", module.span, f"Runs the module {name}, which may change something.", scene)
        return None
    return _file_or_stdin(this)


def _file_or_stdin(this: Call) -> Flow | None:
    walker, scene = this.walker, this.scene
    args = this.line.args
    if this.name == "php" and args and args[0].text.rsplit("/", 1)[-1] == "occ":  # Nextcloud's own console
        return walker.command([Word("occ", span=args[0].span), *args[1:]], scene.inside("php"))
    if args and args[0].text not in ("-", "/dev/stdin"):
        if any(word.tags & {Tag.NETWORK, Tag.DECODED} for word in args):
            walker.destroy(
                "exec.fetched", this.span, "Runs text that was fetched or decoded.", scene, EffectKind.REMOTE_CODE
            )
        else:
            walker.unclear(
                "exec.file",
                args[0].span,
                f"Runs the program {args[0].text.replace(HOLE, '…')}, which is not shown here.",
                scene,
            )
            written = walker.written.get(paths.normal(args[0].text, walker.cwd))
            verb = danger.destroying_verb(args[1:]) or next((one.text for one in args[1:3] if one.text == "flush"), "")
            if written and (_DESTROYS.search(written) or danger.in_text(written)):
                walker.destroy("danger.argument", args[0].span, f"{danger.NOTE}.", scene)
            elif verb:
                walker.destroy("danger.verb", this.span, f"`{verb}` says that something is lost for good.", scene)
        return None
    if not scene.stdin.piped:
        walker.change(
            "interactive.shell",
            this.span,
            f"{this.name} without a program is interactive.",
            scene,
            EffectKind.INTERACTIVE,
        )
        walker.report.advice.append(f"give the program: {this.name} -c '…'")
        return None
    unwrap.fed(walker, this.span, scene, this.name)
    if scene.stdin.text is not None and (_DESTROYS.search(scene.stdin.text) or danger.in_text(scene.stdin.text)):
        walker.destroy("danger.argument", this.span, f"{danger.NOTE}.", scene)
    return None


def _text(this: Call, word: Word, reads: object) -> None:
    walker, scene = this.walker, this.scene
    text = word.text
    if any(paths.is_secret(piece) for piece in re.findall(r"['\"]([^'\"\n]+)['\"]", text)):
        walker.change("read.secret", word.span, "The program names secret material.", scene, EffectKind.SENSITIVE)
    if Tag.NETWORK in word.tags or (_FETCHES.search(text) and _RUNS.search(text)):
        walker.destroy(
            "exec.fetched",
            word.span,
            "Fetches text and runs it; nobody can review that.",
            scene,
            EffectKind.REMOTE_CODE,
        )
    elif (
        _DESTROYS.search(text)
        or any(paths.is_critical(path) for path in _WRITTEN.findall(text))
        or any(danger.in_text(piece) for piece in re.findall(r"['\"]([^'\"\n]{3,})['\"]", text))
    ):
        walker.destroy("code.delete", word.span, "The program deletes, or takes the machine down.", scene)
    elif not word.literal:
        walker.unclear("code.dynamic", word.span, "Part of the program is only known when the shell runs.", scene)
    elif reads is not _python_reads or not _python_reads(text):
        walker.unclear(
            f"code.{this.program.names[0]}",
            word.span,
            f"It cannot be shown that this {this.name} program changes nothing.",
            scene,
        )


def _python_reads(text: str) -> bool:
    """Whether a Python text only computes and prints."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    defined: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                if any(alias.name not in _MODULES for alias in names):
                    return False
                defined.update(alias.asname or alias.name for alias in names)
            case ast.ImportFrom(module=module, level=0, names=names) if module in _MODULES:
                if any(alias.name in _ATTRIBUTES_BAD or alias.name.startswith("_") for alias in names):
                    return False
                defined.update(alias.asname or alias.name for alias in names)
            case ast.ImportFrom():
                return False
            case ast.Attribute(attr=attr):
                if attr.startswith("_") or attr in _ATTRIBUTES_BAD:
                    return False
            case ast.Name(id=name):
                if name.startswith("__"):
                    return False
            case (
                ast.FunctionDef()
                | ast.AsyncFunctionDef()
                | ast.ClassDef()
                | ast.Delete()
                | ast.Global()
                | ast.With()
                | ast.AsyncWith()
            ):
                return False
            case _:
                pass
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id not in _CALLS
            and node.func.id not in defined
        ):
            if (
                node.func.id == "open"
                and len(node.args) == 1
                and not node.keywords
                and isinstance(node.args[0], ast.Constant)
            ) and not paths.is_secret(str(node.args[0].value)):
                continue
            return False
        if isinstance(node, ast.Call) and not isinstance(node.func, (ast.Name, ast.Attribute)):
            return False
    return True


def perl(this: Call) -> Flow | None:
    """perl, ruby, php, lua, node one-liners: never shown to be a look, except for a bare print."""
    walker, scene = this.walker, this.scene
    words = this.values("-e", "-E", "--eval", "-r", "-p", "--print")
    words = [word for word in words if word.text]
    if (
        not words
        and not this.line.args
        and this.has("-v", "-V", "-m", "--version", "--modules", "--ini", "--rf", "--rc", "--re", "--ri")
    ):
        return None
    if this.has("-i"):
        walker.change("code.in-place", this.span, f"{this.name} -i edits files in place.", scene)
    if this.has("-c", "-l") and not words and this.has("-l"):
        return None
    for word in words:
        bare = re.sub(r"'[^'`]*'|\"[^\"`$@\\\\]*\"", "''", word.text)
        simple = (
            re.fullmatch(r"[\w\s.+*/%,:;()\[\]'$<>=!&|?^~-]*", bare)
            and set(re.findall(r"[A-Za-z_]\w*", bare)) <= _SIMPLE
        )
        if (
            simple
            and word.literal
            and "(?{" not in word.text
            and not paths.is_secret(word.text)
            and not re.search(r"[^=<>!]>|<[^=]|s/.*/\w*e", bare)
        ):
            continue
        if re.search(r"\bexec\s*\(?\s*['\"](?:sh|bash|/bin/sh|/bin/bash)['\"]", word.text):
            walker.change("interactive.shell", word.span, "Opens a shell.", scene, EffectKind.INTERACTIVE)
            walker.unclear("code.exec", word.span, "Runs a program.", scene)
            continue
        _text(this, word, None)
    if not words:
        return _file_or_stdin(this)
    return None


node = perl


def make(this: Call) -> Flow | None:
    """make runs recipes nobody looked at, even with -n."""
    recipes = (this.scene.stdin.text or "").split("\n")
    for recipe in recipes:
        unwrap.hidden(this.walker, re.sub(r"^(?:[^:=;]*:)?[\s;@-]*", "", recipe), this.scene, this.span, "make")
    this.walker.unclear(
        "exec.make",
        this.span,
        "make runs recipes, and shell functions of the makefile, that are not shown here.",
        this.scene,
    )
    return None
