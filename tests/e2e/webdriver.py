"""A browser for the tests: Chromium through chromedriver's HTTP interface,
with Python's standard library only. Absent browsers are said, not hidden."""
import base64
import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import urllib.request

from support import until


def missing():
    """Why there is no browser; empty: there is one."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"no {program} on this machine"
    return ""


class Browser(contextlib.AbstractContextManager):
    def __init__(self, width=1280, height=900, dark=False):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        until(self.answers, "chromedriver answers")
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu",
                     "--disable-dev-shm-usage",
                     f"--window-size={width},{height}"]
        if dark:
            arguments.append("--force-dark-mode")
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"args": arguments}}}})
        self.session = f"/session/{made['sessionId']}"

    def answers(self):
        with contextlib.suppress(OSError):
            return self.call("GET", "/status")["ready"]
        return False

    def call(self, method, path, body=None):
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(
            self.base + path, data, {"Content-Type": "application/json"},
            method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, url):
        self.call("POST", f"{self.session}/url", {"url": url})

    def run(self, script):
        """What the script returns."""
        return self.call("POST", f"{self.session}/execute/sync",
                         {"script": script, "args": []})

    def errors(self):
        """Errors that the page wrote to its console."""
        lines = self.call("POST", f"{self.session}/se/log", {"type": "browser"})
        return [line["message"] for line in lines if line["level"] == "SEVERE"]

    def picture(self, file):
        shot = self.call("GET", f"{self.session}/screenshot")
        pathlib.Path(file).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(file).write_bytes(base64.b64decode(shot))

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.call("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait()
