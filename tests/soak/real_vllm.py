#!/usr/bin/env python3
"""GRPO whose responses come from the real vLLM for CPUs (make engines): weights
of each version verified, a server of two tensor-parallel ranks, one killed in
the middle.

    TROUPE_BUILD=build tests/soak/real_vllm.py"""
import contextlib
import os
import pathlib
import signal
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "e2e"), str(HERE.parent / "support")]
from support import Case, SOURCE, until  # noqa: E402 (its folder is above)
from tiny_qwen3 import write_tiny_qwen3  # noqa: E402

PYTHON = SOURCE / ".deps/engines/bin/python"
STARTS_WITHIN_S = 600  # beside other programs; 30 s on a quiet machine


@unittest.skipUnless(PYTHON.exists(), "no .deps/engines; run `make engines`")
class RealVllm(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        write_tiny_qwen3(cls.shared_folder / "base", cls.shared_folder / "qwen3")

    def grpo(self, *overrides):
        return ["train", "/dev/null", "workflow=grpo", "run.name=grpo",
                "run.steps=4", "run.save_every=0", "plan=single",
                "cluster.devices_per_node=1", "cluster.workers_per_node=1",
                "cluster.env={VLLM_CPU_OMP_THREADS_BIND: '1'}",
                "models.actor.path=data/qwen3",
                "models.actor.optimizer.lr=1e-3",
                "data.train=data/prompts.jsonl", "data.batch_size=4",
                "data.max_prompt_tokens=32", "rollout.n=4",
                "rollout.max_new_tokens=12", "algorithm.kl_in=none",
                "algorithm.mini_batches=1", "reward.kind=rule",
                "reward.weights={'regex:a': 1, 'regex:e': 1, 'regex:i': 1}",
                "rollout.engine=vllm",
                f"rollout.server_command={PYTHON} -m "
                "vllm.entrypoints.openai.api_server --enforce-eager", *overrides]

    def engine_cores(self):
        """Processes of this run's servers that draw tokens: those in the group
        of a server that was started with this test's model."""
        groups, cores = set(), {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes()
                group = os.getpgid(int(entry.name))
                if b"api_server" in words and b"data/qwen3" in words:
                    groups.add(group)
                if words.startswith(b"VLLM::EngineCore"):
                    cores[int(entry.name)] = group
        return [pid for pid, group in cores.items() if group in groups]

    def shared_memory(self):
        """Names of Python's shared memory on this host; its semaphores, of 32 bytes,
        are removed by a process that ends with the server's group."""
        return {file.name for file in pathlib.Path("/dev/shm").iterdir()
                if file.name.startswith("psm_")}

    def check(self, lines):
        for line in lines.values():
            self.assertLess(line["training/rollout_probs_diff_mean"], 1e-4)
        gaps = [line["rollout/engine_logprob_gap"] for line in lines.values()]
        self.assertLess(max(gaps), 1e-4)
        print("gaps", gaps, "updates",
              [line["rollout/engine_update_s"] for line in lines.values()],
              "GB/s", [line["rollout/engine_update_gb_per_s"]
                       for line in lines.values()])

    def test_grpo_trains_with_vllm(self):
        self.troupe(*self.grpo(), seconds=STARTS_WITHIN_S)
        self.check(self.metrics("grpo"))

    def test_adapters_train_with_vllm(self):
        self.troupe(*self.grpo("models.actor.lora.rank=4",
                               "models.actor.optimizer.lr=1e-2"),
                    seconds=STARTS_WITHIN_S)
        lines = self.metrics("grpo")
        self.check(lines)
        # all weights once, then adapters
        sizes = [lines[step]["rollout/engine_update_gb"] for step in (1, 2)]
        self.assertLess(sizes[1], 0.5 * sizes[0])

    def test_two_tensor_parallel_devices_fill_one_server(self):
        plan = ("plan={calls: {actor_gen: {devices: 0-1, strategy: t2}, "
                "rewards: {devices: host}, advantages: {devices: host}, "
                "actor_train: {devices: 0-1, strategy: d2}}}")
        self.troupe(*self.grpo(
            "run.name=tensor", plan, "cluster.devices_per_node=2",
            "cluster.env={VLLM_CPU_OMP_THREADS_BIND: '0|1'}"),
            seconds=2 * STARTS_WITHIN_S)
        self.assertEqual(
            [log.parent.name for log in
             self.run_folder("tensor").glob("servers/*/server.log")], ["0"])
        self.check(self.metrics("tensor"))

    def test_weights_go_over_tcp(self):
        self.troupe(*self.grpo("rollout.weights_over=tcp"), seconds=STARTS_WITHIN_S)
        self.check(self.metrics("grpo"))

    def test_a_killed_server_is_started_again(self):
        before = self.shared_memory()
        run = self.start(*self.grpo("run.steps=30"))
        self.wait_for_step("grpo", 2, seconds=STARTS_WITHIN_S)
        pid, = until(self.engine_cores, "an engine core")
        os.kill(pid, signal.SIGKILL)
        done = run.finish(STARTS_WITHIN_S)
        self.assertEqual(done.code, 0, done.err)
        lines = self.metrics("grpo")
        self.assertEqual(sum(line["rollout/engine_restarts"]
                             for line in lines.values()), 1)
        self.check(lines)
        self.assertEqual(self.shared_memory() - before, set())


if __name__ == "__main__":
    unittest.main()
