#include "models/text/jinja/macro_arguments.hpp"

#include <algorithm>

namespace troupe::models::jinja {

namespace {

/// Named arguments that no parameter has taken yet.
class NamedLeft {
public:
  explicit NamedLeft(const Named& named) {
    for (const auto& one : named)
      left_.push_back(&one);
  }
  const Value* take(const std::string& name) {
    const auto found = std::ranges::find_if(
      left_, [&](const auto* one) { return one->first == name; });
    if (found == left_.end())
      return nullptr;
    const Value* value = &(*found)->second;
    left_.erase(found);
    return value;
  }
  Dict take_all() {
    Dict all;
    for (const auto* one : std::exchange(left_, {}))
      put(all, one->first, one->second);
    return all;
  }
  void need_none(const std::string& macro) const {
    if (!left_.empty())
      throw TemplateError("the macro '" + macro + "' takes no argument '"
                          + left_.front()->first + "'");
  }

private:
  std::vector<const Named::value_type*> left_;
};

bool mentions(const Statement& macro, const char* name) {
  return std::ranges::find(macro.mentioned, name) != macro.mentioned.end();
}

bool has_parameter(const Statement& macro, const char* name) {
  return std::ranges::any_of(macro.parameters, [&](const auto& parameter) {
    return parameter.first == name;
  });
}

} // namespace

MacroArguments divide_arguments(const Statement& macro,
                                const Arguments& given) {
  MacroArguments out;
  NamedLeft named(given.named);
  const std::string& name = macro.names.front();
  const std::size_t count = macro.parameters.size();
  for (std::size_t i = 0; i < count; ++i)
    out.parameters.push_back(i < given.positional.size()
                               ? &given.positional[i]
                               : named.take(macro.parameters[i].first));
  if (mentions(macro, "caller") && !has_parameter(macro, "caller")) {
    const Value* caller = named.take("caller");
    out.special.emplace_back("caller", caller != nullptr && !caller->none()
                                         ? *caller
                                         : Value(Undefined{"caller"}));
  }
  if (mentions(macro, "kwargs"))
    out.special.emplace_back("kwargs", named.take_all());
  named.need_none(name);
  List rest;
  if (given.positional.size() > count)
    rest.assign(given.positional.begin() + static_cast<std::ptrdiff_t>(count),
                given.positional.end());
  if (mentions(macro, "varargs"))
    out.special.emplace_back("varargs", Value::tuple(std::move(rest)));
  else if (!rest.empty())
    throw TemplateError("the macro '" + name + "' takes at most "
                        + std::to_string(count) + " arguments");
  return out;
}

} // namespace troupe::models::jinja
