"""Browsers for the tests, with Python's standard library only: Chromium through
chromedriver's HTTP interface, Firefox through Marionette, the socket that it
opens itself (geckodriver is no Debian package). Absent ones are said, not
hidden."""
import base64
import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile
import urllib.request

from support import until

# Keys without a letter (WebDriver, keyboard actions).
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Shift": "\ue008", "Tab": "\ue004",
        "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015"}
PHONE = 844, 390  # CSS pixels, held in landscape
UPRIGHT = 390, 844


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Browser(contextlib.AbstractContextManager):
    """A window on a page; browsers differ only in the protocol."""

    programs = ()

    @classmethod
    def missing(cls):
        """Why there is no such browser; empty: there is one."""
        for program in cls.programs:
            if shutil.which(program) is None:
                return f"no {program} on this machine"
        return ""

    def open(self, url):
        raise NotImplementedError

    def run(self, script):
        """Returns the result of the script."""
        raise NotImplementedError

    def resize(self, width, height):
        """The window with its frame."""
        raise NotImplementedError

    def fit(self, width, height):
        """Gives the page this size, as people name that of a screen."""
        frame = self.run("return [outerWidth - innerWidth,"
                         " outerHeight - innerHeight]")
        self.resize(width + frame[0], height + frame[1])
        until(lambda: self.run("return [innerWidth, innerHeight]")
              == [width, height], "the page has its size")

    def errors(self):
        """Errors of the page's scripts."""
        raise NotImplementedError

    def act(self, actions):
        """Performs actions of WebDriver."""
        raise NotImplementedError

    def press(self, *names, hold=()):
        """Presses keys by name or letter, one after the other, while those of
        `hold` are down: as a person does, not as an event of the page's."""
        def strokes(kind, keys):
            return [{"type": kind, "value": KEYS.get(key, key)} for key in keys]
        presses = [stroke for name in names for stroke in
                   (*strokes("keyDown", [name]), *strokes("keyUp", [name]))]
        self.act([{"type": "key", "id": "keyboard", "actions": [
            *strokes("keyDown", hold), *presses, *strokes("keyUp", hold)]}])

    def back(self):
        raise NotImplementedError

    def reload(self):
        raise NotImplementedError

    def screenshot(self):
        raise NotImplementedError

    def picture(self, file):
        pathlib.Path(file).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(file).write_bytes(base64.b64decode(self.screenshot()))


class Chromium(Browser):
    programs = ("chromium", "chromedriver")

    def __init__(self, width=1280, height=900, dark=False, phone=None, ratio=3):
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        until(self.answers, "chromedriver answers")
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu",
                     "--disable-dev-shm-usage", "--enable-precise-memory-info",
                     f"--window-size={width},{height}"]
        if dark:
            arguments.append("--force-dark-mode")
        options = {"args": arguments}
        if phone:
            options["mobileEmulation"] = {"deviceMetrics": {
                "width": phone[0], "height": phone[1], "pixelRatio": ratio,
                "touch": True}}
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": options}}})
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

    def resize(self, width, height):
        self.call("POST", f"{self.session}/window/rect",
                  {"width": width, "height": height})

    def run(self, script):
        return self.call("POST", f"{self.session}/execute/sync",
                         {"script": script, "args": []})

    def act(self, actions):
        self.call("POST", f"{self.session}/actions", {"actions": actions})

    def back(self):
        self.call("POST", f"{self.session}/back")

    def reload(self):
        self.call("POST", f"{self.session}/refresh")

    def page_bytes(self):
        """The most memory that the process of the page ever had."""
        parents, peaks = {}, {}
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                fields = dict(line.split(":\t", 1)
                              for line in status.read_text().splitlines())
                pid = int(status.parent.name)
                parents[pid] = int(fields["PPid"])
                if b"--type=renderer" in (status.parent / "cmdline").read_bytes():
                    peaks[pid] = 1024 * int(fields["VmHWM"].split()[0])

        def is_own(pid):
            while pid in parents and pid != self.driver.pid:
                pid = parents[pid]
            return pid == self.driver.pid
        return max(peak for pid, peak in peaks.items() if is_own(pid))

    def errors(self):
        lines = self.call("POST", f"{self.session}/se/log", {"type": "browser"})
        return [line["message"] for line in lines if line["level"] == "SEVERE"]

    def screenshot(self):
        return self.call("GET", f"{self.session}/screenshot")

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.call("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait()


class Firefox(Browser):
    programs = ("firefox-esr",)

    def __init__(self, width=1280, height=900, dark=False, phone=None):
        self.home = tempfile.TemporaryDirectory(prefix="troupe-firefox-",
                                                ignore_cleanup_errors=True)
        home, port = pathlib.Path(self.home.name), free_port()
        (home / "user.js").write_text(
            f'user_pref("marionette.port", {port});\n'
            f'user_pref("ui.systemUsesDarkTheme", {int(dark)});\n'
            'user_pref("toolkit.legacyUserProfileCustomizations.stylesheets", true);\n')
        # its window is at least 450 px wide, a phone is not
        (home / "chrome").mkdir()
        (home / "chrome/userChrome.css").write_text(
            ":root { min-width: 0 !important; }\n")
        self.output = home / "output"
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                [*self.programs, "--headless", "--marionette", "--no-remote",
                 "--profile", home, f"--width={width}", f"--height={height}"],
                stdout=output, stderr=output, start_new_session=True,
                env={"HOME": str(home), "PATH": "/usr/bin:/bin"})
        self.calls, self.socket = 0, None
        until(lambda: self.connected(port), "Firefox listens")
        self.stream = self.socket.makefile("rb")
        self.message()  # its greeting
        self.call("NewSession")
        self.call("SetWindowRect", width=width, height=height)
        if phone:
            self.fit(*phone)

    def resize(self, width, height):
        self.call("SetWindowRect", width=width, height=height)

    def connected(self, port):
        with contextlib.suppress(OSError):
            self.socket = socket.create_connection(("127.0.0.1", port), 60)
        return self.socket is not None

    def message(self):
        """The next one: its length in digits, a colon, JSON."""
        digits = b""
        while (byte := self.stream.read(1)) != b":":
            if not byte:
                raise ConnectionError(self.output.read_text(errors="replace"))
            digits += byte
        return json.loads(self.stream.read(int(digits)))

    def call(self, name, **parameters):
        self.calls += 1
        text = json.dumps([0, self.calls, f"WebDriver:{name}", parameters])
        self.socket.sendall(f"{len(text.encode())}:{text}".encode())
        _, _, error, result = self.message()
        if error:
            raise RuntimeError(f"{name}: {error['message']}")
        return result

    def open(self, url):
        self.url = url
        self.call("Navigate", url=url)

    def run(self, script):
        return self.call("ExecuteScript", script=script, args=[])["value"]

    def act(self, actions):
        self.call("PerformActions", actions=actions)

    def back(self):
        self.call("Back")

    def reload(self):
        self.call("Refresh")

    def errors(self):
        lines = self.output.read_text(errors="replace").splitlines()
        return [line for line in lines
                if line.startswith(f"JavaScript error: {self.url}")]

    def screenshot(self):
        return self.call("TakeScreenshot", full=False)["value"]

    def __exit__(self, *_):
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        self.home.cleanup()
