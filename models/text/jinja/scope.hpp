// Names of one block of a template and of the blocks around it. Macros keep a
// hold on the scope they are defined in, which tells them when it has ended.
#pragma once

#include "models/text/jinja/steps.hpp"
#include "models/text/jinja/value.hpp"

#include <memory>
#include <string>
#include <utility>

namespace troupe::models::jinja {

struct Scope {
  /// The scope while it lives, then nullptr.
  using Hold = std::shared_ptr<const Scope*>;

  const Scope* outer = nullptr;
  Named names;
  mutable Hold own_hold; ///< made for the first that asks

  Scope(const Scope* outer_scope, Named start)
    : outer(outer_scope),
      names(std::move(start)) {}
  explicit Scope(const Scope* outer_scope) : outer(outer_scope) {}
  ~Scope() {
    if (own_hold)
      *own_hold = nullptr;
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  Hold hold() const {
    if (!own_hold)
      own_hold = std::make_shared<const Scope*>(this);
    return own_hold;
  }
  const Value* find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer)
      if (const Value* value = jinja::find(scope->names, name))
        return value;
    return nullptr;
  }
  void set(const std::string& name, Value value) {
    count_names(names.size());
    for (auto& [known, old] : names)
      if (known == name) {
        old = std::move(value);
        return;
      }
    names.emplace_back(name, std::move(value));
  }
};

} // namespace troupe::models::jinja
