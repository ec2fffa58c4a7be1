"""A Ray cluster on this machine: a head without CPUs, and nodes with one CPU each."""

import itertools
import logging
import os
import signal
from contextlib import contextmanager

# Ray asks for it, as a later version changes what happens without GPUs.
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
from ray.cluster_utils import Cluster

_MEMORY = 100_000_000  # of an object store


@contextmanager
def ray_cluster(n_nodes=2, environments=None):
    """Start the nodes, and stop them when the block ends, by their process ids.

    `environments`: more variables of each node that is started.
    """
    environments = environments or itertools.repeat({})
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _MEMORY}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [
        cluster.add_node(num_cpus=1, object_store_memory=_MEMORY, env_vars=next(environments))
        for _ in range(n_nodes)
    ]
    for number, handler in before.items():  # those of the test process, which Ray has replaced
        signal.signal(number, handler)
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    try:
        yield RayNodes(cluster, nodes)
    finally:
        ray.shutdown()
        cluster.shutdown()


class RayNodes:
    """The cluster, and its nodes that run tasks."""

    def __init__(self, cluster, nodes):
        self._cluster, self._nodes = cluster, nodes

    @property
    def address(self):
        return self._cluster.address

    def kill_node(self):
        """Kill all processes of the oldest node, as a power loss would."""
        self._cluster.remove_node(self._nodes.pop(0), allow_graceful=False)
