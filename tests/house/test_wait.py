from __future__ import annotations

import pytest
from tests.wait import until, until_async


def test_waiting_returns_the_first_truthy_answer() -> None:
    answers = iter([0, 0, 7])
    assert until(lambda: next(answers), "seven") == 7


def test_waiting_in_vain_fails_with_what_never_came() -> None:
    with pytest.raises(AssertionError, match="in vain for a miracle"):
        until(lambda: False, "a miracle", timeout_s=0.03)


@pytest.mark.anyio
async def test_waiting_in_vain_on_the_loop_fails_with_what_never_came() -> None:
    with pytest.raises(AssertionError, match="in vain for a miracle"):
        await until_async(lambda: False, "a miracle", timeout_s=0.03)
