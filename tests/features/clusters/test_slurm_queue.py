"""What the engine does when Slurm refuses, and when nodes end all their tasks: a queue made up."""

import pickle
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from decon_assets.assets.stage import engine_log
from decon_core.errors import EngineError, Problem
from decon_core.execution.engine import outcome_of
from decon_core.execution.jobs import run_jobs
from decon_core.execution.processes import Event, Kind
from decon_core.features.clusters import slurm, slurm_queue
from decon_core.features.clusters.settings import Slurm
from decon_core.features.clusters.slurm import SlurmEngine
from decon_core.features.clusters.slurm_queue import TaskState
from decon_core.features.clusters.task_files import EventWriter, TaskFiles
from tests.core.execution.jobs import Job, double, results_of

REFUSAL = EngineError(Problem("sbatch", "Slurm refused the job: the controller is busy"))
COMPLETED = TaskState("COMPLETED", "n1")
LOST = TaskState("NODE_FAIL", "n1")


def failed_on(node):
    return TaskState("FAILED", node)


@dataclass
class Queue:
    """Answers like Slurm: arrays are refused, or their tasks end in the given states at once.

    A task that completes has done its jobs. One that runs does them when it is looked at. The
    workers of some jobs die first.
    """

    arrays: list  # for each submission: a refusal, or the states of its tasks
    n_submissions: int = 0
    found: dict = field(default_factory=dict)  # states of tasks
    running: list = field(default_factory=list)
    deadly: tuple = ()  # numbers of jobs
    left_out: list = field(default_factory=list)  # nodes, for each submission
    n_silences: int = 0  # looks at the states that are not answered

    def submit(self, settings, *, n_tasks, folder, array, logs, left_out=()):
        self.left_out.append([*left_out])
        answer = self.arrays[min(self.n_submissions, len(self.arrays) - 1)]
        self.n_submissions += 1
        if isinstance(answer, EngineError):
            raise answer
        for task in range(n_tasks):
            state = answer[task % len(answer)]
            self.found[f"{array}_{task}"] = state
            if state.name in ("COMPLETED", "RUNNING"):
                self.work(folder, array, task, is_done=state.name == "COMPLETED")
        return str(array)

    def work(self, folder, array, task, *, is_done):
        files = TaskFiles(folder)
        fn, _ = pickle.loads(files.read_work())
        if not is_done:
            self.running.append((folder, array, task))
            return
        with EventWriter(files.events(array, task)) as writer:
            for number, job in files.read_jobs(array, task).jobs:
                writer.write_start(number)
                if number in self.deadly:
                    writer.write(Event(Kind.DIED, number, "killed by SIGKILL"))
                writer.write(Event(Kind.ENDED, number, outcome_of(fn, pickle.loads(job))))

    def states(self, jobs):
        self.n_silences -= 1
        return None if self.n_silences >= 0 else self.found


@pytest.fixture
def queue(monkeypatch):
    def make(*arrays):
        made = Queue([*arrays])
        for name in ("submit", "states"):
            monkeypatch.setattr(slurm_queue, name, getattr(made, name))
        return made

    monkeypatch.setattr(slurm_queue, "require_slurm", lambda: None)
    monkeypatch.setattr(slurm_queue, "cancel", lambda jobs: None)
    for name in ("BETWEEN_READS", "BETWEEN_LOOKS", "AFTER_BAD_START", "TO_CANCEL", "FOR_EVENTS"):
        monkeypatch.setattr(slurm, f"_SECONDS_{name}", 0.0)
    return make


def engine_in(folder, **settings):
    return SlurmEngine(Slurm(jobs_per_task=1, **settings), folder / "drafts", folder / "logs")


def run(engine, n_jobs=3):
    jobs = [Job(number) for number in range(n_jobs)]
    return results_of(run_jobs(double, jobs, workers=1, engine=engine))


def test_what_is_left_of_lost_tasks_is_submitted_until_slurm_accepts_it(queue, tmp_path, caplog):
    made = queue([COMPLETED, LOST, COMPLETED], REFUSAL, REFUSAL, REFUSAL, [COMPLETED])
    engine = engine_in(tmp_path)
    assert run(engine) == {0: 0, 1: 2, 2: 4}
    assert made.n_submissions == 5
    assert engine.counts.queue == "Slurm job 4 (tasks: 0 waiting, 0 running)"
    assert sum("the controller is busy" in one for one in caplog.messages) == 1


