#include "models/text/jinja/expression_parser.hpp"

#include "models/text/jinja/builtins.hpp"
#include "models/text/jinja/number_token.hpp"

#include <array>
#include <initializer_list>

namespace troupe::models::jinja {

namespace {

constexpr int expression_depth_limit = 100;

class ExpressionParser {
public:
  explicit ExpressionParser(TokenReader& tokens) : t_(tokens) {}

  ExpressionPtr condition() {
    const Depth depth(*this);
    const std::size_t doubts = t_.num_doubts();
    ExpressionPtr value = either();
    while (t_.skip_name("if")) {
      auto whole = make(ExpressionKind::condition);
      whole->parts.push_back(std::move(value));
      whole->parts.push_back(either());
      whole->parts.push_back(t_.skip_name("else") ? condition() : nullptr);
      value = std::move(whole);
      t_.forget_doubts(doubts);
    }
    return value;
  }

  ExpressionPtr either() {
    ExpressionPtr left = both();
    while (t_.skip_name("or"))
      left = pair(ExpressionKind::either, std::move(left), both());
    return left;
  }

private:
  /// Limit of nesting, against stack overflow by a hostile template.
  struct Depth {
    explicit Depth(ExpressionParser& owner) : parser(owner) {
      if (++parser.depth_ > expression_depth_limit)
        parser.t_.fail("the expression is nested too deeply");
    }
    ~Depth() {
      --parser.depth_;
    }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ExpressionParser& parser;
  };

  ExpressionPtr make(ExpressionKind kind) const {
    auto expression = std::make_unique<Expression>();
    expression->kind = kind;
    expression->line = t_.peek().line;
    return expression;
  }
  ExpressionPtr pair(ExpressionKind kind, ExpressionPtr a,
                     ExpressionPtr b) const {
    auto expression = wrap(kind, std::move(a));
    expression->parts.push_back(std::move(b));
    return expression;
  }
  ExpressionPtr wrap(ExpressionKind kind, ExpressionPtr inner) const {
    auto expression = make(kind);
    expression->parts.push_back(std::move(inner));
    return expression;
  }

  ExpressionPtr both() {
    ExpressionPtr left = invert();
    while (t_.skip_name("and"))
      left = pair(ExpressionKind::both, std::move(left), invert());
    return left;
  }

  ExpressionPtr invert() {
    const Depth depth(*this);
    if (t_.skip_name("not"))
      return wrap(ExpressionKind::invert, invert());
    return compare();
  }

  std::string comparison() {
    for (const char* op : {"==", "!=", "<=", ">=", "<", ">"})
      if (t_.skip_op(op))
        return op;
    if (t_.skip_name("in"))
      return "in";
    if (t_.is_name("not") && t_.peek(1).kind == TokenKind::name
        && t_.peek(1).text == "in") {
      t_.take();
      t_.take();
      return "not in";
    }
    return "";
  }

  ExpressionPtr compare() {
    ExpressionPtr first = sum();
    std::string op = comparison();
    if (op.empty())
      return first;
    auto all = wrap(ExpressionKind::compare, std::move(first));
    for (; !op.empty(); op = comparison()) {
      all->ops.push_back(op);
      all->parts.push_back(sum());
    }
    return all;
  }

  /// Parses left-associative operators of one precedence.
  template <class Next>
  ExpressionPtr chain(std::initializer_list<const char*> ops, Next next) {
    ExpressionPtr left = next();
    for (;;) {
      const char* found = nullptr;
      for (const char* op : ops)
        if (found == nullptr && t_.skip_op(op))
          found = op;
      if (found == nullptr)
        return left;
      left = pair(ExpressionKind::binary, std::move(left), next());
      left->text = found;
    }
  }
  ExpressionPtr sum() {
    return chain({"+", "-"}, [&] { return joined(); });
  }
  ExpressionPtr joined() {
    return chain({"~"}, [&] { return product(); });
  }
  ExpressionPtr product() {
    return chain({"*", "//", "/", "%"}, [&] { return power(); });
  }
  ExpressionPtr power() {
    return chain({"**"}, [&] { return unary(true); });
  }

