"""The program of a Slurm task: runs its jobs in as many processes as it has CPUs.

    python -m decon_core.features.clusters.slurm_task FOLDER ARRAY

The number of the task within the array is in the environment.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from decon_core.execution.processes import Kind, Task, run_in_processes
from decon_core.features.clusters.task_files import (
    EventWriter,
    TaskFiles,
    prepare_pickled,
    run_pickled,
)

_SECONDS_BETWEEN_LOOKS = 60.0


def main(folder: str, array: str) -> int:
    """Run the jobs of a task; return 1 if the process that submitted it has died."""
    # Stops the workers on the way: the task is cancelled, preempted or out of time.
    signal.signal(signal.SIGTERM, lambda signal_number, _: sys.exit(128 + signal_number))
    files, number = TaskFiles(Path(folder)), int(os.environ["SLURM_ARRAY_TASK_ID"])
    todo = files.read_jobs(int(array), number)
    work, path = files.read_work(), files.events(int(array), number)
    fn, prepare = partial(run_pickled, work), partial(prepare_pickled, work)
    n_cpus = int(os.environ.get("SLURM_CPUS_PER_TASK") or 1)
    looked_at = time.monotonic()
    with EventWriter(path) as writer, ExitStack() as stack:
        for jobs, n_workers in ((todo.alone, 1), (todo.others, n_cpus)):
            task = Task(fn=fn, jobs=jobs, prepare=prepare, on_start=writer.write_start)
            events = run_in_processes(task, n_workers=n_workers, deaths=todo.deaths)
            for event in stack.enter_context(closing(events)):
                if event is not None and event.kind is not Kind.STARTED:
                    writer.write(event)
                elif time.monotonic() - looked_at > _SECONDS_BETWEEN_LOOKS:
                    looked_at = time.monotonic()
                    path.touch()
                    if files.is_abandoned(path):
                        sys.stderr.write(f"the process reading the results in {folder} has ended\n")
                        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
