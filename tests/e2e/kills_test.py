"""Kills at random: any process of a run, at any moment, and the run ends with
the bits of one that nobody disturbed (I5, I8). TROUPE_KILLS=100 for `make soak`;
TROUPE_SEED repeats a sequence of kills; TROUPE_SAVES=disk for runs without
snapshots in memory. Prints what the recoveries cost."""
import contextlib
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import time
import unittest

from support import CONSTANT, TINY, Case, read_rows, until, write_rows

KILLS = int(os.environ.get("TROUPE_KILLS", "10"))
SEED = int(os.environ.get("TROUPE_SEED", "1"))
RUN_S = 120          # of one run with its kills; a hang is longer
STEPS = 60
SILENCE_S = 3
FOUR_DEVICES = ["cluster.devices_per_node=4", "cluster.workers_per_node=2"]
# what a run continues from: snapshots in memory, or a checkpoint of each step
SAVES = {"memory": ["run.save_every=20"],
         "disk": ["run.save_every=1", "run.snapshot_every=0"]}
ALL = [*SAVES[os.environ.get("TROUPE_SAVES", "memory")],
       "run.keep=2", f"run.steps={STEPS}",
       "cluster.max_restarts=1000", f"cluster.silence_s={SILENCE_S}"]


def segments():
    """Names of shared memory of groups that is still linked."""
    return {file.name for file in pathlib.Path("/dev/shm").iterdir()
            if file.name.startswith("troupe-")}


class Kills(Case):
    def setUp(self):
        super().setUp()
        self.random, self.kinds = random.Random(SEED), {}
        (self.folder / "score.py").write_text(
            "def compute_score(source, solution, truth, extra_info=None):\n"
            "    return float(len(solution))\n")
        rows = read_rows(self.folder / "data/prompts.jsonl")
        write_rows(self.folder / "rows.jsonl",
                   [{**row, "data_source": "mine", "ground_truth": "x"}
                    for row in rows])

    def runs(self):
        """{name: arguments without the run's name}."""
        dpo = ["train", TINY / "dpo.yaml", "models.actor.path=data/base",
               "data.batch_size=16", "data.train=data/pairs_train.jsonl",
               "eval.data=null",
               "plan=data_parallel", "cluster.devices_per_node=2",
               "cluster.workers_per_node=2", *ALL]
        grpo = ["train", "/dev/null", "workflow=grpo",
                "models.actor.path=data/base", "data.train=rows.jsonl",
                "data.batch_size=6", "data.max_prompt_tokens=32",
                "rollout.n=4", "rollout.max_new_tokens=12",
                "reward.kind=python", "reward.file=score.py",
                "plan=separation", *FOUR_DEVICES, *ALL]
        ppo = [*self.ppo(*CONSTANT, *ALL), *FOUR_DEVICES]
        evaluates = ["eval.data=data/prompts.jsonl", "eval.max_rows=8",
                     "eval.every=4"]
        return {"ppo on groups, evaluated": self.ppo(*CONSTANT, *ALL, *evaluates),
                "ppo, interleaving": [*ppo, "plan=interleaving"],
                "ppo, separation": [*ppo, "plan=separation"],
                "ppo, async": [*ppo, "plan=async"],
                "grpo, Python reward": grpo,
                "dpo": dpo}

    def programs(self):
        """Reward programs of the run."""
        return [pid for pid, words in self.processes().items()
                if "python" in words.split(" ", 1)[0]]

    def kill(self, master):
        """Ends one or two processes of the run, or stops one for a while.
        Returns the text of what it did; nothing if there was nobody."""
        of_kind = {"worker": self.workers(), "two": self.workers()[:2],
                   "master": [master], "keeper": self.keepers(),
                   "program": self.programs()}
        kind = self.random.choice(["worker"] * 5 + ["two"] * 2
                                  + ["master", "keeper", "program"])
        stops = kind != "two" and self.random.random() < 0.3
        victims = of_kind[kind]
        if kind != "two" and victims:
            victims = [self.random.choice(victims)]
        if not victims:
            return None
        for pid in victims:
            self.send(pid, signal.SIGSTOP if stops else signal.SIGKILL)
        if stops:
            self.wake(kind, victims[0])
        return f"{kind} stopped" if stops else kind

    def wake(self, kind, pid):
        """Lets a stopped process go on before the limit of silence or after it;
        a worker perhaps never."""
        lengths = [SILENCE_S / 3, 1.5 * SILENCE_S]
        length = self.random.choice([*lengths, None] if kind == "worker"
                                    else lengths)
        if length is not None:
            time.sleep(length)
            self.send(pid, signal.SIGCONT)

    def send(self, pid, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def disturbed(self, name, arguments, kills):
        """Runs to the end through `kills` kills, or as many as its time allows;
        returns how often the command was started, and how many there were."""
        starts, done, begin = 0, 0, time.monotonic()
        while True:
            process = self.start(*arguments, f"run.name={name}")
            starts += 1
            while process.popen.poll() is None and done < kills:
                time.sleep(self.random.uniform(0, 2))
                if how := self.kill(process.popen.pid):
                    self.kinds[how] = self.kinds.get(how, 0) + 1
                    done += 1
            code = process.finish(RUN_S).code
            if code == 0:
                return starts, done
            self.assertIn(code, (1, -signal.SIGKILL), process.err)
            self.assertLess(time.monotonic() - begin, 2 * RUN_S)
            until(lambda: not self.workers(), "the workers' end", 15)

    def test_any_process_may_be_killed_at_any_moment_I8(self):
        before, costs, extra_starts, killed = segments(), [], 0, 0
        kinds, wanted = self.runs(), {}
        for number, kind in enumerate(itertools.cycle(kinds)):
            if killed >= KILLS and number >= len(kinds):
                break
            self.assertLess(number, 4 * (KILLS + len(kinds)), "too few kills")
            if kind not in wanted:
                self.troupe(*kinds[kind], "run.name=undisturbed")
                wanted[kind] = self.outcome("undisturbed")
                shutil.rmtree(self.run_folder("undisturbed"))
            starts, done = self.disturbed(
                "run", kinds[kind], max(1, KILLS // (4 * len(kinds))))
            extra_starts, killed = extra_starts + starts - 1, killed + done
            for got, expected in zip(self.outcome("run"), wanted[kind]):
                self.assertEqual(got, expected, kind)
            until(lambda: not self.keepers(), "the end of the keeper", 15)
            failures = self.run_folder("run") / "failures.jsonl"
            if failures.exists():
                costs += [row for row in read_rows(failures) if "seconds" in row]
            shutil.rmtree(self.run_folder("run"))
        self.assertEqual(segments() - before, set(), "shared memory left over")
        seconds = [row["seconds"] for row in costs]
        lost = [row["lost_steps"] for row in costs]
        print(json.dumps({
            "kills": killed, "kinds": self.kinds, "seed": SEED, "recoveries": len(costs),
            "starts_by_hand": extra_starts,
            "seconds_median": statistics.median(seconds) if seconds else None,
            "seconds_max": max(seconds, default=None),
            "lost_steps_median": statistics.median(lost) if lost else None,
            "lost_steps_max": max(lost, default=None)}))


if __name__ == "__main__":
    unittest.main()
