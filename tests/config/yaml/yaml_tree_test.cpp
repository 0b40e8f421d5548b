#include "config/yaml/yaml_tree.hpp"

#include <gmock/gmock.h>

namespace {

using troupe::ConfigError;
using troupe::parse_yaml;
using troupe::YamlNode;

template <class F>
std::string yaml_error(F&& work) {
  try {
    work();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string parse_error(const std::string& text) {
  return yaml_error([&] { parse_yaml(text, "a.yaml"); });
}

TEST(YamlTree, KeepsOrderTextAndPlace) {
  const auto tree
    = parse_yaml("b: 1.0e-5\na:\n  z: 'x'\n  y: [1, 2]\n", "a.yaml");
  ASSERT_EQ(tree.entries.size(), 2u);
  EXPECT_EQ(tree.entries[0].first, "b");
  EXPECT_EQ(tree.entries[0].second.text, "1.0e-5");
  EXPECT_EQ(tree.find_path("a.z")->place.file, "a.yaml");
  EXPECT_EQ(tree.find_path("a.z")->place.line, 3);
  EXPECT_TRUE(tree.find_path("a.z")->quoted);
  EXPECT_FALSE(tree.find("b")->quoted);
  EXPECT_EQ(tree.find_path("a.y")->items[1].text, "2");
  EXPECT_EQ(tree.find_path("a.q"), nullptr);
}

TEST(YamlTree, ATabInAnIndentIsReported) {
  EXPECT_EQ(parse_error("run:\n\tsteps: 5\n"),
            "a.yaml:2: expected an indent of spaces, got a tab; try two spaces "
            "in its place");
  EXPECT_EQ(parse_error("run:\n  \t steps: 5\n  seed: 1\n").substr(0, 37),
            "a.yaml:2: expected an indent of space");
  // another mistake above it is reported first
  EXPECT_NE(parse_error("a: [1\nb: 2\n").find("expected YAML"), -1UL);
  // a tab elsewhere is text
  EXPECT_EQ(parse_error("a: \"x\ty\"\n"), "no error");
}

TEST(YamlTree, EmptyFileIsAnEmptyMapping) {
  EXPECT_TRUE(parse_yaml("", "a.yaml").is_mapping());
  EXPECT_TRUE(parse_yaml("# nothing\n", "a.yaml").is_mapping());
}

TEST(YamlTree, NullIsNotTheTextNull) {
  const auto tree = parse_yaml("a:\nb: ~\nc: null\nd: 'null'\ne: ''\n", "f");
  for (const char* key : {"a", "b", "c"})
    EXPECT_TRUE(tree.find(key)->is_null()) << key;
  for (const char* key : {"d", "e"})
    EXPECT_TRUE(tree.find(key)->is_scalar()) << key;
}

TEST(YamlTree, MistakesNameFileAndLine) {
  EXPECT_EQ(parse_error("a: 1\nb: 2\na: 3\n"),
            "a.yaml:3: a: expected each key once, got it again (first on line "
            "1); try deleting one of the two");
  EXPECT_THAT(parse_error("run:\n  steps: 1\n  steps: 2\n"),
              ::testing::StartsWith("a.yaml:3: run.steps: expected each key "
                                    "once, "));
  YamlNode book;
  book.kind = YamlNode::Kind::scalar;
  book.text = std::string(5000, 'x');
  EXPECT_EQ(describe(book), "'" + std::string(200, 'x') + "'...");
  EXPECT_THAT(
    parse_error("a: 1\nb: [1, 2\n"),
    ::testing::StartsWith("a.yaml:3: expected YAML, got something else ("));
  EXPECT_THAT(parse_error("a:\n\t b: 1\n"),
              ::testing::StartsWith("a.yaml:2: expected an indent of spaces"));
  EXPECT_EQ(parse_error("a: 1\n---\nb: 2\n"),
            "a.yaml:2: expected one YAML document, got a second; try removing "
            "'---'");
  EXPECT_EQ(parse_error("[1]: 2\n"),
            "a.yaml:1: expected a name before ':', got a list or a mapping; "
            "try quotes");
  EXPECT_THAT(parse_error("a: *b\n"), ::testing::StartsWith("a.yaml:1: "));
}

TEST(YamlTree, AliasesThatBlowUpAreRefused) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const auto last = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k)
      text += last + (k < 9 ? ", " : "]\n");
  }
  EXPECT_THAT(parse_error(text), ::testing::HasSubstr("try fewer aliases"));
}

TEST(YamlTree, ARecursiveAliasIsRefused) {
  for (const char* text : {"a: &a [x, *a]\n", "a: &a {b: *a}\n"})
    EXPECT_EQ(parse_error(text),
              "a.yaml:1: expected at most 100 values in each other, got more; "
              "try fewer aliases, none of what it is in");
}

