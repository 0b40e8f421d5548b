"""tests/gpu/bundle.sh: the archive of a CPU build, unpacked elsewhere, starts in an empty
environment with its own libraries, goes as far as a machine without GPUs can, and passes
every step with small models on the CPU."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD", ROOT / "build")).resolve()
DEADLINE_S = 360
PATIENCE = "4"  # limits of steps are those of a machine with GPUs


def libtorch():
    """The folder with the libtorch that the build loads."""
    said = subprocess.run(["ldd", BUILD / "troupe"], capture_output=True, text=True,
                          check=True).stdout
    return pathlib.Path(re.search(r"=> (\S+)/libc10\.so", said)[1])


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.scratch = pathlib.Path(folder.name)
        archive = cls.scratch / "bundle.tar.gz"
        cls.made = subprocess.run(
            [ROOT / "tests/gpu/bundle.sh", archive, "--build", BUILD], capture_output=True,
            text=True, timeout=DEADLINE_S, check=False)
        if cls.made.returncode != 0:
            raise AssertionError(cls.made.stderr)
        subprocess.run(["tar", "xzf", archive, "-C", cls.scratch], check=True)
        cls.folder = cls.scratch / "first_light"

    def start(self, *words, python_path=""):
        """Of the bundle, from an empty folder and with an empty environment."""
        elsewhere = self.scratch / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        return subprocess.run(
            ["env", "-i", f"PATH={os.environ['PATH']}", f"HOME={elsewhere}",
             f"PYTHON={sys.executable}", f"PYTHONPATH={python_path}",
             self.folder / "first_light.sh", "--patience", PATIENCE, *words],
            cwd=elsewhere, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    def test_harmless_steps_are_green_with_its_own_libraries(self):
        torch = libtorch().parent.parent
        done = self.start(python_path=torch)
        document = json.loads(
            (self.scratch / "elsewhere/first_light_results/first_light.json").read_text())
        if document["machine"]["gpus"]:
            self.skipTest("this machine has GPUs")
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        self.assertTrue(document["machine"]["commit"])
        loaded = (self.scratch / "elsewhere/first_light_results/01.log").read_text()
        for name in (self.folder / "lib").glob("*.so*"):
            if name.name in loaded:
                self.assertIn(f"{name.name} => {name} ", loaded)
        self.assertIn(f"{self.folder}/lib/libcaf_core.so", loaded)

    def test_it_needs_no_source_tree(self):
        """Golden models come from the bundle: without them its tests are red."""
        data = self.folder / "tests/golden/data"
        words = ("--rehearse", "--only", "recorded beside unrecorded")
        torch = libtorch().parent.parent
        done = self.start(*words, python_path=torch)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        data.rename(data.with_name("gone"))
        try:
            self.assertEqual(self.start(*words, python_path=torch).returncode, 1)
        finally:
            data.with_name("gone").rename(data)

    def test_every_step_passes_on_the_cpu(self):
        for gpus in ("1", "2"):
            done = self.start("--rehearse", "--gpus", gpus,
                              python_path=libtorch().parent.parent)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotIn("skipped", done.stdout)

    def test_it_is_small_and_says_how_it_is_run(self):
        self.assertRegex(self.made.stdout, r": [1-5]?\d\.\d MB, 4 programs, \d+ libraries\n$")
        readme = (self.folder / "README.txt").read_text()
        for word in ("./first_light.sh", "glibc 2.", "torch\n2.11", "built without CUDA"):
            self.assertIn(word, readme)
        for file in (*(self.folder / "bin").iterdir(), *(self.folder / "lib").glob("*.so*")):
            said = subprocess.run(["readelf", "-d", file], capture_output=True, text=True,
                                  check=True).stdout
            self.assertIn("(NEEDED)", said, file)
            self.assertNotRegex(said, r"\((RPATH|RUNPATH)\)", file)
        licences = (self.folder / "lib/LICENCES.txt").read_text()
        for name in (self.folder / "lib").glob("*.so*"):
            self.assertIn(f"##### {name.name}\n", licences)


if __name__ == "__main__":
    unittest.main()
