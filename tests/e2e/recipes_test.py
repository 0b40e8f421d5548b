"""examples/recipes: every GPU size fits its hardware as its table says, every CPU
size runs three steps with the numbers that the recipe is about."""
import json
import math
import re
import subprocess
import unittest

from support import BUILD, DEADLINE_S, SOURCE, TROUPE, Case

RECIPES = SOURCE / "examples/recipes"
HARDWARE = "h100x8"
# a metric without which the recipe would not be what it says
SHOWS = {
    "zephyr_sft": "train/loss",
    "zephyr_dpo": "train/reward_margin",
    "rlhf_ppo": "critic/vf_loss",
    "grpo_gsm8k": "actor/kl_loss",
    "dr_grpo": "frac_reward_zero_std",
    "dapo": "rollout/rounds",
    "gspo_moe": "actor/pg_clipfrac",
    "rloo_lora": "critic/advantages/mean",
    "async_grpo_tis": "actor/is_weight_mean",
    "distillation": "actor/distillation_loss",
}
# recipes of workflows of their own, and the programs that have them; their CPU
# sizes are in the examples of these, which tests/e2e/conversation_test.py runs
PROGRAMS = {"tools": BUILD / "examples/tool_use"}
ROW = re.compile(r"\| \[`(\w+)`\]\((\w+)\.yaml\) \|.*\| (\d+) \| .* \|"
                 r" ([\d.]+) s \| ([\d.]+) GB \|")


def predicted(name):
    """(GPUs, seconds of a step, GB of the fullest device) of the GPU size."""
    done = subprocess.run(
        [PROGRAMS.get(name, TROUPE), "plan", "simulate", f"examples/recipes/{name}.yaml",
         "--hardware", HARDWARE, "--json"],
        cwd=SOURCE, capture_output=True, text=True, timeout=DEADLINE_S)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    run = json.loads(done.stdout)
    return (len(run["devices"]), run["step_s"],
            max(device["peak_bytes"] for device in run["devices"]) / 1e9)


class Recipes(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "runs").mkdir()
        (self.folder / "runs/tiny_data").symlink_to(self.shared_folder)
        (self.folder / "examples").symlink_to(SOURCE / "examples")

    def test_the_table_has_every_recipe_as_it_is_predicted(self):
        rows = {match[1]: match for match in
                ROW.finditer((RECIPES / "README.md").read_text())}
        self.assertEqual(sorted(rows), sorted([*SHOWS, *PROGRAMS]))
        self.assertEqual(sorted(rows), sorted(
            file.stem for file in RECIPES.glob("*.yaml")))
        for name, row in rows.items():
            gpus, step_s, peak_gb = predicted(name)
            with self.subTest(name, step_s=step_s, peak_gb=peak_gb):
                self.assertEqual(row[1], row[2])
                self.assertEqual(int(row[3]), gpus)
                self.assertLess(abs(float(row[4]) / step_s - 1), 0.1)
                self.assertLess(abs(float(row[5]) / peak_gb - 1), 0.1)

    def test_every_small_one_trains(self):
        for name, metric in SHOWS.items():
            with self.subTest(name):
                self.troupe("train", f"examples/recipes/{name}.yaml",
                            f"examples/recipes/small/{name}.yaml")
                lines = self.metrics(name)
                self.assertEqual(sorted(step for step in lines if step > 0),
                                 [1, 2, 3])
                self.assertTrue(math.isfinite(lines[3][metric]))
                norms = [value for line in lines.values()
                         for key, value in line.items()
                         if key.endswith("/grad_norm")]
                self.assertGreater(max(norms), 0)


if __name__ == "__main__":
    unittest.main()
