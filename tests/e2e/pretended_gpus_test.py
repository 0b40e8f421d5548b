"""Whole runs on pretended GPUs (docs/gpu_tests.md): libtorch's CUDA half, our kernels,
graphs and NCCL over stand-ins, beside runs on the CPU."""
import os
import signal
import unittest

from pretended import PROGRAM, SECONDS, STANDIN, OnPretendedGpus
from support import CONSTANT, TINY, Process, tree_bytes, without_times

ROLES = ("actor", "critic", "ref", "reward")
NORMS = ("actor/grad_norm", "critic/grad_norm")
LOSSES = ("actor/pg_loss", "critic/vf_loss", "actor/ppo_kl")
FP32 = [f"models.{role}.dtype=fp32" for role in ROLES]
# What is written of rows is the same text on any device, since logits differ by
# about 1e-6; so the numbers may be held against each other.
FP32_BOUND, BF16_BOUND = 1e-4, 3e-2
PLANS = {  # by name: GPUs, plan
    "one": (1, "single"),
    "moved": (2, "separation"),
    "sharded": (4, TINY / "plans/sharded.yaml"),
    "tensor": (4, TINY / "plans/tensor.yaml"),
    "pipeline": (4, TINY / "plans/pipeline.yaml"),
}
APART = """cluster: {nodes: 2, devices_per_node: 2, workers_per_node: 1}
calls:
  actor_gen:    {devices: 2-3, strategy: p2}
  rew_inf:      {devices: 0, strategy: d1}
  ref_inf:      {devices: 1, strategy: d1}
  critic_inf:   {devices: 3, strategy: d1}
  advantages:   {devices: host}
  actor_train:  {devices: 0-1, strategy: t2}
  critic_train: {devices: 3, strategy: d1}
"""