def test_that_slurm_does_not_answer_is_said_once(queue, tmp_path, caplog):
    made = queue([LOST], [COMPLETED])
    made.n_silences = 3
    with caplog.at_level("INFO"):
        assert run(engine_in(tmp_path), n_jobs=1) == {0: 0}
    said = [one for one in caplog.messages if one.startswith("Slurm ") and "answer" in one]
    assert said == ["Slurm does not answer; waiting until it does", "Slurm answers again"]


def test_the_log_of_a_run_names_the_submitted_job_and_the_lost_task(queue, tmp_path):
    queue([LOST], [COMPLETED])
    said = []
    log = SimpleNamespace(log=lambda level, text: said.append(text))
    with engine_log(SimpleNamespace(log=log)):
        run(engine_in(tmp_path), n_jobs=1)
    assert f"Slurm job 0: 1 job in 1 task, logs in {tmp_path / 'logs'}" in said
    assert any(text.startswith("Slurm task 0_0: NODE_FAIL on n1") for text in said)


def test_a_submission_that_stays_refused_ends_the_run_with_the_reason(queue, tmp_path, monkeypatch):
    monkeypatch.setattr(slurm, "_SECONDS_TO_SUBMIT_AGAIN", 0.0)
    made = queue([LOST], REFUSAL)
    with pytest.raises(EngineError, match="the controller is busy"):
        run(engine_in(tmp_path))
    assert made.n_submissions > 1


def test_refusals_while_other_tasks_run_do_not_shorten_the_time_after_them(
    queue, tmp_path, monkeypatch
):
    made = queue([LOST, TaskState("RUNNING", "n2")], *[REFUSAL] * 22, [COMPLETED])
    now = 0.0

    def sleep(_):  # 20 refusals while the task runs take longer than a run waits after it
        nonlocal now
        now += slurm._SECONDS_TO_SUBMIT_AGAIN / 10
        if made.n_submissions == 20:
            for folder, array, task in made.running:
                made.work(folder, array, task, is_done=True)
            made.running.clear()

    clock = SimpleNamespace(monotonic=lambda: now, sleep=sleep)
    monkeypatch.setattr(slurm, "time", clock)
    assert run(engine_in(tmp_path), n_jobs=2) == {0: 0, 1: 2}
    assert made.n_submissions == 24


def test_the_log_of_a_task_is_kept_if_a_worker_died_in_it(queue, tmp_path, caplog):
    made = queue([COMPLETED])
    made.deadly = (1,)
    engine = engine_in(tmp_path)
    engine.logs.mkdir()
    logs = [engine.logs / f"0_{number}.log" for number in range(3)]
    for log in logs:
        log.touch()
    assert run(engine) == {0: 0, 1: 2, 2: 4}
    assert [*engine.logs.iterdir()] == [logs[1]]
    assert f"its worker died (killed by SIGKILL); log: {logs[1]}" in caplog.text


def test_the_first_submission_is_not_repeated(queue, tmp_path):
    made = queue(REFUSAL)
    with pytest.raises(EngineError, match="the controller is busy"):
        run(engine_in(tmp_path))
    assert made.n_submissions == 1


def test_tasks_that_end_at_once_on_three_nodes_end_the_run(queue, tmp_path):
    made = queue([failed_on("n1"), failed_on("n2"), failed_on("n3")])
    with pytest.raises(EngineError, match="on 3 nodes, tasks ended before their first job"):
        run(engine_in(tmp_path))
    assert made.n_submissions == 1


def test_tasks_that_end_at_once_on_a_node_without_a_name_end_the_run(queue, tmp_path):
    made = queue([failed_on("")])
    with pytest.raises(EngineError, match=r"their first job .* on an unknown node"):
        run(engine_in(tmp_path))
    assert made.left_out == [[]]


def test_a_bad_node_that_alone_has_tasks_is_left_out_and_named(queue, tmp_path, caplog):
    made = queue([failed_on("n1")], [COMPLETED])
    engine = engine_in(tmp_path)
    engine.logs.mkdir()
    (engine.logs / "0_2.log").write_text("python: no such file\n")
    assert run(engine) == {0: 0, 1: 2, 2: 4}
    assert made.left_out == [[], ["n1"]]
    (said,) = [one for one in caplog.messages if one.startswith("node ")]
    assert said.startswith("node n1 gets no more tasks of this step: 3 tasks ended there before")
    assert said.endswith(f"{engine.logs / '0_2.log'}\npython: no such file")


