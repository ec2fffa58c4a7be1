"""What a first scan compiles in a subprocess, beside its own process."""

from contextlib import nullcontext

import pytest

from decon_core.config.policy import Policy
from decon_core.folder_scan import warm
from decon_core.folder_scan.results import MATCHES_FILE


@pytest.fixture
def given(monkeypatch):
    """The jobs that a subprocess would do."""
    jobs = []

    def in_subprocess(fn, job):
        jobs.append((fn, job))
        return nullcontext()

    monkeypatch.setattr(warm, "in_subprocess", in_subprocess)
    monkeypatch.setattr(warm, "is_to_be_compiled", lambda _: True)
    monkeypatch.setattr(warm, "usable_cores", lambda: 2)
    return jobs


def test_a_first_scan_on_two_cores_has_the_search_compiled_beside(given):
    policy = Policy()
    with warm.search_compiled_beside(policy):
        ((_, (found, _)),) = given
    assert found is policy


@pytest.mark.parametrize(
    ("name", "value"), [("usable_cores", lambda: 1), ("is_to_be_compiled", lambda _: False)]
)
def test_one_core_or_a_cache_with_kernels_needs_no_subprocess(given, monkeypatch, name, value):
    monkeypatch.setattr(warm, name, value)
    with warm.search_compiled_beside(Policy()):
        assert not given


def test_what_the_subprocess_does_scans_a_few_items(tmp_path):
    warm._compile_search((Policy(), tmp_path))
    assert (tmp_path / "scan" / "found" / MATCHES_FILE).is_file()
