"""What the tests of the Python package share: the package as the repository has it,
the program under test, and the helpers of tests/e2e."""
import os
import pathlib
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = SOURCE / "runtime/python"
sys.path[:0] = [str(PACKAGE), str(SOURCE / "tests/e2e")]

import support  # noqa: E402

os.environ["TROUPE_PROGRAM"] = str(support.TROUPE)
os.environ["TROUPE_PLAN_PROGRAM"] = str(support.BUILD / "troupe-plan")

import troupe  # noqa: E402


class Case(support.Case):
    """A test with its own folder, where runs begin."""

    def train(self, *overrides, **options):
        """A small SFT run named `sft`."""
        _, config, *words = map(str, self.sft(*overrides))
        return troupe.train(config, words, folder=self.folder,
                            environment=self.environment, **options)
