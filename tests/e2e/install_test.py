"""An installed Troupe is found by CMake from another project, whose program then
trains; its headers cost little to compile."""
import os
import subprocess
import sys
import unittest

from support import BUILD, TINY, Case

EXAMPLE = TINY.parent / "best_of_n"


class Install(Case):
    def command(self, *words, seconds=400):
        done = subprocess.run([str(word) for word in words], cwd=self.folder,
                              capture_output=True, text=True, timeout=seconds)
        self.assertEqual(done.returncode, 0,
                         f"{words}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def test_another_project_finds_builds_and_runs_it(self):
        prefix, build = self.folder / "prefix", self.folder / "build"
        self.command("cmake", "--install", BUILD, "--prefix", prefix)
        self.assertIn("troupe", self.command(prefix / "bin/troupe",
                                             "--version"))
        self.command("cmake", "-S", EXAMPLE, "-B", build, "-G", "Ninja",
                     f"-DCMAKE_PREFIX_PATH={prefix}")
        self.command("cmake", "--build", build)
        out = self.command(
            build / "best_of_n", "train", EXAMPLE / "best_of_n.yaml",
            "run.steps=1", "models.actor.path=data/base",
            "data.train=data/prompts.jsonl", "data.batch_size=4",
            "rollout.max_new_tokens=8",
            f"best_of_n.tool={EXAMPLE}/is_kind.sh")
        self.assertIn("step 1/1", out)

    def cpu_seconds(self, *headers):
        """Processor time of compiling a file with only these headers."""
        text = "".join(f"#include <troupe/{name}>\n" for name in headers)
        source = self.folder / "headers.cpp"
        source.write_text(text)
        root = TINY.parent.parent
        torch = root / ".deps/wheels/torch/include"
        before = os.times()
        self.command("c++", "-std=c++20", f"-I{root}", "-idirafter", torch,
                     "-fsyntax-only", source)
        after = os.times()
        return (after.children_user - before.children_user
                + after.children_system - before.children_system)

    def test_headers_compile_fast(self):
        app = self.cpu_seconds("app.hpp", "actor.hpp")
        loss = self.cpu_seconds("loss.hpp")
        print(f"app.hpp + actor.hpp {app:.1f} s, loss.hpp {loss:.1f} s of "
              "processor time", file=sys.stderr)
        # a loaded machine has half its speed: limits of 3 s and 10 s, doubled
        self.assertLess(app, 6)
        self.assertLess(loss, 20)


if __name__ == "__main__":
    unittest.main()