  ExpressionPtr unary(bool with_filters) {
    const Depth depth(*this);
    ExpressionPtr value;
    if (t_.skip_op("-"))
      value = wrap(ExpressionKind::negate, unary(false));
    else if (t_.skip_op("+"))
      value = wrap(ExpressionKind::plus, unary(false));
    else
      value = postfix(primary());
    return with_filters ? filters(std::move(value)) : std::move(value);
  }

  ExpressionPtr primary() {
    const Token& token = t_.peek();
    switch (token.kind) {
    case TokenKind::string:
      return string();
    case TokenKind::integer:
    case TokenKind::real:
      return number();
    case TokenKind::name:
      return named();
    default:
      break;
    }
    if (t_.skip_op("("))
      return parenthesis();
    if (t_.is_op("["))
      return list();
    if (t_.is_op("{"))
      return dict();
    t_.fail(token.kind == TokenKind::op
              ? "expected an expression, got '" + token.text + "'"
              : "expected an expression, got the end of the tag");
  }

  ExpressionPtr literal(Value value) const {
    auto expression = make(ExpressionKind::literal);
    expression->value = std::move(value);
    return expression;
  }
  ExpressionPtr string() {
    std::string text;
    while (t_.peek().kind == TokenKind::string)
      text += t_.take().text;
    return literal(std::move(text));
  }
  ExpressionPtr number() {
    auto expression = literal({});
    expression->value = number_of(t_.take());
    return expression;
  }
  ExpressionPtr named() {
    auto expression = make(ExpressionKind::name);
    expression->text = t_.take().text;
    const std::string& name = expression->text;
    if (name == "true" || name == "True")
      return literal(true);
    if (name == "false" || name == "False")
      return literal(false);
    if (name == "none" || name == "None")
      return literal(None{});
    return expression;
  }
  ExpressionPtr parenthesis() {
    if (t_.skip_op(")"))
      return make(ExpressionKind::tuple);
    ExpressionPtr inside = parse_tuple_until(")");
    t_.need_op(")");
    return inside;
  }

public:
  /// Parses a, b, ... up to an end, not consumed; a single one as itself.
  ExpressionPtr parse_tuple_until(std::string_view end) {
    ExpressionPtr first = condition();
    if (!t_.is_op(","))
      return first;
    auto all = wrap(ExpressionKind::tuple, std::move(first));
    while (t_.skip_op(",")) {
      if ((!end.empty() && t_.is_op(end))
          || t_.peek().kind == TokenKind::block_end
          || t_.peek().kind == TokenKind::print_end)
        break;
      all->parts.push_back(condition());
    }
    return all;
  }
  ExpressionPtr block_filters() {
    ExpressionPtr value = filter(make(ExpressionKind::printed));
    while (t_.skip_op("|"))
      value = filter(std::move(value));
    return value;
  }

private:
  ExpressionPtr list() {
    auto all = make(ExpressionKind::list);
    t_.need_op("[");
    while (!t_.skip_op("]")) {
      all->parts.push_back(condition());
      if (!t_.is_op("]"))
        t_.need_op(",");
    }
    return all;
  }
  ExpressionPtr dict() {
    auto all = make(ExpressionKind::dict);
    t_.need_op("{");
    while (!t_.skip_op("}")) {
      all->parts.push_back(condition());
      t_.need_op(":");
      all->parts.push_back(condition());
      if (!t_.is_op("}"))
        t_.need_op(",");
    }
    return all;
  }

