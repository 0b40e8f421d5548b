// Blocks of templates with bodies: call, filter, with (what they print is in
// GoldenTemplates).
#include "config/base/error.hpp"
#include "models/text/chat_template.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace troupe::models {
namespace {

using ::testing::HasSubstr;

std::string render_blocks(const std::string& source) {
  try {
    return ChatTemplate(source, {}, "t")
      .render(nlohmann::ordered_json::array(), false);
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(TemplateBlocks, ACallerThatIsKeptLivesAsLongAsItsBlock) {
  const std::string keep
    = "{% set ns = namespace() %}"
      "{% macro f() %}{% set ns.kept = caller %}{% endmacro %}";
  EXPECT_EQ(render_blocks(keep
                          + "{% set x = 1 %}{% call f() %}{{ x }}{% endcall %}"
                            "{% set x = 2 %}{{ ns.kept() }}"),
            "2");
  EXPECT_THAT(render_blocks(keep
                            + "{% for i in [1] %}{% call f() %}{{ i }}"
                              "{% endcall %}{% endfor %}{{ ns.kept() }}"),
              HasSubstr("'caller' called after the block it is defined in"));
  EXPECT_THAT(render_blocks("{% set ns = namespace() %}{% with a = 1 %}"
                            "{% macro f() %}{{ a }}{% endmacro %}"
                            "{% set ns.f = f %}{% endwith %}{{ ns.f() }}"),
              HasSubstr("'f' called after the block it is defined in"));
}

TEST(TemplateBlocks, CallersThatCallEachOtherEndWithAnError) {
  EXPECT_THAT(render_blocks("{% macro f() %}{% call f() %}{{ caller }}"
                            "{% endcall %}{% endmacro %}{{ f() }}"),
              HasSubstr("too deeply"));
  std::string nested;
  for (int i = 0; i < 100; ++i)
    nested += "{% filter upper %}{% with %}";
  EXPECT_THAT(render_blocks(nested), HasSubstr("nested too deeply"));
}

TEST(TemplateBlocks, RepeatedLongTextsInBlocksEndWithAnError) {
  EXPECT_THAT(render_blocks("{% for i in range(99999) %}{% filter upper %}"
                            "{{ 'a' * 3000000 }}{% endfilter %}{% endfor %}"),
              ::testing::AnyOf(HasSubstr("64 MiB"), HasSubstr("not end")));
}

} // namespace
} // namespace troupe::models
