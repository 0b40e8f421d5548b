"""examples/h100: every plan fits the H100 and costs what the table says, says why it is
so, and what the page says does not fit does not. `--write` brings the numbers of both
tables and of docs/gpu.md up to what is predicted now."""
import json
import re
import subprocess
import sys
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

# | GRPO 1.7B | 163, `d1` | 21.2, `d8` | ...: the same by workflow, size and number of GPUs
GPU_PAGE = SOURCE / "docs/gpu.md"
GPU_ROW = re.compile(r"^\| (GRPO|PPO) ([\w.]+)[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|$",
                     re.MULTILINE)


def cells(page):
    """What docs/gpu.md says: {"grpo_1.7b_1": "163", ...}."""
    found = {}
    for workflow, size, *steps in GPU_ROW.findall(page):
        for gpus, cell in zip((1, 8, 16), steps):
            if number := re.match(r" ([\d.]+), ", cell):
                name = f"{workflow.lower()}_{size.lower().split('-')[0]}_{gpus}"
                found[name] = number[1]
    return found


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

    def test_the_page_of_gpus_has_the_same_seconds(self):
        self.assertEqual(cells(GPU_PAGE.read_text()),
                         {plan: step_s for _, _, plan, step_s, *_ in ROW.findall(PAGE)})

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
                self.near(needs_gb, needed_gb(name, plan, changes))


def needed_gb(name, plan, changes):
    done = plan_command("check", name, plan, *changes.split())
    if done.returncode != 3:
        raise AssertionError(f"{plan} fits: {done.stderr}")
    return max(float(number) for number in
               re.findall(r"got ([\d.]+) GB", done.stdout + done.stderr))


def three_digits(number):
    return f"{number:.{0 if number >= 100 else 1}f}"


def write():
    """Puts today's numbers in place of those of the tables."""
    page, gpus = PAGE, GPU_PAGE.read_text()
    for row in ROW.finditer(PAGE):
        name, _, plan, step_s, peak_gb, at = row.groups()
        run = planned("simulate", name, plan)
        fullest = max(run["devices"], key=lambda one: one["peak_bytes"])
        now = three_digits(run["step_s"])
        page = page.replace(row[0], row[0]
                            .replace(f"| {step_s} s |", f"| {now} s |")
                            .replace(f"| {peak_gb} GB | `{at}` |",
                                     f"| {fullest['peak_bytes'] / 1e9:.1f} GB | "
                                     f"`{fullest['peak_task']}` |"))
        workflow, size, number = re.fullmatch(r"([a-z]+)_(.*)_(\d+)", plan).groups()
        for line in GPU_ROW.finditer(gpus):
            if (line[1].lower(), line[2].lower().split("-")[0]) == (workflow, size):
                parts = line[0].split("|")
                at_column = 2 + (1, 8, 16).index(int(number))
                parts[at_column] = re.sub(r"^ [\d.]+", f" {now}", parts[at_column])
                gpus = gpus.replace(line[0], "|".join(parts))
    for row in TOO_LARGE.finditer(page):
        now = needed_gb(row[1], row[3], row[4] or "")
        page = page.replace(row[0], row[0].replace(f"| {row[5]} GB |", f"| {now:.0f} GB |"))
    (H100 / "README.md").write_text(page)
    GPU_PAGE.write_text(gpus)


if __name__ == "__main__":
    write() if "--write" in sys.argv else unittest.main()
