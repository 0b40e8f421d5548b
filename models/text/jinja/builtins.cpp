// Tests and global functions of templates; filters are in filters.cpp.
#include "models/text/jinja/builtins.hpp"

#include "models/text/jinja/steps.hpp"
#include "models/text/jinja/text.hpp"

#include <array>
#include <ctime>
#include <map>

namespace troupe::models::jinja {

namespace {

using Test = bool (*)(const Value& value, const Arguments& arguments);

constexpr std::int64_t range_limit = 100'000; // as Jinja's sandbox

bool is_whole(const Value& v) {
  return v.as<std::int64_t>() != nullptr;
}
const Value& other(const Arguments& arguments) {
  return arguments.need(0, "other", "a comparing test");
}
std::int64_t remainder_of(const Value& value, std::int64_t by) {
  return arithmetic("%", value, by).integer("a test");
}

bool test_equal(const Value& v, const Arguments& a) {
  return equal(v, other(a));
}
bool test_different(const Value& v, const Arguments& a) {
  return !equal(v, other(a));
}
bool test_less(const Value& v, const Arguments& a) {
  return less(v, other(a));
}
bool test_greater(const Value& v, const Arguments& a) {
  return less(other(a), v);
}
bool test_at_most(const Value& v, const Arguments& a) {
  return !less(other(a), v);
}
bool test_at_least(const Value& v, const Arguments& a) {
  return !less(v, other(a));
}

std::map<std::string, Test> comparing_tests() {
  return {
    {"!=", test_different},
    {"==", test_equal},
    {"eq", test_equal},
    {"equalto", test_equal},
    {"ge", test_at_least},
    {"greaterthan", test_greater},
    {"gt", test_greater},
    {"le", test_at_most},
    {"lessthan", test_less},
    {"lt", test_less},
    {"ne", test_different},
    {"divisibleby",
     [](const Value& v, const Arguments& a) {
       return remainder_of(v, other(a).integer("divisibleby")) == 0;
     }},
    {"even",
     [](const Value& v, const Arguments&) { return remainder_of(v, 2) == 0; }},
    {"odd",
     [](const Value& v, const Arguments&) { return remainder_of(v, 2) == 1; }},
    {"in",
     [](const Value& v, const Arguments& a) { return contains(v, other(a)); }},
  };
}

bool test_iterable(const Value& v, const Arguments&) {
  return v.text() != nullptr || v.list() != nullptr || v.dict() != nullptr
         || v.undefined();
}

std::map<std::string, Test> kind_tests() {
  return {
    {"iterable", test_iterable},
    {"sequence", test_iterable},
    {"boolean",
     [](const Value& v, const Arguments&) { return v.as<bool>() != nullptr; }},
    {"callable",
     [](const Value& v, const Arguments&) { return v.function() != nullptr; }},
    {"defined",
     [](const Value& v, const Arguments&) { return !v.undefined(); }},
    {"false",
     [](const Value& v, const Arguments&) {
       return v.as<bool>() != nullptr && !v.truth();
     }},
    {"float", [](const Value& v,
                 const Arguments&) { return v.as<double>() != nullptr; }},
    {"integer", [](const Value& v, const Arguments&) { return is_whole(v); }},
    {"lower",
     [](const Value& v, const Arguments&) {
       return v.print() == lower(v.print()) && v.print() != upper(v.print());
     }},
    {"mapping",
     [](const Value& v, const Arguments&) { return v.dict() != nullptr; }},
    {"none", [](const Value& v, const Arguments&) { return v.none(); }},
    {"number", [](const Value& v, const Arguments&) { return v.is_number(); }},
    {"string",
     [](const Value& v, const Arguments&) { return v.text() != nullptr; }},
    {"true",
     [](const Value& v, const Arguments&) {
       return v.as<bool>() != nullptr && v.truth();
     }},
    {"undefined",
     [](const Value& v, const Arguments&) { return v.undefined(); }},
    {"upper",
     [](const Value& v, const Arguments&) {
       return v.print() == upper(v.print()) && v.print() != lower(v.print());
     }},
  };
}

const std::map<std::string, Test>& all_tests() {
  static const std::map<std::string, Test> tests = [] {
    auto all = comparing_tests();
    all.merge(kind_tests());
    return all;
  }();
  return tests;
}

Value global_range(const Arguments& arguments) {
  std::array<std::int64_t, 3> bounds{0, 0, 1};
  const auto& given = arguments.positional;
  if (given.empty() || given.size() > 3)
    throw TemplateError("range needs one to three numbers");
  for (std::size_t i = 0; i < given.size(); ++i)
    bounds[i] = given[i].integer("range");
  if (given.size() == 1)
    std::swap(bounds[0], bounds[1]);
  const auto [start, stop, step] = bounds;
  if (step == 0)
    throw TemplateError("range needs a step other than 0");
  List out;
  __int128 at = start;
  for (; step > 0 ? at < stop : at > stop; at += step) {
    if (static_cast<std::int64_t>(out.size()) >= range_limit)
      throw TemplateError("range has more than 100000 numbers");
    out.emplace_back(static_cast<std::int64_t>(at));
  }
  return out;
}

/// Implements namespace(...) and dict(...): an initial mapping, then members.
Dict members_of(const Arguments& arguments) {
  Dict members;
  if (!arguments.positional.empty()) {
    const Dict* start = arguments.positional[0].dict();
    if (start == nullptr)
      throw TemplateError("namespace and dict start from a mapping");
    members = *start;
  }
  for (const auto& [name, value] : arguments.named) {
    put(members, name, value);
  }
  return members;
}

std::string formatted_time(std::int64_t now, const std::string& format) {
  const auto seconds = static_cast<std::time_t>(now);
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 512> buffer{};
  const std::size_t size
    = std::strftime(buffer.data(), buffer.size(), format.c_str(), &local);
  return {buffer.data(), size};
}

} // namespace

bool has_test(const std::string& name) {
  return all_tests().contains(name);
}

bool apply_test(const std::string& name, const Value& value,
                const Arguments& arguments) {
  arguments.count();
  const auto test = all_tests().find(name);
  if (test == all_tests().end())
    throw TemplateError("unsupported construct: the test '" + name + "'");
  return test->second(value, arguments);
}

Named global_functions(std::int64_t now) {
  return {{"range", Function(global_range)},
          {"namespace", Function([](const Arguments& arguments) {
             return Value::name_space(members_of(arguments));
           })},
          {"dict", Function([](const Arguments& arguments) {
             return Value(members_of(arguments));
           })},
          {"raise_exception", Function([](const Arguments& arguments) -> Value {
             throw TemplateError(
               "the template refuses these messages: "
               + arguments.need(0, "message", "raise_exception").print());
           })},
          {"strftime_now", Function([now](const Arguments& arguments) {
             return Value(
               formatted_time(now, arguments.need(0, "format", "strftime_now")
                                     .need_text("strftime_now")));
           })}};
}

} // namespace troupe::models::jinja
