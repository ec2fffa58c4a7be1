"""What only `make test-long` runs."""

import os

import pytest

IS_LONG = bool(os.environ.get("DECON_WHOLE_SESSION"))


def only_in_long_runs(why: str) -> pytest.MarkDecorator:
    """Leave a test out of other runs, as another test tries a part of the same."""
    return pytest.mark.skipif(not IS_LONG, reason=f"{why}: `make test-long` runs it")
