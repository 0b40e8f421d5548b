"""Fails when tsc finds an error in the page's modules, whose types are in JSDoc.
Says that it was skipped where there is no tsc (./setup.sh --page)."""
import shutil
import subprocess

from sources import finish, root

top = root()
if not shutil.which("tsc"):
    print("skipped: no tsc on this machine")
    finish([])
command = ["tsc", "--pretty", "false", "--project", "runtime/page/web"]
checked = subprocess.run(command, cwd=top, capture_output=True, text=True)
errors = (checked.stdout + checked.stderr).splitlines()
finish(errors if errors or not checked.returncode
       else [f"tsc failed with code {checked.returncode}"])
