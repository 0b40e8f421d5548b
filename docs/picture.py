"""Makes the pictures of docs/page.md and the README: the page of a PPO run, live
and once it has ended, after a recovery, beside another run, and on a phone.

    python3 -B docs/picture.py [FOLDER]

FOLDER (default: here) holds the models of `make run` under runs/. A run named
"picture" is trained there with the demo's settings, of which one worker is killed
on the way, and "verl" with another plan. Needs the packages chromium,
chromium-driver.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
TROUPE = pathlib.Path(os.environ.get("TROUPE", TOP / "build/troupe")).resolve()
sys.path.insert(0, str(TOP / "tests/e2e"))
sys.path.insert(0, str(TOP / "docs"))
import small_png  # noqa: E402
import webdriver  # noqa: E402

LIVE_AT, KILL_AT, STEPS = 40, 60, 120
OTHER = ["run.name=verl", "run.resume=fresh", "run.steps=60", "run.save_every=0",
         "plan=verl", "algorithm.kl_coef=0.05"]
MOST_BYTES = 120 * 1024
SETTINGS = ["run.name=picture", "run.resume=fresh", f"run.steps={STEPS}",
            "run.save_every=20"]
FIT = "document.getElementById('fit').click();"
TAB = "[...document.querySelectorAll('#tabs button')].find((b) => b.dataset.tab === '{}').click();"
SEARCH = ("const box = document.getElementById('search'); box.value = 'rew_inf';"
          "box.dispatchEvent(new Event('input'));")
DIFF = ("Object.assign(window.troupe.state.samples, {diff: true, from: 1});")
# name -> what is done before the picture is taken, and whether it is dark
VIEWS = {
    "page_run": (FIT + TAB.format("failures") + "window.scrollTo(0, 300);", False),
    "page_map": ("document.getElementById('map-large').click();"
                 "window.troupe.map.show(100); window.troupe.map.seek(0.12);"
                 "for (let i = 0; i < 3; ++i) window.troupe.map.hop(true);"
                 "window.scrollTo(0, 340);", True),
    "page_task": ("const {model, timeline, state} = window.troupe;"
                  "timeline.show(model.stepSpan(99).b, model.stepSpan(100).e);"
                  "const task = model.steps.get(100).get('actor_train')[0];"
                  "timeline.at = () => ({lane: {}, slice: task});"
                  "timeline.pick({clientX: 1000, clientY: 500});"
                  "delete timeline.at;", False),
    "page_curves": (TAB.format("curves"), True),
    "page_search": (SEARCH, False),
    "page_samples": (DIFF + TAB.format("samples"), False),
    "page_compare": (TAB.format("compare"), False),
}


def take(name, browser):
    file = TOP / f"docs/{name}.png"
    browser.picture(file)
    file.write_bytes(small_png.small_png(file.read_bytes()))
    if errors := browser.errors():
        raise SystemExit(f"error: the page says {errors}")
    size = file.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"error: docs/{name}.png: {size} bytes, expected at most "
                         f"{MOST_BYTES}")
    print(f"docs/{name}.png: {size} bytes")


def opened(url, dark=False):
    browser = webdriver.Chromium(dark=dark)
    browser.fit(1280, 800)
    settle(browser, url)
    return browser


def settle(browser, url):
    browser.open(url)
    for _ in range(200):
        if browser.run("return !document.body.classList.contains('loading')"):
            break
        time.sleep(0.05)
    time.sleep(2)  # events are on their way to the page


def train(folder):
    # as a user types it: "compare" shows the settings
    plan = os.path.relpath(TOP / "examples/tiny/plans/groups.yaml", folder)
    run = subprocess.Popen(
        [TROUPE, "train", TOP / "examples/tiny/ppo.yaml", f"plan={plan}",
         *SETTINGS],
        cwd=folder, stdout=subprocess.PIPE, text=True)
    url = None
    for line in run.stdout:
        if found := re.search(r"http://\S+", line):
            url = found[0]
        if line.startswith(f"step {LIVE_AT}/"):
            with opened(url) as browser:
                browser.run("document.getElementById('last-step').click()")
                time.sleep(1)
                take("live_page", browser)
        if line.startswith(f"step {KILL_AT}/"):
            status = json.loads((folder / "runs/picture/status.json").read_text())
            os.kill(status["workers"][1]["pid"], signal.SIGKILL)
    if run.wait() != 0:
        raise SystemExit("error: the run failed")


def main():
    if reason := webdriver.Chromium.missing():
        raise SystemExit(f"error: {reason}; try apt-get install chromium-driver")
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    train(folder)
    subprocess.run([TROUPE, "train", TOP / "examples/tiny/ppo.yaml", *OTHER],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
    serve = subprocess.Popen([TROUPE, "trace", "serve", "runs/picture", "runs/verl"],
                             cwd=folder,
                             stdout=subprocess.PIPE, text=True)
    url = serve.stdout.readline().strip()
    try:
        with webdriver.Chromium(phone=webdriver.UPRIGHT, ratio=1) as browser:
            settle(browser, url)
            take("page_phone", browser)
        for name, (script, dark) in VIEWS.items():
            with opened(url, dark) as browser:
                browser.run(script)
                time.sleep(1)
                take(name, browser)
    finally:
        serve.terminate()
        serve.communicate()


main()
