"""The processes that commands look at without tracing them."""

from __future__ import annotations

from tracer.config import Config
from tracer.errors import UsageError
from tracer.model import Target
from tracer.targets.pod_watch import PodWatch
from tracer.targets.process import Process
from tracer.targets.processes import Processes


def processes_of(settings: Config) -> Processes:
    """With the pods as the kubelet tells them now."""
    pods = PodWatch(settings.kubelet)
    pods.ask()
    return Processes(settings, pods=pods)


def target_of(pid: int) -> Target:
    try:
        process = Process.read(pid)
    except OSError as e:
        raise UsageError(f"no process {pid}: {e.strerror}; give the pid of one that runs") from e
    return Target(0, pid, process.started_ns, process.comm, process.comm)
