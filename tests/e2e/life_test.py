"""Planes of weights and optimizers that leave their devices between calls: the
run stays the same to the bit, and the trace shows when they come and go."""
import json
import unittest

from support import Case, TINY, tree_bytes, without_times

ROLES = """roles:
  ref:    {offload: [weights]}
  reward: {offload: [weights]}
  actor:  {offload: [weights, optimizer]}
  critic: {offload: [optimizer]}
"""


class Life(Case):
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
        constant = [f"models.{role}.optimizer.schedule=constant"
                    for role in ("actor", "critic")]
        whole = self.outcome("whole", "offload.yaml", "run.steps=4", *constant)
        self.outcome("parts", "offload.yaml", "run.steps=2", *constant)
        self.assertEqual(whole, self.outcome("parts", "offload.yaml",
                                             "run.steps=4", *constant))

    def counters(self, name, what):
        """Values of a counter over time, a list a device."""
        file = self.run_folder(name) / "trace.json"
        events = json.loads(file.read_text())["traceEvents"]
        found = {}
        for event in events:
            if event["ph"] == "C" and what in event["name"]:
                found.setdefault((event["pid"], event["name"]), []).append(
                    (event["ts"], *event["args"].values()))
        return [[value for _, value in sorted(points)]
                for points in found.values()]

    def test_the_trace_shows_planes_come_and_go(self):
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

    def test_the_count_of_a_device_falls_by_what_leaves_it(self):
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
