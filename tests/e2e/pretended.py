"""What tests of whole runs on pretended GPUs share (docs/gpu_tests.md): libtorch's CUDA
half, our kernels, graphs and NCCL over stand-ins."""
import subprocess
import unittest

from support import BUILD, SOURCE, Case, Process

STANDIN = SOURCE / "tests/gpu/standin.sh"
PROGRAM = BUILD / "tests/gpu/standin_troupe"
SECONDS = 240  # of a run: its kernels are loops of the host
GPU_MIB = 2048


def why_not():
    """Why there are no pretended GPUs here; empty: there are."""
    if not PROGRAM.exists():
        return "no standin_troupe on this machine"
    found = subprocess.run([STANDIN, "--", "true"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    return found.strip().removeprefix("skipped: ")


class OnPretendedGpus(Case):
    @classmethod
    def setUpClass(cls):
        if reason := why_not():
            raise unittest.SkipTest(reason)
        super().setUpClass()

    def command(self, count, arguments, seed=1):
        """A process of the program with so many GPUs."""
        return Process(self, ["--gpus", count, "--mb", GPU_MIB, "--seed", seed, "--", PROGRAM,
                              *arguments], STANDIN)

    def on_gpus(self, count, arguments, seed=1):
        """A run of one worker process with a device for each GPU."""
        return self.command(count, [*arguments, f"cluster.devices_per_node={count}",
                                    "cluster.workers_per_node=1", "cluster.device=gpu",
                                    "trace.enabled=false"], seed)
