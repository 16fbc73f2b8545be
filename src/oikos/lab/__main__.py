"""`python -m oikos.lab`: the same as `oikos lab`."""

from __future__ import annotations

from oikos.lab.cli import lab

if __name__ == "__main__":
    lab(prog_name="oikos lab")