  ExpressionPtr postfix(ExpressionPtr value) {
    for (;;) {
      if (t_.skip_op("."))
        value = attribute(std::move(value));
      else if (t_.skip_op("["))
        value = subscript(std::move(value));
      else if (t_.is_op("("))
        value = call(std::move(value));
      else
        return value;
    }
  }
  ExpressionPtr attribute(ExpressionPtr object) {
    if (t_.peek().kind == TokenKind::integer)
      return pair(ExpressionKind::item, std::move(object), number());
    auto expression = wrap(ExpressionKind::attribute, std::move(object));
    expression->text = t_.need_name();
    return expression;
  }
  ExpressionPtr subscript(ExpressionPtr object) {
    std::array<ExpressionPtr, 3> bounds;
    std::size_t colons = 0;
    while (!t_.is_op("]")) {
      if (t_.skip_op(":")) {
        if (++colons > 2)
          t_.fail("a slice has at most two ':'");
      } else {
        if (bounds[colons])
          t_.fail("expected ']'");
        bounds[colons] = condition();
      }
    }
    t_.need_op("]");
    if (colons == 0) {
      if (!bounds[0])
        t_.fail("expected an index between '[' and ']'");
      return pair(ExpressionKind::item, std::move(object),
                  std::move(bounds[0]));
    }
    auto expression = wrap(ExpressionKind::slice, std::move(object));
    for (ExpressionPtr& bound : bounds)
      expression->parts.push_back(std::move(bound));
    return expression;
  }
  ExpressionPtr call(ExpressionPtr function) {
    auto expression = wrap(ExpressionKind::call, std::move(function));
    arguments(*expression);
    return expression;
  }
  void arguments(Expression& call) {
    t_.need_op("(");
    while (!t_.skip_op(")")) {
      if (t_.is_op("*") || t_.is_op("**"))
        t_.fail("unsupported construct: '*' before an argument");
      const bool named = t_.peek().kind == TokenKind::name
                         && t_.peek(1).kind == TokenKind::op
                         && t_.peek(1).text == "=";
      if (named) {
        std::string name = t_.need_name();
        t_.need_op("=");
        call.named.emplace_back(std::move(name), condition());
      } else {
        call.arguments.push_back(condition());
      }
      if (!t_.is_op(")"))
        t_.need_op(",");
    }
  }

  ExpressionPtr filters(ExpressionPtr value) {
    for (;;) {
      if (t_.skip_op("|"))
        value = filter(std::move(value));
      else if (t_.skip_name("is"))
        value = test(std::move(value));
      else if (t_.is_op("("))
        value = call(std::move(value));
      else
        return value;
    }
  }
  ExpressionPtr filter(ExpressionPtr value) {
    auto expression = wrap(ExpressionKind::filter, std::move(value));
    expression->text = t_.need_name();
    if (!has_filter(expression->text))
      t_.doubt("unsupported construct: the filter '" + expression->text + "'");
    if (t_.is_op("("))
      arguments(*expression);
    return expression;
  }
  ExpressionPtr test(ExpressionPtr value) {
    const bool inverted = t_.skip_name("not");
    auto expression = wrap(ExpressionKind::test, std::move(value));
    expression->text = t_.need_name();
    if (!has_test(expression->text))
      t_.doubt("unsupported construct: the test '" + expression->text + "'");
    if (t_.is_op("("))
      arguments(*expression);
    else if (argument_follows())
      expression->arguments.push_back(postfix(primary()));
    return inverted ? wrap(ExpressionKind::invert, std::move(expression))
                    : std::move(expression);
  }
  bool argument_follows() const {
    const Token& token = t_.peek();
    if (token.kind == TokenKind::name)
      return token.text != "else" && token.text != "or" && token.text != "and"
             && token.text != "if" && token.text != "is" && token.text != "not"
             && token.text != "in";
    return token.kind == TokenKind::string || token.kind == TokenKind::integer
           || token.kind == TokenKind::real || t_.is_op("[") || t_.is_op("{");
  }

  TokenReader& t_;
  int depth_ = 0;
};

} // namespace

ExpressionPtr parse_expression(TokenReader& tokens) {
  return ExpressionParser(tokens).condition();
}

ExpressionPtr parse_without_condition(TokenReader& tokens) {
  return ExpressionParser(tokens).either();
}

ExpressionPtr parse_tuple(TokenReader& tokens) {
  return ExpressionParser(tokens).parse_tuple_until("");
}

ExpressionPtr parse_block_filters(TokenReader& tokens) {
  return ExpressionParser(tokens).block_filters();
}

} // namespace troupe::models::jinja
