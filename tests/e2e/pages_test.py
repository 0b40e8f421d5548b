"""The commands of the README and of the page on custom workflows run as they are
printed, one after the other in one folder, after the demo. All other pages name
only commands and options that there are."""
import functools
import re
import shlex
import subprocess
import unittest

from support import BUILD, SOURCE, Case, write_rows

LIMIT_S = 60  # of one command
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\n", re.M | re.S)
TICKED = re.compile(r"`([^`\n]+)`")
NAMED = re.compile(r"^(?:build/)?troupe ([a-z][a-z0-9]*)(?: ([a-z]+)\b)?([^|>#]*)")
OPTION = re.compile(r"(?<!\S)--?[a-z][\w-]*")
INDENTED = re.compile(r"^ {4}(\S.*)$", re.M)
# how a page names what the reader has -> what the test has
STAND_INS = {
    "FOLDER/best_of_n.yaml": "examples/best_of_n/best_of_n.yaml",
    "models.actor.path=FOLDER": "models.actor.path=data/base",
}
# what a tiny model in a test needs besides the commands of the page
ALSO = {
    "own/best_of_n train": ["run.steps=2", "data.batch_size=8"],
    "build/troupe train examples/gsm8k": [  # the tiny model has 128 positions
        "data.max_prompt_tokens=64", "rollout.max_new_tokens=64", "--dry-run"],
}
# what other tests run: a build, an installation, a build against that
ELSEWHERE = ("make", "cmake", "ctest")


def commands_of(page):
    """The command lines of the indented and the shell blocks of a page."""
    text = page.read_text()
    shell = [block for name, block in FENCE.findall(text)
             if name in ("sh", "console")]
    lines = INDENTED.findall(FENCE.sub("\n", text))
    for block in shell:
        lines += [line.removeprefix("$ ") for line in block.splitlines()]
    for line in lines:
        words = shlex.split(line, comments=True)
        if words and words[0] not in ELSEWHERE:
            yield words


class Pages(Case):
    def setUp(self):
        super().setUp()
        # what the demo leaves, untrained
        for folder, source in (("tiny_data", "."), ("tiny_sft/latest/actor", "base"),
                               ("tiny_reward/latest/reward", "scorer")):
            link = self.folder / "runs" / folder
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to((self.shared_folder / source).resolve())
        (self.folder / "examples").symlink_to(SOURCE / "examples")
        (self.folder / "build").symlink_to(BUILD)
        (self.folder / "own").symlink_to(BUILD / "examples")
        write_rows(self.folder / "gsm8k_train.jsonl",
                   [{"question": f"{n} + {n}?", "answer": f"#### {2 * n}"}
                    for n in range(64)])

    def run_all(self, page, least):
        ran = 0
        for words in commands_of(SOURCE / page):
            line = " ".join(words)
            words = [STAND_INS.get(word, word) for word in words]
            for begin, more in ALSO.items():
                words += more if line.startswith(begin) else []
            if (self.folder / words[0]).is_file():
                ran += 1
                with self.subTest(page=page, command=line):
                    done = subprocess.run(
                        words, cwd=self.folder, env=self.environment,
                        stdin=subprocess.DEVNULL, capture_output=True, text=True,
                        timeout=LIMIT_S)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreaterEqual(ran, least, f"few commands in {page}")

    def test_the_commands_of_the_readme_run(self):
        self.run_all("README.md", 8)

    def test_the_commands_of_custom_workflows_run(self):
        self.run_all("docs/custom_workflows.md", 3)

    @functools.cache
    def help_of(self, *words):
        return self.troupe(*words, "--help").stdout

    def test_pages_name_existing_commands_and_options(self):
        for page in sorted([*SOURCE.glob("*.md"), *SOURCE.glob("[a-z]*/*.md")]):
            text = page.read_text()
            for snippet in [*TICKED.findall(text), *INDENTED.findall(text)]:
                named = NAMED.match(snippet)
                if not named:
                    continue
                command, second, rest = named.groups()
                words = [command]
                if command in ("plan", "trace", "new"):
                    words += [second] if second else []
                with self.subTest(page=page.name, command=snippet):
                    known = self.help_of(*words)
                    for option in OPTION.findall(rest):
                        self.assertRegex(known, rf"(?<![\w-]){option}\b")


if __name__ == "__main__":
    unittest.main()
