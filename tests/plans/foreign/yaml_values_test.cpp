// YAML of other systems as dotted keys.
#include "plans/foreign/yaml_values.hpp"

#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::plans;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace {

ForeignConfig read(const std::string& yaml) {
  auto config
    = yaml_values(parse_yaml(yaml, "c.yaml", RepeatedKeys::last_one_counts));
  resolve_references(config);
  return config;
}

std::string value_of(const ForeignConfig& config, const char* key) {
  const auto* value = config.find(key);
  return value ? value->value : "(none)";
}

} // namespace

TEST(YamlValues, HaveDottedKeysAndTheirLines) {
  const auto config = read("a:\n  b: 1\n  c: [x, y]\nd:\n- e: 2\n- f: 3\n");
  EXPECT_EQ(value_of(config, "a.b"), "1");
  EXPECT_EQ(value_of(config, "a.c"), "[x, y]");
  EXPECT_EQ(value_of(config, "d.1.f"), "3");
  EXPECT_EQ(config.find("a.b")->place.line, 2);
}

TEST(YamlValues, ReferencesAreFollowedThroughOthers) {
  const auto config
    = read("m: {len: 512, b: 4}\na: ${m.len}\nt: ${mul:${a}, ${m.b}}\n"
           "e: ${oc.env:NODES,2}\n");
  EXPECT_EQ(value_of(config, "a"), "512");
  EXPECT_EQ(value_of(config, "t"), "2048");
  EXPECT_EQ(value_of(config, "e"), "2");
  EXPECT_THAT(config.notes, IsEmpty());
}

TEST(YamlValues, AReferenceThatLeadsNowhereIsNotedAndACircleEnds) {
  const auto config = read("a: ${b}\nb: ${a}\nc: ${none}\n");
  EXPECT_EQ(value_of(config, "c"), "${none}");
  ASSERT_THAT(config.notes, SizeIs(1));
  EXPECT_THAT(config.notes[0].text, HasSubstr("none"));
  EXPECT_EQ(config.notes[0].place.line, 3);
}

TEST(YamlValues, OfARepeatedKeyTheLastOneCountsAndNullIsNone) {
  const auto config = read("a: 1\nb: null\na: 2\n");
  EXPECT_EQ(value_of(config, "a"), "2");
  EXPECT_EQ(config.find("b"), nullptr);
  EXPECT_THROW(parse_yaml("a: 1\na: 2\n", "ours.yaml"), ConfigError);
}