def test_a_task_that_did_something_ends_the_count_of_its_node(queue, tmp_path):
    bad, late = failed_on("n1"), TaskState("RUNNING", "n1")
    made = queue([bad, bad, late], [bad], [bad], [COMPLETED])

    def finish_the_running_one(_):
        for folder, array, task in made.running:
            made.work(folder, array, task, is_done=True)
        made.running.clear()

    jobs = [Job(number) for number in range(3)]
    engine = engine_in(tmp_path, array_size=3)
    done = run_jobs(double, jobs, workers=1, engine=engine, on_advance=finish_the_running_one)
    assert results_of(done) == {0: 0, 1: 2, 2: 4}
    assert made.left_out == [[], [], [], ["n1"]]


def test_a_run_ends_when_slurm_has_no_other_node_than_those_left_out(queue, tmp_path):
    text = "Batch job submission failed: Requested node configuration is not available"
    made = queue([failed_on("n1")], EngineError(Problem("sbatch", text)))
    with pytest.raises(EngineError, match=r"other than the excluded ones \(n1\).*0_2\.log"):
        run(engine_in(tmp_path))
    assert made.n_submissions == 2


def test_a_node_that_ends_all_its_tasks_is_left_out_of_a_run_that_goes_on_elsewhere(
    queue, tmp_path
):
    bad, busy = failed_on("n1"), TaskState("RUNNING", "n2")
    made = queue([bad, bad, bad, busy], [COMPLETED, LOST, COMPLETED], [LOST], [COMPLETED])

    def finish_the_running_one(_):
        if made.n_submissions == 4:
            for folder, array, task in made.running:
                made.work(folder, array, task, is_done=True)
            made.running.clear()

    jobs = [Job(number) for number in range(4)]
    engine = engine_in(tmp_path)
    done = run_jobs(double, jobs, workers=1, engine=engine, on_advance=finish_the_running_one)
    assert results_of(done) == {0: 0, 1: 2, 2: 4, 3: 6}
    assert made.left_out == [[], ["n1"], ["n1"], ["n1"]]


def test_more_tasks_than_an_array_has_are_put_together_and_that_is_said(queue, tmp_path, caplog):
    queue([COMPLETED])
    with caplog.at_level("INFO"):
        assert len(run(engine_in(tmp_path), n_jobs=2_500)) == 2_500
    assert "3 shards per task, not 1: an array job can have at most 1,000 tasks" in caplog.text
    assert "2,500 jobs in 834 tasks" in caplog.text


def test_states_of_jobs_are_logged_where_nobody_follows_their_progress(
    queue, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr("decon_core.execution.jobs._SECONDS_BETWEEN_LOG_LINES", 0.0)
    queue([LOST], [COMPLETED])
    with caplog.at_level("DEBUG", logger="decon_core.execution"):
        run(engine_in(tmp_path), n_jobs=2)
    job = "Slurm job 1 (tasks: 2 waiting, 0 running)"
    assert f"{job}: 2 queued, 0 running, 0 done, 0 failed, 0 requeued" in caplog.messages
    job = "Slurm job 1 (tasks: 0 waiting, 0 running)"
    assert f"{job}: 0 queued, 0 running, 2 done, 0 failed, 0 requeued" in caplog.messages


def test_progress_says_how_many_tasks_wait_and_how_many_run(queue, tmp_path):
    made = queue([TaskState("PENDING"), TaskState("PENDING"), TaskState("RUNNING", "n1")])
    engine, said = engine_in(tmp_path), []

    def note(_):
        said.append(str(engine.counts))
        if len(said) == 3:  # now all of them run, and end
            for task in range(3):
                made.work(tmp_path / "drafts" / folder_of(tmp_path), 0, task, is_done=True)

    jobs = [Job(number) for number in range(3)]
    assert results_of(run_jobs(double, jobs, workers=1, engine=engine, on_advance=note))
    queued = "3 queued, 0 running, 0 done, 0 failed, 0 requeued"
    assert said[0] == f"Slurm job 0 (tasks: 2 waiting, 1 running): {queued}"


def folder_of(tmp_path):
    """The name of the only draft."""
    (folder,) = (tmp_path / "drafts").iterdir()
    return folder.name
