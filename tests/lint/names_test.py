"""check_names.py on small trees: what it finds, and what it lets pass."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TABLE = 'parts.text = {of = "models", folders = ["io"]}\n'


def source(body, scope="troupe::net"):
    return f"namespace {scope} {{\nnamespace {{\n{body}\n}}\n}}\n"


class Names(unittest.TestCase):
    def found(self, files):
        """Lines of the lint on a tree of these files."""
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            for path, text in {"tests/lint/includes.toml": TABLE, **files}.items():
                (top / path).parent.mkdir(parents=True, exist_ok=True)
                (top / path).write_text(text)
            done = subprocess.run([sys.executable, "-B", HERE / "check_names.py", top],
                                  stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1 if done.stdout else 0)
        return done.stdout.splitlines()

    def of_two(self, one, other, path="net/base/b.cpp"):
        return self.found({"net/base/a.cpp": one, path: other})

    def test_a_planted_collision_is_found_with_both_places(self):
        planted = source("struct Found {\n  int at = 0;\n};")
        self.assertEqual(self.of_two(planted, "// first line\n" + planted),
                         ["net/base/a.cpp:3: type Found is in net/base/b.cpp:4 too,"
                          " of the same target"])

    def test_names_of_all_kinds_collide(self):
        for one, other in (
                ("constexpr int limit = 3;", "constexpr double limit = 4;"),
                ("int size_of(const int* of) {\n  return *of;\n}",
                 "int size_of(const int* from) {\n  return 2;\n}"),
                ("template <class T>\nint size(T of) {\n  return 1;\n}",
                 "template <class T>\nint size(T from) {\n  return 2;\n}"),
                ("using Ids = std::vector<int>;", "using Ids = std::set<int>;"),
                ("using std::swap;", "using boost::swap;"),
                ("namespace http = boost::http;", "namespace http = beast::http;"),
                ("const auto name = [](int i) { return i; };", "enum class name { a };"),
                ("#define SIZE 1", "#define SIZE 2"),
                ("TEST_F(Case, Name) {\n}", "TEST_F(Case, Name) {\n}")):
            with self.subTest(one):
                self.assertEqual(len(self.of_two(source(one), source(other))), 1)

    def test_static_functions_and_what_headers_declare_collide(self):
        mine = "namespace troupe::net {\nstatic int port(int of) {\n  return of;\n}\n}\n"
        self.assertEqual(len(self.of_two(mine, source("int port(int from);"))), 1)
        declared = "namespace troupe::net {\nint port(int of);\n}\n"
        self.assertEqual(len(self.of_two(mine, declared, "net/base/b.hpp")), 1)

    def test_what_compiles_together_passes(self):
        for one, other in (
                ("int size(int of) {\n  return of;\n}", "int size(long of) {\n  return 1;\n}"),
                ("using std::swap;", "using ::std::swap;"),
                ("using Ids = std::vector<int>;", "using Ids = std::vector<int>;"),
                ("struct Later;", "struct Later {};"),
                ("#define SIZE 1\n#undef SIZE", "#define SIZE 2"),
                ("// struct Found {};", "struct Found {};"),
                ("void Found::run() {\n}", "void run() {\n}")):
            with self.subTest(one):
                self.assertEqual(self.of_two(source(one), source(other)), [])

    def test_other_targets_and_namespaces_pass(self):
        planted = source("struct Found {};")
        elsewhere = source("struct Found {};", "troupe::net::internal")
        for path, text in (("actors/base/b.cpp", planted), ("net/base/b.cpp", elsewhere),
                           ("tests/net/base/b_test.cpp", planted)):
            with self.subTest(path):
                self.assertEqual(self.of_two(planted, text, path), [])
        parts = {"models/io/a.cpp": planted, "models/gpu/b.cpp": planted}
        self.assertEqual(self.found(parts), [])

    def test_tests_that_are_never_compiled_with_others_pass(self):
        planted = source("struct Found {};")
        apart = ("set_source_files_properties(net/base/b_test.cpp\n"
                 "  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)\n")
        files = {"tests/net/base/a_test.cpp": planted, "tests/net/base/b_test.cpp": planted}
        self.assertEqual(len(self.found(files)), 1)
        self.assertEqual(self.found({**files, "tests/CMakeLists.txt": apart}), [])


if __name__ == "__main__":
    unittest.main()
