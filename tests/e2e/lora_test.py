"""Adapters (models.ROLE.lora): what is trained, moved and saved, under any plan
(I1), repeated and resumed to the bit (I8), merged into a whole model."""
import json
import unittest

from support import CONSTANT, TINY, Case, tree_bytes, without_times

LORA = ["models.actor.lora.rank=4", "models.critic.lora.rank=4",
        "models.critic.lora.targets=[q_proj, v_proj]"]
PLANS = {
    "generation moved": [f"plan={TINY}/plans/moved.yaml"],
    "disjoint groups": [f"plan={TINY}/plans/groups.yaml"],
    "tensor parallel": [f"plan={TINY}/plans/tensor.yaml", "run.check_moves=true"],
    "pipelines": [f"plan={TINY}/plans/pipeline.yaml", "run.check_moves=true"],
    "optimizer sharded": ["plan=verl", "cluster.devices_per_node=4"],
}
ONE_DEVICE = ["cluster.devices_per_node=1", "cluster.workers_per_node=1",
              "plan=single"]


class Lora(Case):
    def train(self, name, *overrides):
        self.troupe(*self.ppo(f"run.name={name}", *LORA, *overrides))
        return {step: without_times(line)
                for step, line in self.metrics(name).items()}

    def adapters(self, name):
        files = tree_bytes(self.latest(name), "*/adapter_model.safetensors")
        self.assertEqual(len(files), 2)
        return files

    def test_adapters_train_alike_under_any_plan_I1(self):
        alone = self.train("alone", *ONE_DEVICE)
        self.assertGreater(alone[3]["actor/grad_norm"], 0)
        for plan, overrides in PLANS.items():
            with self.subTest(plan):
                found = self.train("split", "run.resume=fresh", *overrides)
                for key in ("actor/pg_loss", "critic/vf_loss", "actor/ppo_kl",
                            "actor/grad_norm", "critic/grad_norm"):
                    for step in (1, 2, 3):
                        a, b = alone[step][key], found[step][key]
                        self.assertLessEqual(abs(a - b), 2e-5 * max(abs(a), 1.0),
                                             (plan, step, key))

    def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one_I8(self):
        moved = [f"plan={TINY}/plans/moved.yaml", *CONSTANT]
        whole = self.train("whole", "run.steps=4", *moved)
        self.train("parts", "run.steps=2", *moved)
        self.assertEqual(whole, self.train("parts", "run.steps=4", *moved))
        self.assertEqual(self.adapters("whole"), self.adapters("parts"))

    def test_moves_and_checkpoints_hold_adapters_alone(self):
        moved = [f"plan={TINY}/plans/moved.yaml", "run.check_moves=true"]
        said = self.troupe(*self.ppo("run.name=lora", *LORA, *moved)).stdout
        self.assertRegex(said, r"actor trains adapters of rank 4: .* parameters "
                               r"beside .* frozen ones")
        self.assertIn("adapters of actor move to devices", said)
        self.troupe(*self.ppo("run.name=all", *moved))
        gigabytes = {name: self.metrics(name)[3]["perf/moved_gb"]
                     for name in ("lora", "all")}
        self.assertGreater(gigabytes["lora"], 0)
        self.assertLess(gigabytes["lora"], 0.5 * gigabytes["all"])
        actor = self.latest("lora") / "actor"
        self.assertFalse((actor / "model.safetensors").exists())
        config = json.loads((actor / "adapter_config.json").read_text())
        self.assertEqual([config["peft_type"], config["r"],
                          config["base_model_name_or_path"]],
                         ["LORA", 4, "data/base"])
        critic = json.loads(
            (self.latest("lora") / "critic/adapter_config.json").read_text())
        self.assertEqual([critic["target_modules"], critic["modules_to_save"]],
                         [["q_proj", "v_proj"], ["score"]])

    def test_merged_adapters_are_a_model_that_others_load(self):
        self.train("lora", *ONE_DEVICE, "models.actor.optimizer.lr=1.0e-2")
        actor = "runs/lora/latest/actor"
        error = self.troupe("generate", "--model", actor, "--prompts",
                            "data/prompts.jsonl", "--out", "x.jsonl", code=2)
        self.assertIn("troupe convert --model", error.stderr)
        self.troupe("convert", "--model", actor, "--out", "merged")
        merged = (self.folder / "merged/model.safetensors").read_bytes()
        base = (self.folder / "data/base/model.safetensors").read_bytes()
        self.assertAlmostEqual(len(merged), len(base), delta=100)  # the header
        self.assertNotEqual(merged[-len(base) // 2:], base[-len(base) // 2:])
        self.troupe("generate", "--model", "merged", "--prompts",
                    "data/prompts.jsonl", "--out", "x.jsonl",
                    "--max-new-tokens", "4")
        self.assertGreater(len((self.folder / "x.jsonl").read_text()), 100)

    def test_a_matrix_that_cannot_be_adapted_is_named(self):
        error = self.troupe(*self.ppo("models.actor.lora.rank=4",
                                      "models.actor.lora.targets=[query]"),
                            code=2)
        self.assertIn("models.actor.lora.targets", error.stderr)
        self.assertIn("q_proj, k_proj, v_proj, o_proj", error.stderr)
        error = self.troupe(*self.ppo("models.actor.lora.rank=4",
                                      "models.actor.path=data/none"), code=2)
        self.assertIn("models.actor.path", error.stderr)


if __name__ == "__main__":
    unittest.main()
