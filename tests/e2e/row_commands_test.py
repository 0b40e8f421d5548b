"""Rows of the commands: from pipes and into them, columns by other names, and
messages through the chat template."""
import json
import os
import shutil
import stat
import subprocess
import unittest

from support import Case, read_rows, write_rows

TEMPLATE = ("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n"
            "{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}")
QUESTIONS = [{"question": "The tea was", "answer": " warm."},
             {"question": "I felt", "answer": " kind and calm."}]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


class RowCommands(Case):
    def score(self, *arguments, text_in=None, model="data/base", code=0):
        return self.troupe("score", "--model", model, *arguments,
                           text_in=text_in, code=code)

    def chat_model(self):
        """The base model with a chat template."""
        folder = self.folder / "chat"
        shutil.copytree(self.folder / "data/base", folder)
        file = folder / "tokenizer_config.json"
        config = json.loads(file.read_text())
        file.write_text(json.dumps(config | {"chat_template": TEMPLATE}))
        return "chat"

    def test_score_reads_stdin_and_writes_stdout(self):
        rows = [{"text": "The tea was warm."}, {"text": "I felt calm."}]
        write_rows(self.folder / "in.jsonl", rows)
        self.score("--data", "in.jsonl", "--out", "out.jsonl")
        piped = self.score("--data", "/dev/stdin", "--out", "/dev/stdout",
                           text_in=lines(rows))
        self.assertEqual([json.loads(line) for line in
                          piped.stdout.splitlines()],
                         read_rows(self.folder / "out.jsonl"))
        self.assertEqual(sorted(file.name for file in self.folder.iterdir()),
                         ["data", "in.jsonl", "out.jsonl"])

    def through_pipes(self, *arguments):
        """Runs with in.jsonl through the pipe `rows`; what came out of the pipe
        `result`, and stdout."""
        for name in ("rows", "result"):
            os.mkfifo(self.folder / name)
        helpers = [subprocess.Popen(["sh", "-c", command], cwd=self.folder,
                                    stdout=subprocess.PIPE, text=True)
                   for command in ("cat in.jsonl > rows", "cat result")]
        done = self.troupe(*arguments)
        found = [helper.communicate(timeout=60)[0] for helper in helpers][1]
        for name in ("rows", "result"):
            self.assertTrue((self.folder / name).is_fifo())
            (self.folder / name).unlink()
        return [json.loads(line) for line in found.splitlines()], done.stdout

    def test_generate_and_eval_read_and_write_pipes(self):
        write_rows(self.folder / "in.jsonl", [{"prompt": "I felt"}] * 3)
        found, _ = self.through_pipes(
            "generate", "--model", "data/base", "--max-new-tokens", "4",
            "--prompts", "rows", "--out", "result")
        self.assertEqual([row["prompt"] for row in found], ["I felt"] * 3)
        found, printed = self.through_pipes(
            "eval", *self.ppo()[1:], "--json", "--data", "rows", "--out",
            "result")
        self.assertEqual(len(found), 3)
        self.assertEqual(json.loads(printed)["data"], "rows")

    def test_devices_stay_what_they_are(self):
        write_rows(self.folder / "in.jsonl", [{"text": "I felt calm."}])
        self.score("--data", "in.jsonl", "--out", "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        done = self.score("--data", "in.jsonl", "--out", "/dev/full", code=1)
        self.assertIn("cannot write /dev/full: No space left on device",
                      done.stderr)
        done = self.score("--data", "/dev/null", "--out", "out.jsonl", code=2)
        self.assertIn("/dev/null: expected at least one row", done.stderr)

    def test_a_bad_row_of_a_pipe_has_the_name_that_was_given(self):
        done = self.score("--data", "/dev/stdin", "--out", "out.jsonl",
                          text_in='{"text": "a"}\nno JSON\n', code=2)
        self.assertIn("error: /dev/stdin:2: ", done.stderr)

    def test_a_missing_column_leads_to_fields(self):
        write_rows(self.folder / "in.jsonl", QUESTIONS)
        rows = ["--data", "in.jsonl", "--out", "out.jsonl"]
        self.assertEqual(
            self.score(*rows, code=2).stderr,
            "error: in.jsonl:1: prompt: expected text, got nothing (the row has "
            "question, answer); try --fields prompt=COLUMN\n")
        self.assertIn("--fields: expected NAME=COLUMN",
                      self.score(*rows, "--fields", "question",
                                 code=2).stderr)
        done = self.troupe(*self.sft("data.train=in.jsonl", "--dry-run"),
                           code=2)
        self.assertIn("try data.fields.prompt=COLUMN", done.stderr)

    def test_fields_map_and_template_columns(self):
        write_rows(self.folder / "in.jsonl", QUESTIONS)
        write_rows(self.folder / "plain.jsonl",
                   [{"prompt": f"Q: {row['question']}",
                     "response": row["answer"]} for row in QUESTIONS])
        self.score("--data", "plain.jsonl", "--out", "want.jsonl")
        want = [row["logprobs"] for row in
                read_rows(self.folder / "want.jsonl")]
        for fields in (["--fields", 'prompt="Q: {question}"', "--fields",
                        "response=answer"],
                       ["--fields",
                        '{prompt: "Q: {question}", response: answer}']):
            self.score("--data", "in.jsonl", "--out", "out.jsonl", *fields)
            self.assertEqual([row["logprobs"] for row in
                              read_rows(self.folder / "out.jsonl")], want)
        self.troupe("generate", "--model", "data/base", "--prompts",
                    "in.jsonl", "--out", "out.jsonl", "--fields",
                    "prompt=question", "--max-new-tokens", "2")
        self.assertEqual(len(read_rows(self.folder / "out.jsonl")), 2)

    def test_chat_renders_prompts(self):
        model = self.chat_model()
        write_rows(self.folder / "in.jsonl", QUESTIONS)
        write_rows(self.folder / "plain.jsonl",
                   [{"prompt": f"[user] {row['question']}\n[assistant] ",
                     "response": row["answer"]} for row in QUESTIONS])
        self.score("--data", "plain.jsonl", "--out", "want.jsonl", model=model)
        self.score("--data", "in.jsonl", "--out", "out.jsonl", "--chat",
                   "--fields", "prompt=question", "--fields",
                   "response=answer", model=model)
        self.assertEqual(
            [row["ids"] for row in read_rows(self.folder / "out.jsonl")],
            [row["ids"] for row in read_rows(self.folder / "want.jsonl")])
        answers = []
        for rows, more in (("in.jsonl", ["--chat", "true", "--fields",
                                         "prompt=question"]),
                           ("plain.jsonl", [])):
            self.troupe("generate", "--model", model, "--prompts", rows,
                        "--out", "out.jsonl", "--greedy", "--max-new-tokens",
                        "4", *more)
            answers.append([row["response_ids"] for row in
                            read_rows(self.folder / "out.jsonl")])
        self.assertEqual(*answers)
        write_rows(self.folder / "messages.jsonl",
                   [{"messages": [{"role": "user", "content": "a"}]}])
        done = self.troupe("generate", "--model", model, "--prompts",
                           "messages.jsonl", "--out", "out.jsonl", "--chat",
                           "false", code=2)
        self.assertIn("messages", done.stderr)


if __name__ == "__main__":
    unittest.main()