class PretendedGpus(OnPretendedGpus):
    def on_two_hosts(self, arguments):
        """A run of two workers that count as hosts, with two GPUs each."""
        programs = self.folder / "bin"
        programs.mkdir(exist_ok=True)
        ssh = programs / "ssh"
        ssh.write_text('#!/bin/sh\n'
                       'export TROUPE_STANDIN_HOST="${3##*.}"\n'
                       'cd / && exec sh -c "$4"\n')
        ssh.chmod(0o755)
        self.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
        plan = self.folder / "apart.yaml"
        plan.write_text(APART)
        return Process(self, ["--gpus", 2, "--mb", 2048, "--seed", 1, "--", PROGRAM, *arguments,
                              f"plan={plan}", "cluster.nodes=2", "cluster.devices_per_node=2",
                              "cluster.workers_per_node=1", "cluster.device=gpu",
                              "cluster.launcher=ssh", "cluster.hosts=[127.0.0.1, 127.0.0.2]",
                              "cluster.bind=127.0.0.1"], STANDIN)

    def finished(self, process, name):
        """{step: metrics} of a run that has ended well, without an illegal access."""
        done = process.finish(SECONDS)
        self.assertEqual(done.code, 0, f"{name}\n{done.out}\n{done.err}")
        for log in (self.run_folder(name) / "logs").glob("*.log"):
            self.assertNotRegex(log.read_text(), "standin: ", log.name)
        return {step: without_times(line) for step, line in self.metrics(name).items()}

    def assert_near(self, wanted, found, bound):
        self.assertEqual(sorted(wanted), sorted(found))
        for step, line in wanted.items():
            for key in (*NORMS, *LOSSES):
                size = abs(line[key]) if key in NORMS else max(abs(line[key]), 1.0)
                self.assertLessEqual(abs(found[step][key] - line[key]), bound * size,
                                     f"{key} of step {step}")

    def on_cpu(self, *overrides):
        self.troupe(*self.ppo("run.name=cpu", "run.steps=2", "plan=single", *FP32,
                              "cluster.devices_per_node=1", "cluster.workers_per_node=1",
                              *overrides))
        return {step: without_times(line) for step, line in self.metrics("cpu").items()}

    def test_every_plan_trains_as_the_cpu_does_I1(self):
        wanted = self.on_cpu()
        for name, (count, plan) in PLANS.items():
            with self.subTest(name):
                process = self.on_gpus(count, self.ppo(
                    f"run.name={name}", "run.steps=2", f"plan={plan}", *FP32))
                self.assert_near(wanted, self.finished(process, name), FP32_BOUND)

    def test_eight_gpus_train_as_the_cpu_does_I1(self):
        little = ("algorithm.mini_batches=2", "rollout.max_new_tokens=4")  # a sample a GPU
        wanted = self.on_cpu(*little)
        process = self.on_gpus(8, self.ppo("run.name=eight", "run.steps=2",
                                           "plan=data_parallel", *FP32, *little))
        self.assert_near(wanted, self.finished(process, "eight"), FP32_BOUND)

    def test_bf16_is_within_three_percent_I1(self):
        wanted = self.on_cpu("run.steps=1", "algorithm.mini_batches=2")
        replay = f"run.replay={self.run_folder('cpu')}/samples.jsonl"  # else other texts
        process = self.on_gpus(2, self.ppo("run.name=bf16", "run.steps=1", replay,
                                           "algorithm.mini_batches=2", "plan=data_parallel",
                                           *(f"models.{role}.dtype=bf16" for role in ROLES)))
        self.assert_near(wanted, self.finished(process, "bf16"), BF16_BOUND)

    def test_bf16_scores_what_it_generates_within_a_percent(self):
        process = self.on_gpus(1, self.ppo("run.name=own", "run.steps=2", "plan=single",
                                           *(f"models.{role}.dtype=bf16" for role in ROLES)))
        for line in self.finished(process, "own").values():
            self.assertGreater(line["training/rollout_probs_diff_mean"], 0)
            self.assertLess(line["training/rollout_probs_diff_mean"], 1e-2)

    def weights(self, name):
        return tree_bytes(self.latest(name), "*/model.safetensors")

    def test_orders_of_streams_do_not_change_a_bit_I8(self):
        found = []
        for seed in (1, 2):
            name = f"seed_{seed}"
            process = self.on_gpus(2, self.sft(f"run.name={name}"), seed)
            found.append((self.finished(process, name), self.weights(name)))
        self.assertEqual(*found)
        self.assertTrue(found[0][1])

    def test_a_killed_worker_costs_the_steps_since_the_checkpoint_I5(self):
        steps = ("run.steps=8", "run.save_every=2", *CONSTANT, "plan=data_parallel",
                 "algorithm.mini_batches=2", *FP32)
        process = self.on_gpus(2, self.ppo("run.name=killed", *steps))
        self.wait_for_step("killed", 3, SECONDS)
        self.wait_for_checkpoint("killed")
        victim, = self.workers()
        os.kill(victim, signal.SIGKILL)
        found = self.finished(process, "killed")
        failure, = self.failures("killed")
        self.assertIn(str(victim), failure["who"])
        process = self.on_gpus(2, self.ppo("run.name=whole", *steps), seed=2)
        self.assertEqual(self.finished(process, "whole"), found)
        self.assertEqual(self.weights("whole"), self.weights("killed"))

    def test_weights_move_between_hosts_by_nccl_and_a_sender_may_be_killed_I1_I5(self):
        steps = ("run.steps=4", "run.save_every=1", *CONSTANT, "algorithm.mini_batches=2", *FP32)
        wanted = self.on_cpu(*steps)
        process = self.on_two_hosts(self.ppo("run.name=apart", "run.check_moves=true", *steps))
        self.wait_for_step("apart", 1, SECONDS)
        self.wait_for_checkpoint("apart")
        sender, = (pid for pid in self.workers() if "--number 0" in self.processes()[pid])
        os.kill(sender, signal.SIGKILL)
        self.assert_near(wanted, self.finished(process, "apart"), FP32_BOUND)
        failure, = self.failures("apart")
        self.assertIn(str(sender), failure["who"])
        for log in (self.run_folder("apart") / "logs").glob("*.log*"):
            self.assertNotIn("go through the host", log.read_text(), log.name)
        for worker in ("00", "01"):
            traces = sorted((self.run_folder("apart") / "trace").glob(f"worker_{worker}_*"))
            self.assertGreater(len(traces), 1)
            for trace in traces:  # of each attempt
                self.assertIn(b"weights by NCCL", trace.read_bytes(), trace.name)

    def test_weights_of_bf16_are_so_between_hosts_and_frozen_ones_in_memory_I1(self):
        moved, frozen = {}, {}
        for dtype in ("fp32", "bf16"):
            process = self.on_two_hosts(self.ppo(
                f"run.name={dtype}", "run.steps=1", "run.check_moves=true", *CONSTANT,
                *(f"models.{role}.dtype={dtype}" for role in ROLES)))
            self.finished(process, dtype)
            line, = self.metrics(dtype).values()
            moved[dtype] = line["perf/moved_gb"]
            (frozen[dtype], *_), = self.counters(dtype, "bytes of ref@ref_inf")
        self.assertGreater(moved["bf16"], 0.49 * moved["fp32"])
        self.assertLess(moved["bf16"], 0.6 * moved["fp32"])
        self.assertGreaterEqual(frozen["bf16"], 0.5 * frozen["fp32"])
        self.assertLess(frozen["bf16"], 0.6 * frozen["fp32"], "it has no masters")


if __name__ == "__main__":
    unittest.main()
