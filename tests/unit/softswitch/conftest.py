"""Every test here runs on both back ends; what C is not made for runs in Python twice."""

import pytest

from softswitch.native import VARIABLE, why_not


@pytest.fixture(params=["python", "native"], autouse=True)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The back end that switches of this test have unless they name one."""
    name: str = request.param
    reason = why_not() if name == "native" else None
    if reason is not None:
        pytest.skip(f"ABSENT: native code: {reason}")
    monkeypatch.setenv(VARIABLE, "auto" if name == "native" else name)
    return name
