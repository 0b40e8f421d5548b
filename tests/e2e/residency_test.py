"""Planes of weights and optimizers that leave their devices between calls: the
run stays the same to the bit, and the trace shows when they come and go."""
import unittest

from support import CONSTANT, TINY, Case, tree_bytes, without_times

ROLES = """roles:
  ref:    {offload: [weights]}
  reward: {offload: [weights]}
  actor:  {offload: [weights, optimizer]}
  critic: {offload: [optimizer]}
"""
# devices 2 and 3 have nothing else to do in any step, so each reload may begin as soon
# as the offload of the step before has ended
APART = """cluster: {nodes: 1, devices_per_node: 4, workers_per_node: 2}
calls:
  actor_gen:    {devices: 0-1, strategy: d2}
  rew_inf:      {devices: 3, strategy: d1}
  ref_inf:      {devices: 2, strategy: d1}
  critic_inf:   {devices: 0-1, strategy: d2}
  advantages:   {devices: host}
  actor_train:  {devices: 0-1, strategy: d2}
  critic_train: {devices: 0-1, strategy: d2}
"""


class Residency(Case):
    def setUp(self):
        super().setUp()
        text = (TINY / "plans/groups.yaml").read_text()
        (self.folder / "offload.yaml").write_text(text + ROLES)
        (self.folder / "kept.yaml").write_text(
            text + "replicas:\n  actor@actor_gen: {keep: true}\n")

    def outcome(self, name, plan, *overrides):
        self.troupe(*self.ppo(f"run.name={name}", f"plan={plan}",
                              "run.check_moves=true", *overrides))
        metrics = [without_times(line) for line in self.metrics(name).values()]
        return metrics, tree_bytes(self.latest(name), "*/*.safetensors")

    def test_where_planes_are_changes_no_bit_I1(self):
        kept = self.outcome("kept", "kept.yaml")
        self.assertEqual(kept, self.outcome("offload", "offload.yaml"))
        self.assertEqual(
            kept, self.outcome("dropped", TINY / "plans/groups.yaml"))

    def test_an_offloaded_run_resumes_bit_identically_I8(self):
        whole = self.outcome("whole", "offload.yaml", "run.steps=4", *CONSTANT)
        self.outcome("parts", "offload.yaml", "run.steps=2", *CONSTANT)
        self.assertEqual(whole, self.outcome("parts", "offload.yaml",
                                             "run.steps=4", *CONSTANT))

    def test_the_trace_shows_loads_and_offloads(self):
        self.outcome("offload", "offload.yaml")
        slices = self.slices("offload")
        count = {what: sum(s["name"] == what for s in slices
                           if s["track"].startswith("device"))
                 for what in ("reload", "offload", "drop")}
        # ref and reward on one device each, actor and critic train on two;
        # the actor's other replica is on four
        self.assertEqual(count, {"reload": 3 * 6, "offload": 3 * 6,
                                 "drop": 3 * 4})
        ref, = self.counters("offload", "bytes of ref@ref_inf")
        self.assertEqual(ref[0], 0)  # after loading
        self.assertEqual(ref[1::2], [max(ref)] * 3)
        self.assertEqual(ref[2::2], [0] * 3)
        self.assertGreater(max(ref), 0)
        for scored in (s for s in slices if s["name"] == "ref_inf"
                       and s["track"].startswith("device")):
            self.assertTrue(any(s["name"] == "reload"
                                and s["track"] == scored["track"]
                                and s["step"] == scored["step"]
                                and s["end"] <= scored["begin"]
                                for s in slices), scored)

    def test_planes_are_loaded_before_the_rows_of_their_call_exist(self):
        (self.folder / "here.yaml").write_text(APART)
        (self.folder / "early.yaml").write_text(APART + ROLES)
        long = [f"rollout.{end}_new_tokens=48" for end in ("min", "max")]
        self.assertEqual(self.outcome("here", "here.yaml", *long),
                         self.outcome("early", "early.yaml", *long))
        slices = [s for s in self.slices("early")
                  if s["track"].startswith("device")]
        for call, device in (("ref_inf", "2"), ("rew_inf", "3")):
            for step in range(3):
                comes, scores = (min((s for s in slices if s["name"] == name
                                      and s["step"] == step
                                      and s["track"].endswith(device)),
                                     key=lambda s: s["begin"])
                                 for name in ("reload", call))
                made = max(s["end"] for s in slices
                           if s["name"] == "actor_gen" and s["step"] == step)
                self.assertLess(comes["begin"], made, (call, step))
                self.assertLessEqual(made, scores["begin"], (call, step))

    def test_the_memory_count_falls_by_offloaded_planes(self):
        text = (TINY / "plans/groups.yaml").read_text()
        (self.folder / "ref.yaml").write_text(
            text + "roles:\n  ref: {offload: [weights]}\n")
        self.outcome("count", "ref.yaml")
        memory, = self.counters("count", "memory of device 1")
        weights = max(self.counters("count", "bytes of ref@ref_inf")[0])
        # of the last step: drop of actor@actor_gen, then ref comes and goes
        changes = [after - before
                   for before, after in zip(memory[-4:], memory[-3:])]
        self.assertEqual(sorted(changes), [-weights, -weights, weights])


if __name__ == "__main__":
    unittest.main()
