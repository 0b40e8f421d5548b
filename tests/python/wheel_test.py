"""The wheels of `make wheel` in environments of their own that have nothing else.
The planner's has not even torch. The other one gets the torch that Troupe was built
with: linked into the environment, without the packages that torch itself wants, as
no wheel of torch without CUDA has a name that pip could ask for; so pip's check of
dependencies is the one thing that is not tried here."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import package  # noqa: F401
from support import BUILD, SOURCE, TINY, Case

SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|util|gcc_s|stdc\+\+)\.so")
TRAIN = """
import sys, troupe
run = troupe.train(sys.argv[1], sys.argv[2:])
print([line["step"] for line in run], run.folder.status.state, troupe.find_program())
"""
PLAN = """
import importlib.util, sys, troupe
assert importlib.util.find_spec("torch") is None
found = troupe.plan_check(sys.argv[1], preset="megatron", hardware="h100x8")
print(found.ok, len(found.devices), troupe.find_program("troupe-plan"))
"""


def loaded(program):
    """{name: path} of the libraries that a program finds when it starts."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True,
                          check=True).stdout
    return dict(re.findall(r"^\s*(\S+) => (\S+)", said, re.M))


class Wheels(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.wheels = pathlib.Path(tempfile.mkdtemp(dir=cls.shared_folder))
        done = subprocess.run(
            [sys.executable, "-B", SOURCE / "runtime/python/build_wheels.py",
             "--build", BUILD, "--out", cls.wheels], capture_output=True,
            text=True, timeout=300)
        if "No matching distribution" in done.stderr:
            super().tearDownClass()
            raise unittest.SkipTest("no PyPI on this machine: pip fetches "
                                    "scikit-build-core")
        assert done.returncode == 0, done.stderr

    def setUp(self):
        super().setUp()
        for name in [*self.environment]:
            if name.startswith(("TROUPE_PROGRAM", "TROUPE_PLAN", "PYTHON")):
                del self.environment[name]
        self.venv = self.folder / "venv"
        # without pip: what Debian's python3 makes without another package
        self.run_program(sys.executable, "-m", "venv", "--without-pip", self.venv)
        self.packages, = self.venv.glob("lib/python3*/site-packages")

    def run_program(self, *words, code=0, seconds=120):
        done = subprocess.run(
            [str(word) for word in words], cwd=self.folder,
            env=self.environment, capture_output=True, text=True,
            timeout=seconds)
        self.assertEqual(done.returncode, code,
                         f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def install(self, name, *options):
        wheel, = self.wheels.glob(f"{name}-*.whl")
        self.run_program(sys.executable, "-m", "pip", "--python",
                         self.venv / "bin/python", "install", "--no-index",
                         "--quiet", *options, wheel)
        return wheel

    def link_torch(self, into):
        into.mkdir(exist_ok=True)
        torch = pathlib.Path(loaded(BUILD / "troupe")["libtorch_cpu.so"]).parents[1]
        for part in (torch, torch.parent / "nvidia"):
            (into / part.name).symlink_to(part)

    def arguments(self):
        return [str(TINY / "sft.yaml"), "run.steps=2", "run.name=sft",
                "models.actor.path=data/base", "data.train=data/sft.jsonl",
                "data.batch_size=8"]

    def test_the_planner_works_where_torch_is_not(self):
        wheel = self.install("troupe_plan")
        self.assertLess(wheel.stat().st_size, 5e6)
        helped = self.run_program(self.venv / "bin/troupe-plan", "--help")
        self.assertIn("advise", helped.stdout)
        said = self.run_program(self.venv / "bin/python", "-c", PLAN,
                                SOURCE / "examples/paper/7b.yaml").stdout
        program = self.packages / "troupe/bin/troupe-plan"
        self.assertEqual(said.split(), ["True", "8", str(program)])
        self.assert_complete(program)
        self.assertFalse((self.venv / "bin/troupe").exists())

    def assert_complete(self, program):
        """All that it loads comes with it, with torch or with any Linux."""
        folder = self.packages.resolve()
        for name, path in loaded(program).items():
            if not SYSTEM.match(name):
                self.assertTrue(
                    pathlib.Path(path).is_relative_to(folder)
                    or "/torch/lib/" in path or "/nvidia/" in path, path)

    def test_a_run_trains_with_the_torch_of_the_environment(self):
        self.link_torch(self.packages)
        self.install("troupe", "--no-deps")
        program = self.packages / "troupe/bin/troupe"
        self.assert_complete(program)
        self.assertTrue(loaded(program)["libtorch_cpu.so"].startswith(
            str(self.packages.resolve())))
        helped = self.run_program(self.venv / "bin/troupe", "--help")
        self.assertIn("train", helped.stdout)
        said = self.run_program(self.venv / "bin/python", "-c", TRAIN,
                                *self.arguments()).stdout
        self.assertEqual(said.strip(), f"[1, 2] done {program}")
        wrong = self.run_program(self.venv / "bin/troupe", "train", "no.yaml",
                                 code=2)
        self.assertIn("error: no.yaml: expected", wrong.stderr)

    def test_a_torch_elsewhere_on_pythons_path_is_found(self):
        self.install("troupe", "--no-deps")
        missing = self.run_program(self.venv / "bin/troupe", "--version", code=1)
        self.assertIn("no libtorch: expected the package torch",
                      missing.stderr)
        self.link_torch(self.folder / "elsewhere")
        (self.packages / "elsewhere.pth").write_text(f"{self.folder}/elsewhere\n")
        self.run_program(self.venv / "bin/troupe", "train", *self.arguments())
        self.assertEqual(sorted(self.metrics("sft")), [1, 2])

    def test_tags_and_versions_are_those_of_the_programs(self):
        cmake = (SOURCE / "CMakeLists.txt").read_text()
        version = re.search(r"project\(troupe VERSION (\S+)", cmake)[1]
        names = sorted(file.name for file in self.wheels.glob("*.whl"))
        self.assertEqual(len(names), 2)
        for name, wheel in zip(("troupe", "troupe_plan"), names):
            self.assertRegex(wheel, rf"^{name}-{re.escape(version)}-py3-none-"
                             r"manylinux_2_\d\d_x86_64\.whl$")
        self.assertEqual(package.troupe.__version__, version)
        torch = re.search(r"^TORCH=(\S+)", (SOURCE / "setup.sh").read_text(),
                          re.M)[1]
        self.assertIn(f'dependencies = ["torch=={torch}"]', (
            SOURCE / "runtime/python/pyproject.toml").read_text())


if __name__ == "__main__":
    unittest.main()
