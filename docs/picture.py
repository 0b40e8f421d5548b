"""Makes docs/live_page.png: the page of a PPO run while it trains.

    python3 -B docs/picture.py [FOLDER]

FOLDER (default: here) holds the models of `make run` under runs/. A run named
"picture" is trained there with the demo's settings, and Chromium takes the
picture once 40 steps are done. Needs the packages chromium, chromium-driver.
"""
import os
import pathlib
import re
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
TROUPE = os.environ.get("TROUPE", TOP / "build/troupe")
sys.path.insert(0, str(TOP / "tests/e2e"))
import webdriver  # noqa: E402

STEPS_BEFORE = 40
MOST_BYTES = 300 * 1024
SETTINGS = ["run.name=picture", "run.resume=fresh", "run.steps=1000",
            "run.save_every=0"]
SHOW_LAST_STEP = """
[...document.querySelectorAll('button')]
  .find((button) => button.textContent === 'last step').click();
"""


def take(url):
    with webdriver.Chromium(width=1280, height=780) as browser:
        browser.open(url)
        time.sleep(4)  # events are on their way to the page
        browser.run(SHOW_LAST_STEP)
        time.sleep(1)
        browser.picture(TOP / "docs/live_page.png")
        if errors := browser.errors():
            raise SystemExit(f"error: the page says {errors}")


def main():
    if reason := webdriver.Chromium.missing():
        raise SystemExit(f"error: {reason}; try apt-get install chromium-driver")
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    run = subprocess.Popen(
        [TROUPE, "train", TOP / "examples/tiny/ppo.yaml",
         f"plan={TOP}/examples/tiny/plans/groups.yaml", *SETTINGS],
        cwd=folder, stdout=subprocess.PIPE, text=True)
    url = None
    for line in run.stdout:
        if found := re.search(r"http://\S+", line):
            url = found[0]
        if line.startswith(f"step {STEPS_BEFORE}/"):
            break
    else:
        raise SystemExit("error: the run ended before its picture was taken")
    try:
        take(url)
    finally:
        run.terminate()
        run.communicate()
    size = (TOP / "docs/live_page.png").stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"error: {size} bytes, expected at most {MOST_BYTES}")
    print(f"docs/live_page.png: {size} bytes")


main()
