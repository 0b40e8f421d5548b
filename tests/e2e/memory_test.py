"""I6 seen from outside: the memory of master and workers is flat over steps.
200 steps in CI, 2000 with TROUPE_SOAK set."""
import os
import pathlib
import signal
import unittest

from support import Case

STEPS = 2000 if os.environ.get("TROUPE_SOAK") else 200
WARM = 15          # steps after which caches and pools have their size
GROWTH_MB = 16     # of all three processes together, from then on


def resident_mb(pids):
    """Resident memory of these processes, in MB."""
    pages = sum(int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
                for pid in pids)
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


class Memory(Case):
    def test_resident_memory_is_flat_over_steps_I6(self):
        # quiet: no process reads the lines, and a full pipe would stop the run
        process = self.start(
            *self.ppo("run.steps=100000", "run.keep=1", "--quiet"))
        self.wait_for_step("ppo", WARM)
        pids = list(self.processes())
        self.assertEqual(len(pids), 3)
        before = resident_mb(pids)
        self.wait_for_step("ppo", STEPS, seconds=STEPS)
        after = resident_mb(pids)
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75)
        self.assertLess(after - before, GROWTH_MB, f"{before} -> {after} MB")


if __name__ == "__main__":
    unittest.main()
