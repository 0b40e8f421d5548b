#include "models/text/jinja/mentions.hpp"

#include <algorithm>

namespace troupe::models::jinja {

namespace {

class Mentions {
public:
  explicit Mentions(std::string_view name) : name_(name) {}

  bool in(const Body& body) const {
    return std::ranges::any_of(body, [&](const auto& s) { return in(s); });
  }

private:
  bool in(const Statement& s) const {
    return in(s.value) || in(s.filter) || in(s.body) || in(s.otherwise)
           || in_named(s.parameters)
           || std::ranges::any_of(s.branches, [&](const Branch& branch) {
                return in(branch.condition) || in(branch.body);
              });
  }
  bool in(const ExpressionPtr& e) const {
    return e
           && ((e->kind == ExpressionKind::name && e->text == name_)
               || in(e->parts) || in(e->arguments) || in_named(e->named));
  }
  bool in(const std::vector<ExpressionPtr>& all) const {
    return std::ranges::any_of(all, [&](const auto& e) { return in(e); });
  }
  bool in_named(
    const std::vector<std::pair<std::string, ExpressionPtr>>& all) const {
    return std::ranges::any_of(all,
                               [&](const auto& one) { return in(one.second); });
  }

  std::string_view name_;
};

} // namespace

bool mentions(const Body& body, std::string_view name) {
  return Mentions(name).in(body);
}

} // namespace troupe::models::jinja
