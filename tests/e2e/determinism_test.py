"""I1 and I8 with whole runs of the binary: what a plan may change (nothing but
time) and what a repetition or a resumed run may change (nothing at all)."""
import json
import math
import re
import shutil
import signal
import unittest

from support import (CONSTANT, TINY, Case, read_rows, tree_bytes, until,
                     without_times)

ONE_DEVICE = ["cluster.devices_per_node=1", "cluster.workers_per_node=1",
              "plan=single"]
PLANS = {
    "one device": ONE_DEVICE,
    "dp over 4 devices, 2 processes":
        [f"plan={TINY}/plans/four_devices.yaml"],
    "generation moved": [f"plan={TINY}/plans/moved.yaml"],
    "disjoint groups": [f"plan={TINY}/plans/groups.yaml"],
    "tensor parallel": [f"plan={TINY}/plans/tensor.yaml", "run.check_moves=true"],
    "chunks": [f"plan={TINY}/plans/chunks.yaml"],
    "pipelines": [f"plan={TINY}/plans/pipeline.yaml", "run.check_moves=true"],
    "sharded parameters":
        [f"plan={TINY}/plans/sharded.yaml", "run.check_moves=true"],
    "DeepSpeed-Chat": ["plan=deepspeed_chat", "run.check_moves=true"],
}
LOSSES = ["actor/pg_loss", "critic/vf_loss", "actor/ppo_kl"]
NORMS = ["actor/grad_norm", "critic/grad_norm"]


