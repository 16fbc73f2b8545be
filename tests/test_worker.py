"""Who lives on a home: proven by locks that the kernel lets go."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from oikos.adapters.worker import Worker

HOLD = """
import sys
from pathlib import Path
from oikos.adapters.worker import Worker
worker = Worker(Path(sys.argv[1]), "first")
print("holds", flush=True)
sys.stdin.read()
worker.close()
"""


def holder(directory: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "holds\n"
    return child


def test_a_killed_process_is_known_to_be_dead_and_a_stopped_one_is_not(tmp_path: Path) -> None:
    with holder(tmp_path) as child:
        mine = Worker(tmp_path, "second")
        assert mine.dead() == []
        child.send_signal(signal.SIGSTOP)
        assert mine.dead() == []
        child.kill()
        child.wait()
        assert mine.dead() == ["first"]
        mine.forget("first")
        assert mine.dead() == []
        mine.close()
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_leaves_in_good_order_leaves_nothing(tmp_path: Path) -> None:
    with holder(tmp_path) as child:
        child.communicate("")
    mine = Worker(tmp_path, "second")
    assert mine.dead() == []
    mine.close()
