"""Fails when clang-format would change a file."""
import shutil
import subprocess

from sources import cpp_files, finish, root

top = root()
if not shutil.which("clang-format"):
    finish(["clang-format is missing; run ./setup.sh"])
files = [str(file) for file in cpp_files(top)]
command = ["clang-format", "--dry-run", "--ferror-limit=1"]
checked = subprocess.run(command + files, capture_output=True, text=True)
finish([line for line in checked.stderr.splitlines()
        if "warning:" in line or "error:" in line])
