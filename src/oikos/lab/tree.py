"""Writing files into the root filesystem of a host that is not running."""

from __future__ import annotations

from pathlib import Path


def directory(root: Path, relative: str, mode: int = 0o755) -> Path:
    """`root`/`relative`, made where missing; only the last component gets `mode`.

    Every missing parent is made 0755 whatever the umask: in an overlay its mode hides that of the layer below.
    """
    place = root
    parts = [part for part in relative.split("/") if part]
    for index, part in enumerate(parts):
        place = place / part
        if not place.is_dir():
            place.mkdir()
            place.chmod(mode if index == len(parts) - 1 else 0o755)
    return place


def write(root: Path, path: str, text: str, mode: int = 0o644) -> Path:
    """Write a file at an absolute path of the host, replacing a symbolic link rather than following it."""
    where = Path(path)
    file = directory(root, str(where.parent)) / where.name
    if file.is_symlink():
        file.unlink()
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


def link(root: Path, path: str, target: str) -> None:
    """Make the symbolic link `path` -> `target`, replacing what is there."""
    where = Path(path)
    place = directory(root, str(where.parent)) / where.name
    place.unlink(missing_ok=True)
    place.symlink_to(target)
