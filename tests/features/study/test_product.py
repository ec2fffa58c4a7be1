"""The study in the store."""

from decon_core.features.study.build import faults_of_study
from decon_core.storage.files import write_json


def test_results_that_a_study_could_not_use_are_named(tmp_path):
    assert [*faults_of_study(tmp_path)] == []
    write_json(tmp_path / "study.json", {"problems": ["a.csv: no column 'score'"]})
    (problem,) = faults_of_study(tmp_path)
    assert problem.found == "a.csv: no column 'score'"
