"""A Slurm on this machine: a controller and three nodes, all state in one folder.

Every daemon runs in the foreground as a child of this process, and is stopped by its process id.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.waiting import wait_until

NODES = ("n1", "n2", "n3")
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "sinfo")
_PR_SET_PDEATHSIG = 1
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
                command,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def start_node(self, name):
        self.start(name, "slurmd", "-D", "-N", name, "-f", str(self.conf))

    def kill_node(self, name):
        """Kill a node: its daemon, and everything it started, as a power loss would."""
        daemon = self._daemons[name]
        kill(daemon.pid, signal.SIGKILL)
        daemon.wait()
        for pid in self.processes_of(name):
            kill(pid, signal.SIGKILL)

    def processes_of(self, name=None):
        """What runs of jobs on a node, or on all, and the daemon of each step: it has left ours."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                variables = path.read_bytes().split(b"\0")
                is_ours = f"SLURM_CONF={self.conf}".encode() in variables
                node = next((one for one in variables if one.startswith(b"SLURMD_NODENAME=")), None)
                if is_ours and node and name in (None, node.decode().partition("=")[2]):
                    found[int(path.parent.name)] = None
        parents = [pid for one in found if (pid := parent_of(one)) and is_step(pid)]
        return [*dict.fromkeys(parents), *found]

    def run(self, *command):
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def stop(self):
        for pid in self.processes_of():
            kill(pid, signal.SIGKILL)
        for daemon in reversed(self._daemons.values()):
            daemon.terminate()
        for daemon in self._daemons.values():
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def die_with_parent():
    """Have this process killed when its parent ends, even if that was killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def kill(pid, number):
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def parent_of(pid):
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return int(stat.rpartition(")")[2].split()[1])
    return None


def is_step(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"slurmstepd")
    return False


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
        wait_for("munged", lambda: (folder / "munge.socket").exists(), folder)
        cluster.start("slurmctld", "slurmctld", "-D", "-f", str(cluster.conf))
        for name in NODES:
            cluster.start_node(name)
        wait_for("three idle nodes", lambda: n_idle(cluster) == len(NODES), folder)
        yield cluster
    finally:
        cluster.stop()


def n_idle(cluster):
    try:
        states = cluster.run("sinfo", "--noheader", "--Node", "--partition=low", "--format=%t")
    except subprocess.CalledProcessError:
        return 0
    return states.split().count("idle")


def wait_for(what, is_met, folder):
    if not wait_until(is_met):
        logs = "\n".join(
            f"{path.name}: {path.read_text()[-2000:]}" for path in folder.glob("*.log")
        )
        raise TimeoutError(f"no {what}\n{logs}")
