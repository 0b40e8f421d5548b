#include "models/text/jinja/evaluator.hpp"

#include "models/text/jinja/builtins.hpp"
#include "models/text/jinja/macro_arguments.hpp"
#include "models/text/jinja/scope.hpp"
#include "models/text/jinja/steps.hpp"
#include "models/text/jinja/text.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe::models::jinja {

namespace {

constexpr int evaluator_call_limit = 60;

enum class Flow : std::uint8_t { on, leave, next };

class Evaluator;

/// The function that a macro is.
struct MacroCall {
  Evaluator* evaluator;
  const Statement* macro;
  Scope::Hold scope; ///< that it is defined in

  Value operator()(const Arguments& arguments) const;
};

class Evaluator {
public:
  Rendered run(const Body& body, Named variables) {
    const StepLimit limit;
    Scope globals{nullptr, std::move(variables)};
    execute(body, globals);
    return std::move(out_);
  }

  Value call_macro(const Statement& s, const Scope* outer,
                   const Arguments& given) {
    if (outer == nullptr)
      throw TemplateError("unsupported construct: the macro '" + s.names[0]
                          + "' called after the block it is defined in");
    if (++calls_ > evaluator_call_limit)
      throw TemplateError("macros call each other too deeply");
    MacroArguments divided = divide_arguments(s, given);
    Scope inner{outer, std::move(divided.special)};
    for (std::size_t i = 0; i < s.parameters.size(); ++i) {
      const auto& [name, absent] = s.parameters[i];
      const Value* value = divided.parameters[i];
      inner.set(name, value != nullptr ? *value
                      : absent         ? eval(*absent, inner)
                                       : Value(Undefined{name}));
    }
    std::string text = captured(s.body, inner).first;
    --calls_;
    return text;
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
    case StatementKind::filter:
      return capture(s, scope);
    case StatementKind::macro:
      scope.set(s.names[0], macro(s, scope));
      return Flow::on;
    case StatementKind::call:
      call_with_body(s, scope);
      return Flow::on;
    case StatementKind::with:
      return with(s, scope);
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

  /// Returns what a body prints, and how it ends.
  std::pair<std::string, Flow> captured(const Body& body, Scope& inner) {
    std::string outside = std::exchange(out_.text, "");
    const bool nested = std::exchange(capturing_, true);
    const Flow flow = execute(body, inner);
    capturing_ = nested;
    return {std::exchange(out_.text, std::move(outside)), flow};
  }

  /// Assigns or prints what a block prints, through its filters.
  Flow capture(const Statement& s, Scope& scope) {
    Scope inner(&scope);
    auto [text, flow] = captured(s.body, inner);
    if (flow != Flow::on)
      return flow; // as in Jinja, what was printed is lost
    Value value = std::move(text);
    if (s.filter) {
      Value outside = std::exchange(printed_, std::move(value));
      value = eval(*s.filter, inner);
      printed_ = std::move(outside);
    }
    if (s.kind == StatementKind::filter)
      print(value.need_text("a filter block"));
    else
      assign(s, std::move(value), scope);
    return Flow::on;
  }

  Flow with(const Statement& s, Scope& scope) {
    Scope inner(&scope);
    for (const Statement& one : s.otherwise)
      bind(one.names, eval(*one.value, scope), inner);
    return execute(s.body, inner);
  }

  void set(const Statement& s, Scope& scope) {
    assign(s, eval(*s.value, scope), scope);
  }

  static void assign(const Statement& s, Value value, Scope& scope) {
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
        Scope inner(&scope);
        bind(s.names, entry, inner);
        return !eval(*s.filter, inner).truth();
      });
    if (entries.empty()) {
      Scope inner(&scope);
      execute(s.otherwise, inner);
      return;
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      count_steps();
      Scope inner(&scope);
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

  Value macro(const Statement& s, const Scope& scope) {
    return Function(MacroCall{this, &s, scope.hold()});
  }

  void call_with_body(const Statement& s, Scope& scope) {
    const Value callee = eval(*s.value->parts[0], scope);
    const Function& function = need_function(callee);
    if (function.target<MacroCall>() == nullptr)
      throw TemplateError("a call block calls macros only");
    Arguments given = arguments(*s.value, scope);
    given.named.emplace_back("caller", macro(s, scope));
    print(function(given).need_text("a call block"));
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
    case ExpressionKind::printed:
      return printed_;
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
    return need_function(callee)(arguments(e, scope));
  }
  static const Function& need_function(const Value& callee) {
    if (const Function* function = callee.function())
      return *function;
    const auto* missing = callee.as<Undefined>();
    throw TemplateError(missing != nullptr
                          ? "'" + missing->name + "' is undefined"
                          : std::string(callee.kind()) + " cannot be called");
  }

  Rendered out_;
  Value printed_; ///< by the block whose filters are evaluated
  int calls_ = 0;
  bool capturing_ = false;
};

Value MacroCall::operator()(const Arguments& arguments) const {
  return evaluator->call_macro(*macro, *scope, arguments);
}

} // namespace

Rendered render(const Body& body, Named variables) {
  return Evaluator().run(body, std::move(variables));
}

} // namespace troupe::models::jinja
