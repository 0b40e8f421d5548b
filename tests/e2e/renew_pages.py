"""Brings pages that show what plan commands say up to date with the program: the tables
of examples/h100, docs/gpu.md and examples/recipes, and the plans of
docs/field_as_plans.md. Tests hold these pages to the program (h100_test.py,
recipes_test.py, plan_commands_test.py); after a change of the cost model, of memory or
of presets run, from a build:

    python3 tests/e2e/renew_pages.py              # all pages, numbers only
    python3 tests/e2e/renew_pages.py --compare [NAME ..]  # plans beside what a search finds
    python3 tests/e2e/renew_pages.py --search NAME ..   # write what it finds for recipes

Layouts, reasons and what was rejected are words: who changes a plan of examples/h100
changes its first lines and its row.
"""
import json
import re
import subprocess
import sys

import h100_test
import recipes_test
from support import SOURCE, TROUPE

FIELD_PAGE = SOURCE / "docs/field_as_plans.md"
FIELD_SETTINGS = SOURCE / "examples/paper/7b.yaml"
FIELD_PLAN = re.compile(r"(^## `(\w+)`$.*?^```yaml$\n)(.*?)(^```$)", re.M | re.S)
RECIPES_PAGE = recipes_test.RECIPES / "README.md"
SEARCH_S = 60
LATE_S = 600  # of a search that has its seconds behind it: it polishes and proves


def troupe_plan(*words):
    done = subprocess.run([TROUPE, "plan", *words], cwd=SOURCE, capture_output=True,
                          text=True, timeout=SEARCH_S + LATE_S)
    if done.returncode != 0:
        raise SystemExit(f"troupe plan {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def renew(page, text):
    """Writes a page and says whether it changed."""
    changed = page.read_text() != text
    page.write_text(text)
    print(f"{page.relative_to(SOURCE)}: {'new numbers' if changed else 'as it was'}")


def field_page():
    def shown(match):
        plan = troupe_plan("show", FIELD_SETTINGS, "--hardware", "h100x8",
                           "--preset", match[2])
        return match[1] + plan + match[4]
    renew(FIELD_PAGE, FIELD_PLAN.sub(shown, FIELD_PAGE.read_text()))


def short(number):
    """Three digits, as the table has them: 0.595, 66.6, 4340."""
    return f"{float(f'{number:.3g}'):g}"


def recipes_page():
    def row(match):
        run = recipes_test.planned("simulate", recipes_test.RECIPES / f"{match[1]}.yaml")
        peak = max(device["peak_bytes"] for device in run["devices"])
        return (match[0].removesuffix(f"| {match[4]} s | {match[5]} GB |")
                + f"| {short(run['step_s'])} s | {peak / 1e9:.1f} GB |")
    renew(RECIPES_PAGE, recipes_test.ROW.sub(row, RECIPES_PAGE.read_text()))


def h100_pages():
    before = [page.read_text() for page in (h100_test.H100 / "README.md",
                                            h100_test.GPU_PAGE)]
    h100_test.write()
    for page, text in zip((h100_test.H100 / "README.md", h100_test.GPU_PAGE), before):
        now = page.read_text()
        print(f"{page.relative_to(SOURCE)}: "
              f"{'as it was' if now == text else 'new numbers'}")


def searched(settings, plan, hardware):
    """Seconds and text of what a search finds on the plan's devices."""
    cluster = re.search(r"^cluster: \{nodes: (\d+), devices_per_node: (\d+)",
                        plan.read_text(), re.M)
    words = ("search", settings, "--hardware", hardware, "--seconds", str(SEARCH_S),
             f"cluster.nodes={cluster[1]}", f"cluster.devices_per_node={cluster[2]}",
             "plan=auto")
    return json.loads(troupe_plan(*words, "--json"))


def compare(names):
    """Prints the predicted seconds of plans, or of all, and of the search's."""
    cases = [(h100_test.H100 / f"{name}.yaml", h100_test.PLANS / f"{plan}.yaml",
              h100_test.HARDWARE)
             for name, _, plan, *_ in h100_test.ROW.findall(h100_test.PAGE)]
    for name in recipes_test.SHOWS:
        cases.append((recipes_test.RECIPES / f"{name}.yaml",
                      recipes_test.RECIPES / "plans" / f"{name}.yaml", "h100x8"))
    for settings, plan, hardware in cases:
        if names and plan.stem not in names:
            continue
        own = json.loads(troupe_plan("simulate", settings, f"plan={plan}",
                                     "--hardware", hardware, "--json"))
        found = searched(settings, plan, hardware)
        print(f"{plan.stem}: {own['step_s']:.4g} s, a search finds "
              f"{found['step_s']:.4g} s: {layouts(found['plan'])}", flush=True)


def layouts(plan):
    return ", ".join(f"{call} {words}" for call, words in re.findall(
        r"^  (\w+): \{(?:devices: [\d, -]+, )?strategy: (\w+)", plan, re.M))


def write_searched(names):
    """Puts what a search finds in place of recipes' plans; keeps their first line."""
    for name in names:
        plan = recipes_test.RECIPES / "plans" / f"{name}.yaml"
        found = searched(recipes_test.RECIPES / f"{name}.yaml", plan, "h100x8")
        head = plan.read_text().split("cluster:")[0]
        renew(plan, head + found["plan"])


if __name__ == "__main__":
    if "--compare" in sys.argv:
        compare(sys.argv[2:])
    elif "--search" in sys.argv:
        write_searched(sys.argv[2:])
    else:
        field_page()
        recipes_page()
        h100_pages()
