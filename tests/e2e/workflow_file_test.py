"""Workflows in files: each built-in one, written as a file, is the built-in one
to the bit, and what a file gets wrong is one line before the run."""
import subprocess
import unittest

from support import BUILD, Case, SOURCE, TINY, read_rows, without_times

EXAMPLES = SOURCE / "examples"
FILES = EXAMPLES / "workflows"
ONE_DEVICE = ["plan=single", "cluster.devices_per_node=1",
              "cluster.workers_per_node=1"]


class WorkflowFile(Case):
    def lines(self, arguments, name, *overrides):
        self.troupe(*arguments, f"run.name={name}", *overrides)
        return {step: without_times(line)
                for step, line in self.metrics(name).items()}

    def check_same(self, workflow, arguments, changed=(), steps=3):
        """The file as it is, or with `changed` ((old, new), ..) texts."""
        text = (FILES / f"{workflow}.yaml").read_text()
        for old, new in changed:
            self.assertIn(old, text)
            text = text.replace(old, new)
        (self.folder / "graph.yaml").write_text(text)
        ours = self.lines(arguments, "built_in")
        theirs = self.lines(arguments, "file", "workflow=graph.yaml")
        self.assertEqual([s for s in ours if s > 0],
                         list(range(1, steps + 1)))
        self.assertEqual(ours, theirs)
        return ours

    def pairs(self, workflow, role, *overrides):
        return ["train", TINY / f"{workflow}.yaml", "run.steps=3",
                f"models.{role}.path=data/base",
                "data.train=data/pairs_train.jsonl", "data.batch_size=8",
                "eval.data=data/pairs_test.jsonl", "eval.max_rows=8",
                *overrides]

    def grpo(self, *overrides):
        return ["train", "/dev/null", "workflow=grpo", "run.steps=3",
                "run.save_every=0", "models.actor.path=data/base",
                "models.actor.optimizer.lr=1e-3",
                "data.train=data/prompts.jsonl", "data.batch_size=6",
                "rollout.n=4", "rollout.max_new_tokens=12",
                "reward.kind=rule", "reward.rule=regex:e", *ONE_DEVICE,
                *overrides]

    def test_sft_in_a_file_is_sft_I8(self):
        lines = self.check_same("sft", self.sft(
            "eval.data=data/sft.jsonl", "eval.max_rows=8"))
        self.assertGreater(lines[3]["train/grad_norm"], 0)

    def test_a_reward_model_in_a_file_is_one_I8(self):
        lines = self.check_same("reward", self.pairs("reward", "reward"))
        self.assertIn("train/accuracy", lines[3])

    def test_dpo_in_a_file_is_dpo_I8(self):
        lines = self.check_same("dpo", self.pairs("dpo", "actor"))
        self.assertIn("train/reward_margin", lines[3])

    def test_ppo_in_a_file_is_ppo_I8(self):
        self.check_same("ppo", self.ppo("eval.data=data/prompts.jsonl",
                                        "eval.max_rows=8"))

    def test_ppo_with_an_adaptive_coefficient_in_a_file_is_ppo_I8(self):
        arguments = self.ppo(
            "algorithm.kl_target=0.01", "algorithm.kl_horizon=100",
            "algorithm.value_norm=true", *[
                f"models.{role}.optimizer.{key}" for role in ("actor", "critic")
                for key in ("schedule=constant", "warmup=0")])
        lines = self.check_same("ppo", arguments)
        moved = {line["actor/kl_coef"] for line in lines.values()}
        self.assertEqual(len(moved), 3, "the coefficient does not move")
        for steps in (2, 3):
            parts = self.lines(arguments, "parts", "workflow=graph.yaml",
                               f"run.steps={steps}")
        self.assertEqual(parts, lines)

    def test_ppo_with_recomputed_logprobs_in_a_file_is_ppo_I8(self):
        rollout = ("writes: {sequence_ids: sequence_ids, loss_mask: loss_mask, "
                   "rollout_logprobs: logprobs, truncated: truncated}")
        self.check_same("ppo", self.ppo(
            "algorithm.old_logprobs=recompute", "algorithm.kl_in=loss",
            *ONE_DEVICE), changed=[
                ("{generate: actor}", f"{{generate: actor, {rollout}}}"),
                ("  advantages:\n", "  actor_inf: {infer: actor, fn: logprobs}\n"
                 "  advantages:\n"),
                (", ref_logprobs]", "]"),
                ("      kl_coef: {initial: algorithm.kl_coef, "
                 "metric: actor/kl_coef}\n", ""),
                ("logprobs, advantages]", "logprobs, advantages, ref_logprobs, "
                 "rollout_logprobs]")])

    def test_grpo_in_a_file_is_grpo_I8(self):
        lines = self.check_same("grpo", self.grpo(
            "eval.data=data/prompts.jsonl", "eval.max_rows=4"))
        self.assertIn("frac_reward_zero_std", lines[3])
        ours, theirs = [read_rows(self.run_folder(name) / "samples.jsonl")
                        for name in ("built_in", "file")]
        self.assertEqual(ours, theirs)

    def test_remax_in_a_file_is_remax_I8(self):
        greedy = ("  greedy_gen:\n    generate: actor\n    greedy: true\n"
                  "    writes: {greedy_sequence_ids: sequence_ids, "
                  "greedy_loss_mask: loss_mask, greedy_logprobs: logprobs, "
                  "greedy_truncated: truncated}\n"
                  "  greedy_rewards:\n    function: rewards\n    greedy: true\n"
                  "    reads: {greedy_sequence_ids: sequence_ids, "
                  "greedy_loss_mask: loss_mask}\n"
                  "    writes: {greedy_scores: scores}\n")
        lines = self.check_same("grpo", self.grpo(
            "algorithm.advantage=remax"), changed=[
                ("  ref_inf:", greedy + "  ref_inf:"),
                ("scores, truncated]", "scores, truncated, greedy_scores, "
                 "greedy_loss_mask, greedy_truncated]")])
        self.assertIn("critic/greedy_score/mean", lines[3])

    def complaint(self, old, new, *overrides):
        """Of PPO in a file with a mistake, which is in its last changed line."""
        text = (FILES / "ppo.yaml").read_text()
        self.assertIn(old, text)
        (self.folder / "graph.yaml").write_text(text.replace(old, new))
        return self.troupe(*self.ppo("workflow=graph.yaml", *overrides),
                           code=2).stderr

    def test_what_the_program_does_not_know_is_named_with_its_line(self):
        wrong = self.complaint("ppo_actor_loss", "ppo_acter_loss")
        self.assertRegex(wrong, r"graph.yaml:\d+: calls.actor_train.fn: "
                         "expected a loss .*got 'ppo_acter_loss'; "
                         "try ppo_actor_loss")
        wrong = self.complaint("function: ppo_advantages",
                               "function: ppo_advantage")
        self.assertRegex(wrong, r"graph.yaml:\d+: calls.advantages.function: "
                         ".*try ppo_advantages")
        wrong = self.complaint("function: ppo_advantages",
                               "function: reward")
        self.assertRegex(wrong, r"graph.yaml:\d+: calls.advantages.function: "
                         r"expected a function \(.*rewards\), got 'reward'; "
                         "try rewards")
        wrong = self.complaint("rollout, ", "")
        self.assertIn("rollout.max_new_tokens: expected only settings that "
                      "workflow graph.yaml uses", wrong)
        self.assertIn("or `rollout` in the settings of graph.yaml", wrong)
        wrong = self.complaint("logprobs, advantages]", "logprobs]")
        self.assertRegex(wrong, r"graph.yaml:\d+: calls.actor_train.reads: "
                         "expected all keys that ppo_actor_loss reads, got "
                         "them without advantages; try `advantages`")

    def test_a_role_has_the_head_that_its_calls_need(self):
        wrong = self.complaint("critic: {trained: true, scalar_head: true}",
                               "critic: {trained: true}")
        self.assertRegex(wrong, r"graph.yaml:\d+: calls.critic_inf.infer: "
                         "expected a role with a scalar head for values, got "
                         "critic; try `scalar_head: true` in roles.critic\n")
        wrong = self.complaint("fn: ppo_critic_loss\n    reads: [sequence_ids, "
                               "loss_mask, values, returns]",
                               "fn: ppo_actor_loss\n    reads: [sequence_ids, "
                               "loss_mask, logprobs, advantages]")
        self.assertRegex(wrong, r"graph.yaml:\d+: calls.critic_train.train: "
                         "expected a role without a scalar head for "
                         "ppo_actor_loss, got critic; try ")

    def test_carried_values_that_the_code_does_not_know_are_named(self):
        wrong = self.complaint("kl_coef: {", "kl_coeff: {")
        self.assertRegex(wrong, r"graph.yaml:\d+: calls.advantages.carries."
                         r"kl_coeff: expected a value that ppo_advantages "
                         r"carries \(kl_coef, .*try kl_coef\n")
        coefficient = ("      kl_coef: {initial: algorithm.kl_coef, "
                       "metric: actor/kl_coef}\n")
        wrong = self.complaint(coefficient, "", "algorithm.kl_target=0.01")
        self.assertIn("calls.advantages.carries: expected kl_coef, which "
                      "ppo_advantages hands from step to step under these "
                      "settings", wrong)
        self.assertIn("try carries: {kl_coef: algorithm.kl_coef}", wrong)
        wrong = self.troupe("plan", "check", *self.ppo(
            "workflow=graph.yaml", "algorithm.kl_target=0.01")[1:], code=2)
        self.assertIn("calls.advantages.carries", wrong.stderr)

    def program(self, name, *overrides, code=0):
        """`train` by build/examples/NAME with its own settings."""
        done = subprocess.run(
            [str(word) for word in (
                BUILD / "examples" / name, "train",
                EXAMPLES / name / f"{name}.yaml",
                "models.actor.path=data/base", "data.train=data/prompts.jsonl",
                "data.batch_size=8", "rollout.max_new_tokens=12",
                "run.steps=3", *overrides)],
            cwd=self.folder, env=self.environment, capture_output=True,
            text=True, timeout=90)
        self.assertEqual(done.returncode, code,
                         f"{overrides}\n{done.stdout}\n{done.stderr}")
        return done

    def check_program(self, name, text, *overrides):
        """Its workflow in a file is the one in C++; the file's metrics."""
        (self.folder / "graph.yaml").write_text(text)
        lines = []
        for run, more in (("cpp", []), ("file", ["workflow=graph.yaml"])):
            self.program(name, f"run.name={run}", *overrides, *more)
            lines.append({step: without_times(line)
                          for step, line in self.metrics(run).items()})
        self.assertEqual(*lines)
        return lines[1]

    def test_files_may_name_user_actors_functions_and_losses_I8(self):
        tool = f"best_of_n.tool={EXAMPLES}/best_of_n/is_kind.sh"
        graph = """settings: [rollout, updates, own_actors, best_of_n]
roles: {actor: {trained: true}}
calls:
  actor_gen: {generate: actor}
  check: {function: best_of_n.check}
  pick_best: {function: best_of_n.pick_best}
  actor_train: {train: actor, fn: best_of_n.actor_train}
  metrics: {function: best_of_n.metrics}
"""
        lines = self.check_program("best_of_n", graph, tool)
        self.assertIn("tool/score", lines[3])
        (self.folder / "graph.yaml").write_text(
            graph.replace("pick_best}", "pick_bst}"))
        wrong = self.program("best_of_n", tool, "workflow=graph.yaml", code=2)
        self.assertRegex(wrong.stderr, r"graph.yaml:6: calls.pick_best.function"
                         r": .*got 'best_of_n.pick_bst'; "
                         r"try best_of_n.pick_best\n")

    def test_files_may_have_user_carried_values_I8(self):
        graph = """settings: [rollout, updates]
roles:
  actor: {trained: true}
  ref: {like: actor, follows: actor}
calls:
  actor_gen: {generate: actor}
  ref_inf: {infer: ref, fn: logprobs, writes: {ref_logprobs: logprobs}}
  letters: {function: ema_reference.letters}
  above_mean: {function: ema_reference.above_mean}
  steer:
    function: ema_reference.steer
    carries: {strength: {initial: 1, metric: ema_reference/strength}}
  actor_train: {train: actor, fn: ema_reference.actor_train}
  metrics: {function: ema_reference.metrics}
"""
        lines = self.check_program("ema_reference", graph)
        self.assertNotEqual(lines[1]["ema_reference/strength"], 1)
        begins = graph.replace("initial: 1,", "initial: 2,")
        (self.folder / "graph.yaml").write_text(begins)
        self.program("ema_reference", "run.name=two", "workflow=graph.yaml")
        self.assertEqual(self.metrics("two")[1]["ema_reference/strength"],
                         2 * lines[1]["ema_reference/strength"])
        without = graph.replace(
            "    carries: {strength: {initial: 1, metric: "
            "ema_reference/strength}}\n", "")
        (self.folder / "graph.yaml").write_text(without)
        wrong = self.program("ema_reference", "workflow=graph.yaml", code=2)
        self.assertIn("try carries: {strength: 1}", wrong.stderr)

    def test_files_may_have_conversations_I8(self):
        graph = """settings: [rollout, rewards, updates, own_actors]
roles: {actor: {trained: true}}
calls:
  solve: {generate: actor, fn: tool_use.solve}
  score: {function: rewards}
  compare: {function: tool_use.compare}
  actor_train: {train: actor, fn: tool_use.actor_train}
  metrics: {function: tool_use.metrics}
"""
        lines = self.check_program("tool_use", graph, "reward.rule=regex:e")
        self.assertIn("tool/asked", lines[3])


if __name__ == "__main__":
    unittest.main()
