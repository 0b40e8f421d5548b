"""examples/h100: every plan fits the H100 and costs what the table says, says why it is
so, and what the page says does not fit does not."""
import json
import re
import subprocess
import unittest

from support import DEADLINE_S, SOURCE, TROUPE

H100 = SOURCE / "examples/h100"
PLANS = H100 / "plans"
HARDWARE = SOURCE / "examples/clusters/h100.yaml"
TOLERANCE = 0.1  # of the tables' numbers
PAGE = (H100 / "README.md").read_text()
# | [`NAME`](NAME.yaml) | GPUs | [`PLAN`](..) | layout | 1.2 s | 3.4 GB | `CALL` | ...
ROW = re.compile(r"^\| \[`([\w.]+)`\]\(\1\.yaml\) \| (\d+) \| \[`([\w.]+)`\]"
                 r"\(plans/\3\.yaml\) \| [^|]* \| ([\d.]+) s \| ([\d.]+) GB \| `(\w+)` \|",
                 re.MULTILINE)
# | `NAME` | GPUs | `PLAN` | `KEY=VALUE ..` | 123 GB |
TOO_LARGE = re.compile(r"^\| `([\w.]+)` \| (\d+) \| `([\w.]+)` \| (?:`([^`]*)` )?\|"
                       r" ([\d.]+) GB \|$", re.MULTILINE)


def plan_command(command, settings, plan, *changes):
    return subprocess.run(
        [TROUPE, "plan", command, H100 / f"{settings}.yaml",
         f"plan={PLANS / plan}.yaml", *changes, "--hardware", HARDWARE, "--json"],
        cwd=SOURCE, capture_output=True, text=True, timeout=DEADLINE_S)


def planned(command, settings, plan):
    done = plan_command(command, settings, plan)
    if done.returncode != 0:
        raise AssertionError(f"{plan}: {done.stdout}\n{done.stderr}")
    return json.loads(done.stdout)


class Tables(unittest.TestCase):
    def near(self, said, now):
        self.assertAlmostEqual(float(said), now, delta=TOLERANCE * now)

    def test_every_plan_has_a_row_and_every_row_a_plan(self):
        rows = ROW.findall(PAGE)
        self.assertEqual(sorted(plan for _, _, plan, *_ in rows),
                         sorted(file.stem for file in PLANS.glob("*.yaml")))
        self.assertEqual({name for name, *_ in rows},
                         {file.stem for file in H100.glob("*.yaml")})

    def test_numbers_are_what_is_predicted_now(self):
        for name, gpus, plan, step_s, peak_gb, at in ROW.findall(PAGE):
            with self.subTest(plan):
                self.assertTrue(planned("check", name, plan)["ok"])
                run = planned("simulate", name, plan)
                fullest = max(run["devices"], key=lambda one: one["peak_bytes"])
                self.assertEqual(int(gpus), len(run["devices"]))
                self.assertEqual(at, fullest["peak_task"])
                self.near(step_s, run["step_s"])
                self.near(peak_gb, fullest["peak_bytes"] / 1e9)

    def test_each_settings_file_has_a_plan_that_fits(self):
        for file in H100.glob("*.yaml"):
            with self.subTest(file.stem):
                done = subprocess.run(
                    [TROUPE, "plan", "check", file, "--hardware", HARDWARE],
                    cwd=SOURCE, capture_output=True, text=True, timeout=DEADLINE_S)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_plan_says_why_it_is_so_and_what_was_rejected(self):
        for file in PLANS.glob("*.yaml"):
            with self.subTest(file.stem):
                head = file.read_text().split("\ncluster:")[0].splitlines()
                self.assertGreaterEqual(len(head), 3)
                self.assertTrue(all(line.startswith("# ") for line in head))
                self.assertIn("# Rejected: ", "\n".join(head))

    def test_what_is_too_large_needs_what_the_page_says(self):
        rows = TOO_LARGE.findall(PAGE)
        self.assertGreaterEqual(len(rows), 6)
        for name, gpus, plan, changes, needs_gb in rows:
            with self.subTest(f"{name} {gpus} {changes}"):
                done = plan_command("check", name, plan, *changes.split())
                self.assertEqual(done.returncode, 3, done.stderr)
                got = re.findall(r"got ([\d.]+) GB", done.stdout + done.stderr)
                self.near(needs_gb, max(float(number) for number in got))


if __name__ == "__main__":
    unittest.main()