class Determinism(Case):
    def train(self, name, *overrides):
        self.troupe(*self.ppo(f"run.name={name}", *overrides))
        return {step: without_times(line)
                for step, line in self.metrics(name).items()}

    def weights(self, name):
        files = tree_bytes(self.latest(name), "*/model.safetensors")
        self.assertEqual(len(files), 2)
        return files

    def test_a_repeated_run_is_bit_identical_I8(self):
        self.assertEqual(self.train("a"), self.train("b"))
        self.assertEqual(self.weights("a"), self.weights("b"))

    def test_a_resumed_run_equals_an_uninterrupted_one_I8(self):
        whole = self.train("whole", "run.steps=4", *CONSTANT)
        self.train("parts", "run.steps=2", *CONSTANT)
        parts = self.train("parts", "run.steps=4", *CONSTANT)
        self.assertEqual(whole, parts)
        self.assertEqual(self.weights("whole"), self.weights("parts"))

    def test_a_run_with_bf16_folders_resumes_bit_identically_I8(self):
        short = ["algorithm.mini_batches=1"] + [
            f"models.{role}.{key}" for role in ("actor", "critic")
            for key in ("optimizer.schedule=constant", "save_dtype=bf16")]
        whole = self.train("whole", "run.steps=4", *short)
        self.train("parts", "run.steps=2", *short)
        config = json.loads(
            (self.latest("parts") / "actor/config.json").read_text())
        self.assertEqual(config["torch_dtype"], "bfloat16")
        self.assertEqual(whole, self.train("parts", "run.steps=4", *short))
        self.assertEqual(self.weights("whole"), self.weights("parts"))
        states = [tree_bytes(self.latest(name), "state/*.optimizer")
                  for name in ("whole", "parts")]
        self.assertEqual(*states)  # with the fp32 weights

    def test_dpo_learns_the_same_under_any_plan_I1(self):
        found = {}
        for devices in (1, 2, 4):
            name = f"dpo_{devices}"
            self.troupe(
                "train", TINY / "dpo.yaml", f"run.name={name}", "run.steps=3",
                "models.actor.path=data/base", "data.batch_size=16",
                "data.train=data/pairs_train.jsonl", "eval.max_rows=16",
                "eval.data=data/pairs_test.jsonl",
                f"cluster.devices_per_node={devices}",
                f"cluster.workers_per_node={min(devices, 2)}",
                f"plan={'single' if devices == 1 else 'data_parallel'}")
            found[devices] = self.metrics(name)
        alone = found[1]
        self.assertAlmostEqual(alone[1]["train/loss"], math.log(2), places=6)
        self.assertEqual(alone[1]["train/reward_margin"], 0)
        self.assertLess(alone[3]["train/loss"], alone[1]["train/loss"])
        self.assertGreater(alone[3]["train/reward_margin"], 0)
        self.assertLess(alone[3]["val-core/pairs_test/loss"],
                        alone[0]["val-core/pairs_test/loss"])
        for devices in (2, 4):
            for step, line in found[devices].items():
                if step == 0:
                    continue
                self.assertAlmostEqual(line["train/loss"],
                                       alone[step]["train/loss"], places=5)
                self.assertTrue(math.isclose(
                    line["train/grad_norm"], alone[step]["train/grad_norm"],
                    rel_tol=1e-4), (devices, step))
                self.assertEqual(line["train/tokens"],
                                 alone[step]["train/tokens"])

    def test_a_resumed_split_run_equals_an_uninterrupted_one_I8(self):
        split = ["plan=" + str(TINY / "plans/pipeline.yaml"), *CONSTANT]
        whole = self.train("whole", "run.steps=4", *split)
        self.train("parts", "run.steps=2", *split)
        self.assertEqual(whole, self.train("parts", "run.steps=4", *split))
        self.assertEqual(self.weights("whole"), self.weights("parts"))

    def test_sharded_parameters_resume_and_load_under_another_plan_I8(self):
        sharded = [f"plan={TINY}/plans/sharded.yaml", *CONSTANT]
        whole = self.train("whole", "run.steps=4", *sharded)
        self.train("parts", "run.steps=2", *sharded)
        shutil.copytree(self.run_folder("parts"), self.run_folder("other"),
                        symlinks=True)
        self.assertEqual(whole, self.train("parts", "run.steps=4", *sharded))
        self.assertEqual(self.weights("whole"), self.weights("parts"))
        on_one = self.train("other", "run.steps=4", *sharded, *ONE_DEVICE)
        self.check_close(whole[3], on_one[3])

    def test_a_run_continues_after_replicas_were_renamed_I8(self):
        """One replica serves all calls under `megatron` and is named after
        the first, as the generation replica is under `verl`."""
        whole = self.train("whole", "run.steps=4", "plan=megatron", *CONSTANT)
        self.train("parts", "run.steps=2", "plan=megatron", *CONSTANT)
        other = self.train("parts", "run.steps=4", "plan=verl", *CONSTANT)
        self.check_close(whole[3], other[3])
        back = self.train("parts", "run.steps=5", "plan=single", *CONSTANT,
                          "cluster.devices_per_node=1",
                          "cluster.workers_per_node=1")
        self.assertEqual(max(back), 5)

    def test_sft_trains_alike_on_sharded_parameters_I1(self):
        lines = {}
        for name, plan in (("alone", "single"), ("sharded", "deepspeed_chat")):
            self.troupe(*self.sft(f"run.name={name}", "run.steps=3",
                                  "cluster.devices_per_node=4", f"plan={plan}"))
            lines[name] = self.metrics(name)
        for step in (1, 2, 3):
            a, b = lines["alone"][step], lines["sharded"][step]
            for key in ("train/loss", "train/grad_norm"):
                self.assertLessEqual(abs(a[key] - b[key]), 1e-5 * abs(a[key]))

    def test_reward_models_train_alike_under_any_plan_I1(self):
        lines = {}
        for plan in ("d1", "t4", "p2", "d3z1", "d4z3", "d2p2t2z3s"):
            n = math.prod(int(digits) for digits in re.findall(
                r"[dpt](\d+)", plan))
            self.troupe(
                "train", TINY / "reward.yaml", "run.name=run", "run.steps=3",
                "run.resume=fresh", "models.reward.path=data/scorer",
                "models.reward.optimizer.lr=1.0e-4", "data.batch_size=16",
                "data.train=data/pairs_train.jsonl",
                f"cluster.devices_per_node={n}",
                f"cluster.workers_per_node={2 - n % 2}",
                f"plan={{calls: {{reward_train: {{devices: 0-{n - 1}, "
                f"strategy: {plan}, micro_batch_tokens: 100}}}}}}")
            lines[plan] = self.metrics("run")
            for step in (1, 2, 3):
                a, b = lines["d1"][step], lines[plan][step]
                for key in ("train/loss", "train/grad_norm"):
                    with self.subTest(plan=plan, step=step, key=key):
                        self.assertLessEqual(abs(a[key] - b[key]),
                                             1e-5 * max(a[key], 1.0))

    def lag_plan(self, name, steps):
        """The plan file `name` of the demo with a lag of generation."""
        text = (TINY / f"plans/{name}.yaml").read_text()
        text = text.replace("lag: {actor_gen: 1}", "")
        file = self.folder / f"{name}_{steps}.yaml"
        file.write_text(f"{text}\nlag: {{actor_gen: {steps}}}\n")
        return [f"plan={file}", *CONSTANT]

    def test_any_lag_resumes_bit_identically_I8(self):
        # on separate devices, and where the actor trains
        for name, steps in (("lag", 1), ("lag", 2), ("four_devices", 1)):
            with self.subTest(plan=name, lag=steps):
                lag = ["run.resume=fresh", *self.lag_plan(name, steps)]
                whole = self.train("whole", "run.steps=4", *lag)
                self.assertEqual([line["training/lag_mean"]
                                  for line in whole.values()],
                                 [min(n, steps) for n in range(4)])
                self.train("parts", "run.steps=2", *lag)
                found = self.train("parts", "run.steps=4", *lag[1:])
                self.assertEqual(whole, found)
                self.assertEqual(self.weights("whole"), self.weights("parts"))

    def test_a_killed_run_with_lag_two_resumes_bit_identically_I8(self):
        lag = ["run.steps=12", "run.save_every=3", "algorithm.kl_target=0.001",
               *self.lag_plan("lag", 2)]
        whole = self.train("whole", *lag)
        process = self.start(*self.ppo("run.name=killed", *lag))
        self.wait_for_step("killed", 5)
        self.wait_for_checkpoint("killed")
        process.send(signal.SIGKILL)
        process.finish()
        until(lambda: not self.processes(), "workers notice and exit")
        self.assertIn(self.latest("killed").name,  # or the run was fast
                      ("step_000003", "step_000006", "step_000009"))
        found = self.train("killed", *lag)
        self.assertEqual(whole, found)
        self.assertEqual(self.weights("whole"), self.weights("killed"))

    def test_a_run_continues_only_under_its_lags(self):
        self.train("run", "run.steps=2", *self.lag_plan("lag", 2))
        done = self.troupe(*self.ppo("run.name=run", "run.steps=4",
                                     *self.lag_plan("lag", 1)), code=2)
        self.assertIn("of a run whose plan has other lags", done.stderr)

    def sequences(self, name, step=1):
        rows = read_rows(self.run_folder(name) / "samples.jsonl")
        return [(row["sample"], row["response"]) for row in rows
                if row["step"] == step]

    def test_every_plan_generates_the_same_first_step_I1b(self):
        reference = None
        for name, overrides in PLANS.items():
            self.train("run", "run.steps=1", "run.resume=fresh", *overrides)
            found = sorted(self.sequences("run"))
            reference = reference or found
            different = sum(a != b for a, b in zip(reference, found))
            with self.subTest(plan=name):
                self.assertEqual(len(reference), len(found))
                self.assertEqual(different, 0)

    def test_replayed_samples_train_alike_under_every_plan_I1a(self):
        self.train("recorded", "run.steps=3", *ONE_DEVICE)
        replay = f"run.replay={self.run_folder('recorded')}/samples.jsonl"
        lines = {name: self.train("run", "run.steps=3", "run.resume=fresh",
                                  replay, *overrides)
                 for name, overrides in PLANS.items()}
        reference = lines["one device"]
        for name, found in lines.items():
            for step in (1, 2, 3):
                with self.subTest(plan=name, step=step):
                    self.check_close(reference[step], found[step])

    def test_bf16_products_train_alike_within_2_percent_I1a(self):
        bf16 = [f"models.{role}.dtype=bf16"
                for role in ("actor", "critic", "ref", "reward")]
        self.train("recorded", "run.steps=3", *ONE_DEVICE)
        replay = f"run.replay={self.run_folder('recorded')}/samples.jsonl"
        full = self.train("full", "run.steps=3", replay, *ONE_DEVICE)
        half = self.train("half", "run.steps=3", replay, *ONE_DEVICE, *bf16)
        again = self.train("again", "run.steps=3", replay, *ONE_DEVICE, *bf16)
        self.assertEqual(half, again)  # I8
        for step in (1, 2, 3):
            for key in LOSSES:
                self.assertLessEqual(
                    abs(full[step][key] - half[step][key]),
                    2e-2 * max(abs(full[step][key]), 1.0), (step, key))
            self.assertNotEqual(full[step][NORMS[0]], half[step][NORMS[0]])

    def check_close(self, a, b):
        """I1 (a): 1e-5 of the loss or of the mean loss of a token, which is
        about one here (whitened advantages, scores of a zero head)."""
        for key in LOSSES:
            self.assertLessEqual(abs(a[key] - b[key]),
                                 1e-5 * max(abs(a[key]), 1.0), key)
        for key in NORMS:
            self.assertLessEqual(abs(a[key] - b[key]), 1e-5 * abs(a[key]), key)


if __name__ == "__main__":
    unittest.main()
