"""The image of examples/container without an engine that builds one: what its
second stage has is all that the program loads."""
import os
import re
import subprocess
import unittest

from support import SOURCE, TROUPE, Case

FOLDER = SOURCE / "examples/container"


def packages_of_image():
    text = (FOLDER / "Containerfile").read_text().partition("debian:12-slim")[2]
    listed = re.search(r"--no-install-recommends \\\n(.*?)\n  &&", text, re.S)
    return set(listed.group(1).replace("\\", " ").split())


def package_of(library):
    """The Debian package of a file, which may be listed below /lib."""
    real = os.path.realpath(library)
    for name in (real, real.removeprefix("/usr")):
        done = subprocess.run(["dpkg-query", "-S", name], capture_output=True,
                              text=True)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    return None


class Container(Case):
    def libraries(self, program, **variables):
        """{name: file or ""} of what a program loads."""
        done = subprocess.run(["ldd", program], capture_output=True, text=True,
                              env={**self.environment, **variables}, check=True)
        return {name: "" if found == "not" else found for name, found in
                re.findall(r"^\s*(\S+) => (\S+)", done.stdout, re.M)}

    def test_the_image_has_every_library_of_the_program(self):
        image = self.folder / "image"
        subprocess.run([FOLDER / "collect.sh", TROUPE, image], check=True)
        # nothing of the build tree may be found, as in the image
        program = image / "bin/troupe"
        found = self.libraries(program, LD_LIBRARY_PATH=str(image / "lib"))
        own = {name for name, file in found.items()
               if file.startswith(str(image))}
        self.assertIn("libtorch_cpu.so", own)
        essential = {"libc6", "libgcc-s1"}
        for name in set(found) - own:
            with self.subTest(name):
                self.assertIn(package_of(found[name]),
                              packages_of_image() | essential)
        said = subprocess.run(
            [program, "--version"], check=True, capture_output=True, text=True,
            env={**self.environment, "LD_LIBRARY_PATH": str(image / "lib")})
        self.assertIn("troupe", said.stdout)


if __name__ == "__main__":
    unittest.main()
