"""A tiny package depot inside a host: .deb files built there or kept in its layer, and the index that apt reads."""

from __future__ import annotations

from dataclasses import dataclass

DEPOT = "/srv/depot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package with one program of its own name; `configure` is the text of its maintainer script, run as postinst."""

    name: str
    version: str
    configure: str = ""


def build_script(packages: tuple[Package, ...], *, source: str = f"file:{DEPOT}", where: str = DEPOT) -> str:
    """Shell that builds the packages into `where`, indexes them, and makes `source` the host's only one."""
    lines = ["set -e", f"mkdir -p {where} /run/build", f": > {where}/Packages"]
    for package in packages:
        lines += _built(package, where)
    return "\n".join([*lines, *source_lines(source), ""])


def source_lines(source: str) -> list[str]:
    """Shell lines that make `source` the only place apt installs from, asked directly."""
    return [
        "rm -rf /etc/apt/sources.list.d/* /var/lib/apt/lists/*",
        f"echo 'deb [trusted=yes] {source} ./' > /etc/apt/sources.list",
        "echo 'Acquire::http::Proxy \"DIRECT\";' > /etc/apt/apt.conf.d/99depot",
    ]


def copied_script(source: str, *, where: str = DEPOT) -> str:
    """Shell that puts the .deb files of a directory of the host into a depot `where`, and indexes them."""
    index = "dpkg-deb -f $file; echo Filename: ./$file; echo Size: $(stat -c %s $file)"
    digest = "echo SHA256: $(sha256sum $file | cut -d' ' -f1); echo"
    return f"""set -e
mkdir -p {where}
cp {source}/*.deb {where}
cd {where}
for file in *.deb; do {index}; {digest}; done > Packages
"""


def release_lines(*, where: str = DEPOT) -> str:
    """Shell that gives the depot a Release file, so that apt knows its origin, `Depot`."""
    return f"""{{
printf 'Origin: Depot\\nLabel: Depot\\nSuite: stable\\nArchitectures: all\\n'
echo "Date: $(date -uR)"
echo SHA256:
echo " $(sha256sum {where}/Packages | cut -d' ' -f1) $(stat -c %s {where}/Packages) Packages"
}} > {where}/Release
"""


def _built(package: Package, where: str) -> list[str]:
    tree, file = f"/run/build/{package.name}", f"{package.name}_{package.version}_all.deb"
    control = f"Package: {package.name}\\nVersion: {package.version}\\nArchitecture: all\\nMaintainer: The lab\\n"
    lines = [
        f"mkdir -p {tree}/DEBIAN {tree}/usr/bin",
        f"printf '{control}Description: says its name\\n' > {tree}/DEBIAN/control",
        f"printf '#!/bin/sh\\necho {package.name} {package.version}\\n' > {tree}/usr/bin/{package.name}",
        f"chmod 755 {tree}/usr/bin/{package.name}",
    ]
    if package.configure:
        script = f"{tree}/DEBIAN/postinst"
        lines.append(f"cat > {script} <<'POSTINST'\n#!/bin/sh\n{package.configure}\nPOSTINST\nchmod 755 {script}")
    return [
        *lines,
        f"dpkg-deb --root-owner-group --build {tree} {where}/{file} > /dev/null",
        f"{{ cat {tree}/DEBIAN/control; echo Filename: ./{file}; echo Size: $(stat -c %s {where}/{file}); "
        f"echo SHA256: $(sha256sum {where}/{file} | cut -d' ' -f1); echo; }} >> {where}/Packages",
    ]
