"""A Slurm on this machine: a controller and three nodes, all state in one folder.

Every daemon runs in the foreground as a child of this process, and is stopped by its process id.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

NODES = ("n1", "n2", "n3")
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "sinfo")
INSTALL = "apt-get install slurmctld slurmd munge"

_CONF = """\
ClusterName=decon
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
SlurmdTimeout=5
KillWait=2
UnkillableStepTimeout=30
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=100000
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
{nodes}
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1 State=UP
PartitionName=high Nodes=ALL MaxTime=INFINITE PriorityTier=9 State=UP
"""
_NODE = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
    "CPUs=2 RealMemory=4000 State=UNKNOWN"
)


def missing_programs():
    """Programs of Slurm and munge that are not installed."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    return [name for name in PROGRAMS if not shutil.which(name, path=path)]


def free_ports(n):
    """Ports that nothing listens on; taken at once, so that they differ."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class SlurmCluster:
    """The running daemons by name."""

    def __init__(self, folder):
        self.folder = folder
        self.conf = folder / "slurm.conf"
        self._daemons = {}

    @property
    def environment(self):
        path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
        return {**os.environ, "SLURM_CONF": str(self.conf), "PATH": path}

    def start(self, name, *command):
        """Start a daemon in the foreground, in a session of its own."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def start_node(self, name):
        self.start(name, "slurmd", "-D", "-N", name, "-f", str(self.conf))

    def kill_node(self, name):
        """Kill a node: its daemon, and everything it started, as a power loss would."""
        daemon = self._daemons[name]
        ours = [daemon.pid, *descendants(daemon.pid), *self._steps(name)]
        for pid in dict.fromkeys(ours):
            kill(pid, signal.SIGKILL)
        daemon.wait()

    def _steps(self, name):
        """The processes of the jobs on a node: they name its spool folder or descend from one."""
        roots = [pid for pid, line in processes().items() if f"spool-{name}/" in line]
        return [one for root in roots for one in (root, *descendants(root))]

    def run(self, *command):
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def stop(self):
        for daemon in reversed(self._daemons.values()):
            for pid in (*descendants(daemon.pid), daemon.pid):
                kill(pid, signal.SIGTERM)
        for daemon in self._daemons.values():
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def kill(pid, number):
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def processes():
    """The command lines of all processes, by id."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        found[int(path.parent.name)] = line
    return found


def descendants(root):
    """The ids of all processes that a process started, and those started."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, left = [], [root]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


@contextmanager
def slurm_cluster(folder):
    """Start a controller and three nodes, and stop them when the block ends."""
    folder.mkdir(mode=0o755)
    (folder / "state").mkdir()
    host, (port, *ports) = socket.gethostname(), free_ports(1 + len(NODES))
    user = os.environ.get("USER") or "root"
    nodes = [_NODE.format(name=n, host=host, port=p) for n, p in zip(NODES, ports, strict=True)]
    cluster = SlurmCluster(folder)
    cluster.conf.write_text(
        _CONF.format(host=host, port=port, folder=folder, user=user, nodes="\n".join(nodes))
    )
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    try:
        cluster.start(
            "munged", "munged", "--foreground", "--force", "--num-threads=4",
            f"--socket={folder}/munge.socket", f"--key-file={key}",
            f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged-own.log",
            f"--seed-file={folder}/munged.seed",
        )  # fmt: skip
        wait_until(lambda: (folder / "munge.socket").exists(), "munged", folder)
        cluster.start("slurmctld", "slurmctld", "-D", "-f", str(cluster.conf))
        for name in NODES:
            cluster.start_node(name)
        wait_until(lambda: n_idle(cluster) == len(NODES), "three idle nodes", folder)
        yield cluster
    finally:
        cluster.stop()


def n_idle(cluster):
    try:
        states = cluster.run("sinfo", "--noheader", "--Node", "--partition=low", "--format=%t")
    except subprocess.CalledProcessError:
        return 0
    return states.split().count("idle")


def wait_until(is_met, what, folder, *, seconds=60):
    until = time.monotonic() + seconds
    while not is_met():
        if time.monotonic() > until:
            logs = "\n".join(
                f"{path.name}: {path.read_text()[-2000:]}" for path in folder.glob("*.log")
            )
            raise TimeoutError(f"no {what}\n{logs}")
        time.sleep(0.1)
