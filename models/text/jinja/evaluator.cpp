#include "models/text/jinja/evaluator.hpp"

#include "models/text/jinja/builtins.hpp"
#include "models/text/jinja/steps.hpp"
#include "models/text/jinja/text.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe::models::jinja {

namespace {

constexpr int evaluator_call_limit = 60;

enum class Flow : std::uint8_t { on, leave, next };

/// Names of one block, and its enclosing blocks.
struct Scope {
  const Scope* outer = nullptr;
  Named names;

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

class Evaluator {
public:
  Rendered run(const Body& body, Named variables) {
    const StepLimit limit;
    Scope globals{nullptr, std::move(variables)};
    top_ = &globals;
    execute(body, globals);
    return std::move(out_);
  }

private:
  // -- statements -------------------------------------------------------------

  Flow execute(const Body& body, Scope& scope) {
    for (const Statement& statement : body) {
      const Flow flow = guarded(statement, scope);
      if (flow != Flow::on)
        return flow;
    }
    return Flow::on;
  }

  /// Executes a statement; errors inside it get its line.
  Flow guarded(const Statement& statement, Scope& scope) {
    try {
      count_steps();
      return execute_one(statement, scope);
    } catch (const TemplateError& error) {
      if (error.line > 0)
        throw;
      throw TemplateError(error.what(), statement.line);
    }
  }

  void print(const std::string& text) {
    append(out_.text, text);
  }

  Flow execute_one(const Statement& s, Scope& scope) {
    switch (s.kind) {
    case StatementKind::text:
      print(s.text);
      return Flow::on;
    case StatementKind::print:
      print(eval(*s.value, scope).print());
      return Flow::on;
    case StatementKind::condition:
      return condition(s, scope);
    case StatementKind::loop:
      loop(s, scope);
      return Flow::on;
    case StatementKind::set:
      set(s, scope);
      return Flow::on;
    case StatementKind::capture:
      scope.set(s.names[0], captured(s.body, scope));
      return Flow::on;
    case StatementKind::macro:
      scope.set(s.names[0], macro(s));
      return Flow::on;
    case StatementKind::generation:
      return generation(s, scope);
    case StatementKind::leave:
      return Flow::leave;
    case StatementKind::next:
      return Flow::next;
    }
    return Flow::on;
  }

  Flow condition(const Statement& s, Scope& scope) {
    for (const Branch& branch : s.branches)
      if (!branch.condition || eval(*branch.condition, scope).truth())
        return execute(branch.body, scope);
    return Flow::on;
  }

  Flow generation(const Statement& s, Scope& scope) {
    const std::size_t begin = out_.text.size();
    const Flow flow = execute(s.body, scope);
    if (!capturing_)
      out_.generated.emplace_back(begin, out_.text.size());
    return flow;
  }

  std::string captured(const Body& body, const Scope& scope) {
    std::string outside = std::exchange(out_.text, "");
    const bool nested = std::exchange(capturing_, true);
    Scope inner{&scope, {}};
    execute(body, inner);
    capturing_ = nested;
    return std::exchange(out_.text, std::move(outside));
  }

  void set(const Statement& s, Scope& scope) {
    Value value = eval(*s.value, scope);
    if (s.target.empty())
      return bind(s.names, std::move(value), scope);
    const Value* target = scope.find(s.target);
    if (target == nullptr)
      throw TemplateError("'" + s.target + "' is undefined");
    target->assign(s.text, std::move(value));
  }

  /// Binds one name to the value, or several to its entries.
  static void bind(const std::vector<std::string>& names, Value value,
                   Scope& scope) {
    if (names.size() == 1)
      return scope.set(names[0], std::move(value));
    const List entries = iterate(value);
    if (entries.size() != names.size())
      throw TemplateError("expected " + std::to_string(names.size())
                          + " values to unpack, got "
                          + std::to_string(entries.size()));
    for (std::size_t i = 0; i < names.size(); ++i)
      scope.set(names[i], entries[i]);
  }

  void loop(const Statement& s, Scope& scope) {
    List entries = iterate(eval(*s.value, scope));
    if (s.filter)
      std::erase_if(entries, [&](const Value& entry) {
        Scope inner{&scope, {}};
        bind(s.names, entry, inner);
        return !eval(*s.filter, inner).truth();
      });
    if (entries.empty()) {
      Scope inner{&scope, {}};
      execute(s.otherwise, inner);
      return;
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      count_steps();
      Scope inner{&scope, {}};
      inner.set("loop", loop_value(entries, i));
      bind(s.names, entries[i], inner);
      if (execute(s.body, inner) == Flow::leave)
        break;
    }
  }

  static Value loop_value(const List& entries, std::size_t i) {
    const auto size = static_cast<std::int64_t>(entries.size());
    const auto at = static_cast<std::int64_t>(i);
    const bool last = at + 1 == size;
    return Dict{
      {"index", at + 1},
      {"index0", at},
      {"first", at == 0},
      {"last", last},
      {"length", size},
      {"revindex", size - at},
      {"revindex0", size - at - 1},
      {"previtem", at == 0 ? Value(Undefined{"previtem"}) : entries[i - 1]},
      {"nextitem", last ? Value(Undefined{"nextitem"}) : entries[i + 1]}};
  }