TEST(YamlTree, MergedMappingsFillInMissingKeys) {
  const auto tree = parse_yaml("one: &one {a: 1, b: 1}\n"
                               "two: &two {b: 2, c: 2}\n"
                               "x: {<<: *one, a: 3}\n"
                               "y: {<<: [*one, *two]}\n"
                               "z: {'<<': 4}\n",
                               "f");
  EXPECT_EQ(print_yaml_flow(*tree.find("x")), "{a: 3, b: 1}");
  EXPECT_EQ(print_yaml_flow(*tree.find("y")), "{a: 1, b: 1, c: 2}");
  EXPECT_EQ(tree.find_path("z.<<")->text, "4");
  EXPECT_EQ(parse_error("a: {<<: 1}\n"),
            "a.yaml:1: a.<<: expected a mapping or a list of mappings, got "
            "'1'");
}

TEST(YamlTree, EndlessEmptyDocumentsAreRefused) { // found by fuzzing
  EXPECT_THAT(parse_error(" : \n,"), ::testing::StartsWith("a.yaml:"));
}

TEST(YamlTree, DeepNestingIsRefused) {
  const std::string text(100'000, '[');
  EXPECT_THAT(parse_error("a: " + text), ::testing::StartsWith("a.yaml:"));
}

TEST(YamlTree, UnreadableFileIsNamed) {
  EXPECT_EQ(yaml_error([] { troupe::read_yaml("/nonexistent.yaml"); }),
            "/nonexistent.yaml: expected a readable YAML file, got none; try "
            "examples/tiny/ppo.yaml");
  EXPECT_EQ(yaml_error([] { troupe::read_yaml("/tmp"); }),
            "/tmp: expected a readable YAML file, got none; try "
            "examples/tiny/ppo.yaml");
}

TEST(YamlTree, MergeGoesKeyByKeyAndNullRemoves) {
  auto base = parse_yaml("a: {x: 1, y: 2}\nb: [1, 2]\nc: 3\n", "base");
  merge_yaml(base, parse_yaml("a: {y: 5, z: 6}\nb: [9]\nc: null\n", "over"));
  EXPECT_EQ(print_yaml(base), "a: {x: 1, y: 5, z: 6}\nb: [9]\n");
  EXPECT_EQ(base.find_path("a.x")->place.file, "base");
  EXPECT_EQ(base.find_path("a.y")->place.file, "over");
}

TEST(YamlTree, PrintedTreesParseBack) {
  const std::string text = "a: \"it's: \\\"odd\\\"\"\n"
                           "b: -5\n"
                           "c: \"- x\"\n"
                           "d: \"null\"\n"
                           "e: \"\"\n"
                           "f: C:/x\n"
                           "g: \"line\\nbreak\"\n"
                           "h: []\n"
                           "i: {}\n"
                           "j:\n"
                           "  k: {l: [0.9, 0.95], m: x}\n"
                           "  n: \"#1\"\n"
                           "  long: [aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\n";
  const auto tree = parse_yaml(text, "a.yaml");
  EXPECT_EQ(print_yaml(tree), text);
  EXPECT_EQ(print_yaml(parse_yaml(print_yaml(tree), "b")), text);
}

TEST(YamlTree, FlowFormIsOneLine) {
  const auto tree = parse_yaml("a: [1, {b: x}]\nc:\n  d: '~'\n", "a.yaml");
  EXPECT_EQ(print_yaml_flow(tree), "{a: [1, {b: x}], c: {d: \"~\"}}");
}

TEST(YamlTree, ScalarsParseWithRangeAndHint) {
  const auto tree = parse_yaml("i: 64\nr: 64.0\nt: ten\nq: '5'\nb: yes\n"
                               "n: .inf\nl: [1]\n",
                               "a.yaml");
  EXPECT_EQ(yaml_integer(*tree.find("i"), "i", 0, 100), 64);
  EXPECT_EQ(yaml_error([&] { yaml_integer(*tree.find("r"), "r", 0, 100); }),
            "a.yaml:2: r: expected a whole number from 0 to 100, got '64.0'; "
            "try 64");
  EXPECT_EQ(yaml_error([&] { yaml_integer(*tree.find("i"), "i", 0, 9); }),
            "a.yaml:1: i: expected a whole number from 0 to 9, got '64'; try "
            "9");
  EXPECT_EQ(yaml_error([&] { yaml_number(*tree.find("t"), "t"); }),
            "a.yaml:3: t: expected a number, got 'ten'");
  EXPECT_EQ(yaml_error([&] { yaml_number(*tree.find("q"), "q"); }),
            "a.yaml:4: q: expected a number, got '5'");
  EXPECT_TRUE(yaml_bool(*tree.find("b"), "b"));
  EXPECT_EQ(yaml_error([&] { yaml_number(*tree.find("n"), "n"); }),
            "a.yaml:6: n: expected a number, got '.inf'");
  EXPECT_EQ(yaml_error([&] { yaml_text(*tree.find("l"), "l"); }),
            "a.yaml:7: l: expected text, got a list");
}

} // namespace
