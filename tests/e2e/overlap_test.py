"""What a plan lets run at the same time really does, seen in the trace: a task
starts before the end of another that it overlaps. Wall times prove nothing on a
busy machine; starts and ends do."""
import itertools
import unittest

from support import Case, TINY, tree_bytes, without_times

SCORING = ("rew_inf", "ref_inf", "critic_inf")


class Overlap(Case):
    def run_plan(self, name, plan, *overrides):
        """The slices of calls on devices: of a run with answers long enough
        that a device is seldom done before another has begun."""
        self.troupe(*self.ppo(f"run.name={name}", f"plan={plan}",
                              "rollout.max_new_tokens=48",
                              "rollout.min_new_tokens=48", *overrides))
        return [s for s in self.slices(name)
                if s["track"].startswith("device")]

    def pairs(self, slices, first, second, steps_between=0):
        """Slices of two calls that ran at the same time, the second call's
        `steps_between` steps before the first one's."""
        return [(a, b) for a, b in itertools.product(slices, slices)
                if a["name"] == first and b["name"] == second
                and a["step"] == b["step"] + steps_between
                and a["begin"] < b["end"] and b["begin"] < a["end"]]

    def test_chunks_are_scored_while_the_next_are_generated(self):
        slices = self.run_plan("chunks", TINY / "plans/chunks.yaml")
        for call in SCORING:
            self.assertTrue(self.pairs(slices, "actor_gen", call), call)
        self.assertEqual(sum(s["name"] == "actor_gen" for s in slices), 3 * 4)
        self.assertEqual(sum(s["name"] == "ref_inf" for s in slices), 3 * 2)

    def test_chunks_change_no_bit_of_a_run_I1_I2(self):
        text = (TINY / "plans/chunks.yaml").read_text()
        for count in (4, 2):
            text = text.replace(f", chunks: {count}", "")
        (self.folder / "whole.yaml").write_text(text)
        found = {}
        for name, plan in (("chunks", TINY / "plans/chunks.yaml"),
                           ("whole", "whole.yaml")):
            self.troupe(*self.ppo(f"run.name={name}", f"plan={plan}"))
            rows = (self.run_folder(name) / "samples.jsonl").read_text()
            found[name] = (sorted(rows.splitlines()),
                           tree_bytes(self.latest(name), "*/*.safetensors"),
                           [line["actor/grad_norm"]
                            for line in self.metrics(name).values()])
        self.assertEqual(found["chunks"], found["whole"])

    def test_interleaving_runs_in_chunks_on_exclusive_groups(self):
        slices = self.run_plan("interleaving", "interleaving")
        self.assertEqual({s["step"] for s in slices
                          if s["name"] == "actor_train"}, {0, 1, 2})
        self.assertTrue(any(self.pairs(slices, "actor_gen", call)
                            for call in SCORING))

    def test_disjoint_groups_score_and_train_at_once(self):
        # a busy machine may run short calls one after the other in many steps
        slices = self.run_plan("openrlhf", "openrlhf", "run.steps=20",
                               "cluster.devices_per_node=5")
        for pair in itertools.combinations(SCORING, 2):
            self.assertTrue(self.pairs(slices, *pair), pair)
        self.assertTrue(self.pairs(slices, "actor_train", "critic_train"))

    def test_an_idle_device_names_the_rows_weights_or_turn_it_waits_for_I7(self):
        devices = self.run_plan("waits", TINY / "plans/groups.yaml")
        waits = [s for s in self.slices("waits")
                 if s["track"].startswith("waits of device")]
        trains = [s for s in devices if s["name"].endswith("_train")]
        self.assertEqual(len(trains), 3 * 4)
        for train in trains:
            before = max((s for s in devices if s["track"] == train["track"]
                          and s["end"] <= train["begin"]),
                         key=lambda s: s["end"])
            named = [w for w in waits
                     if w["track"] == f"waits of {train['track']}"
                     and w["name"] == "waits for advantages (data)"
                     and w["step"] == train["step"]]
            self.assertEqual(len(named), 1, train)
            self.assertLessEqual(before["end"], named[0]["begin"])
            self.assertLessEqual(named[0]["end"], train["begin"])

    def test_lag_one_generates_while_the_step_before_trains(self):
        slices = self.run_plan("async", "async", "run.steps=5")
        self.assertTrue(self.pairs(slices, "actor_gen", "actor_train",
                                   steps_between=1))


if __name__ == "__main__":
    unittest.main()