  Value macro(const Statement& s) {
    const Scope* globals = top_; // a macro sees the template's names
    return Function([this, &s, globals](const Arguments& arguments) {
      if (++calls_ > evaluator_call_limit)
        throw TemplateError("macros call each other too deeply");
      Scope inner{globals, {}};
      for (std::size_t i = 0; i < s.parameters.size(); ++i) {
        const auto& [name, absent] = s.parameters[i];
        const Value* given = arguments.find(i, name);
        inner.set(name, given != nullptr ? *given
                        : absent         ? eval(*absent, inner)
                                         : Value(Undefined{name}));
      }
      std::string text = captured(s.body, inner);
      --calls_;
      return Value(std::move(text));
    });
  }

  // -- expressions ------------------------------------------------------------

  /// Evaluates an expression. Texts are copied: long ones count as many steps,
  /// which also bounds the memory of a template.
  Value eval(const Expression& e, const Scope& scope) {
    Value value = eval_one(e, scope);
    count_copy(value);
    return value;
  }

  Value eval_one(const Expression& e, const Scope& scope) {
    switch (e.kind) {
    case ExpressionKind::literal:
      return e.value;
    case ExpressionKind::name: {
      const Value* value = scope.find(e.text);
      return value == nullptr ? Value(Undefined{e.text}) : *value;
    }
    case ExpressionKind::list:
      return list(e, scope);
    case ExpressionKind::tuple:
      return Value::tuple(list(e, scope));
    case ExpressionKind::dict:
      return dict(e, scope);
    case ExpressionKind::attribute:
      return attribute(eval(*e.parts[0], scope), e.text);
    case ExpressionKind::item:
      return item(eval(*e.parts[0], scope), eval(*e.parts[1], scope));
    case ExpressionKind::slice:
      return slice(eval(*e.parts[0], scope), optional(e.parts[1], scope),
                   optional(e.parts[2], scope), optional(e.parts[3], scope));
    case ExpressionKind::call:
      return call(e, scope);
    case ExpressionKind::filter:
      return apply_filter(e.text, eval(*e.parts[0], scope),
                          arguments(e, scope));
    case ExpressionKind::test:
      return apply_test(e.text, eval(*e.parts[0], scope), arguments(e, scope));
    case ExpressionKind::condition:
      return eval(*e.parts[1], scope).truth() ? eval(*e.parts[0], scope)
                                              : optional(e.parts[2], scope);
    default:
      return eval_operator(e, scope);
    }
  }

  Value eval_operator(const Expression& e, const Scope& scope) {
    Value first = eval(*e.parts[0], scope);
    switch (e.kind) {
    case ExpressionKind::negate:
      return first.as<double>() != nullptr
               ? Value(-first.real())
               : arithmetic("-", std::int64_t{0}, first);
    case ExpressionKind::plus:
      return arithmetic("+", std::int64_t{0}, first);
    case ExpressionKind::invert:
      return !first.truth();
    case ExpressionKind::both:
      return first.truth() ? eval(*e.parts[1], scope) : first;
    case ExpressionKind::either:
      return first.truth() ? first : eval(*e.parts[1], scope);
    case ExpressionKind::compare:
      return compare(e, std::move(first), scope);
    case ExpressionKind::binary:
      return arithmetic(e.text, first, eval(*e.parts[1], scope));
    default:
      return {};
    }
  }

  Value compare(const Expression& e, Value left, const Scope& scope) {
    for (std::size_t i = 0; i < e.ops.size(); ++i) {
      Value right = eval(*e.parts[i + 1], scope);
      if (!holds(e.ops[i], left, right))
        return false;
      left = std::move(right);
    }
    return true;
  }
  static bool holds(const std::string& op, const Value& a, const Value& b) {
    if (op == "==")
      return equal(a, b);
    if (op == "!=")
      return !equal(a, b);
    if (op == "in")
      return contains(a, b);
    if (op == "not in")
      return !contains(a, b);
    if (op == "<")
      return less(a, b);
    if (op == ">")
      return less(b, a);
    return op == "<=" ? !less(b, a) : !less(a, b);
  }

  Value optional(const ExpressionPtr& e, const Scope& scope) {
    return e ? eval(*e, scope) : Value();
  }

  List list(const Expression& e, const Scope& scope) {
    ListInMaking entries;
    for (const ExpressionPtr& part : e.parts)
      entries.add(eval(*part, scope));
    return std::move(entries).take();
  }

  Value dict(const Expression& e, const Scope& scope) {
    Dict members;
    for (std::size_t i = 0; i < e.parts.size(); i += 2)
      put(members, Key::need(eval(*e.parts[i], scope)),
          eval(*e.parts[i + 1], scope));
    return members;
  }

  Arguments arguments(const Expression& e, const Scope& scope) {
    Arguments given;
    for (const ExpressionPtr& argument : e.arguments)
      given.positional.push_back(eval(*argument, scope));
    for (const auto& [name, argument] : e.named)
      given.named.emplace_back(name, eval(*argument, scope));
    return given;
  }

  Value call(const Expression& e, const Scope& scope) {
    const Value callee = eval(*e.parts[0], scope);
    const Function* function = callee.function();
    if (function == nullptr) {
      const auto* missing = callee.as<Undefined>();
      throw TemplateError(missing != nullptr
                            ? "'" + missing->name + "' is undefined"
                            : std::string(callee.kind()) + " cannot be called");
    }
    return (*function)(arguments(e, scope));
  }

  Rendered out_;
  const Scope* top_ = nullptr;
  int calls_ = 0;
  bool capturing_ = false;
};

} // namespace

Rendered render(const Body& body, Named variables) {
  return Evaluator().run(body, std::move(variables));
}

} // namespace troupe::models::jinja
