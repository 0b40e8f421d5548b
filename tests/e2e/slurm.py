"""A Slurm of this machine's own: munged, slurmctld and a slurmd for each of two
nodes, on loopback and in a temporary folder; all of it ends with the object."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from support import until

NODES = ["one", "two"]
CORES = 4  # of a node, in Slurm's eyes; the machine may have fewer
STARTS_WITHIN_S = 30
ENDS_WITHIN_S = 20


def program(name):
    """Daemons are in folders that users' paths lack."""
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def missing():
    """Why this machine can have no Slurm, or nothing."""
    for name in ("munged", "slurmctld", "slurmd", "sbatch", "srun"):
        if not program(name):
            return f"no {name} on this machine"
    if os.geteuid() != 0:
        return "needs root"
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError:
        return "no hostname-address on this machine"
    return ""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Slurm:
    """Runs from the constructor to `end`."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-slurm-"))
        self.environment = {**os.environ,
                            "SLURM_CONF": str(self.folder / "slurm.conf")}
        try:
            self.start_munge()
            self.write_config()
            self.daemon("slurmctld", "-i")
            for node in NODES:
                (self.folder / f"spool.{node}").mkdir()
                self.daemon("slurmd", "-N", node)
            until(lambda: self.idle_nodes() == len(NODES), "idle nodes",
                  STARTS_WITHIN_S)
        except BaseException:
            self.end()
            raise

    def start_munge(self):
        (self.folder / "munge.key").write_bytes(os.urandom(128))
        (self.folder / "munge.key").chmod(0o600)
        self.folder.chmod(0o755)  # munged wants nobody else to write here
        words = [f"--{what}={self.folder}/munge.{end}" for what, end in (
            ("socket", "socket"), ("key-file", "key"), ("pid-file", "pid"),
            ("log-file", "log"), ("seed-file", "seed"))]
        self.run(program("munged"), *words)

    def write_config(self):
        master, *nodes = free_ports(1 + len(NODES))
        host = socket.gethostname().split(".")[0]
        lines = f"""
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge.socket
CredType=cred/munge
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool.%n
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.%n.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/slurmd.%n.log
SlurmctldPort={master}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
KillWait=30
MinJobAge=3600
SlurmdParameters=config_overrides
PartitionName=all Nodes={",".join(NODES)} Default=YES MaxTime=INFINITE State=UP
""".lstrip()
        for node, port in zip(NODES, nodes):
            lines += (f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 "
                      f"Port={port} CPUs={CORES} RealMemory=1000\n")
        (self.folder / "state").mkdir()
        (self.folder / "slurm.conf").write_text(lines)

    def daemon(self, name, *words):
        self.run(program(name), *words)

    def run(self, *words):
        """Output of a program that must succeed."""
        done = subprocess.run(list(map(str, words)), env=self.environment,
                              capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def idle_nodes(self):
        return self.run("sinfo", "-h", "-N", "-t", "idle").count("idle")

    def job(self, number):
        """{field: value} of a job."""
        said = self.run("scontrol", "show", "job", number)
        return dict(re.findall(r"(\S+?)=(\S*)", said))

    def state(self, number):
        return self.job(number)["JobState"]

    def log_of(self, number):
        """What the daemons say of a job, for the message of a failure."""
        return "".join(
            f"{file.name}: {line}\n"
            for file in sorted(self.folder.glob("slurm*.log"))
            for line in file.read_text(errors="replace").splitlines()
            if re.search(rf"(JobId=|[Jj]ob |\[){number}\b", line))

    def wait_while(self, number, states, seconds):
        """Waits until a job has another state, and returns it."""
        end = time.monotonic() + seconds
        while (state := self.state(number)) in states:
            if time.monotonic() > end:
                raise AssertionError(f"job {number} is still {state}")
            time.sleep(0.2)  # each look is a program and a message
        return state

    def processes(self):
        """{pid: command line} of the daemons and what they started."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if (entry.name.isdigit() and str(self.folder).encode()
                        in (entry / "environ").read_bytes()):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    found[int(entry.name)] = b" ".join(words).decode()
        return found

    def end(self):
        """Ends the daemons that the pid files name, jobs before them."""
        with contextlib.suppress(AssertionError, OSError):
            self.run("scancel", "-u", "root", "-s", "KILL")
        for end in (signal.SIGTERM, signal.SIGKILL):
            last = time.monotonic() + ENDS_WITHIN_S
            while pids := self.daemons():
                if time.monotonic() > last:
                    break
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, end)
                time.sleep(0.1)
        shutil.rmtree(self.folder)

    def daemons(self):
        """Live processes of the pid files."""
        found = []
        for file in self.folder.glob("*.pid"):
            with contextlib.suppress(OSError, ValueError):
                pid = int(file.read_text())
                os.kill(pid, 0)
                found.append(pid)
        return found
