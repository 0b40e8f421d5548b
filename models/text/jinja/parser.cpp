// Statements of a template (declared in syntax.hpp).
#include "models/text/jinja/expression_parser.hpp"
#include "models/text/jinja/mentions.hpp"
#include "models/text/jinja/syntax.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace troupe::models::jinja {

namespace {

constexpr int parser_depth_limit = 60;

class TemplateParser {
public:
  explicit TemplateParser(const std::string& source) : t_(tokenize(source)) {}

  Body run() {
    Body body = until({});
    if (t_.peek().kind != TokenKind::end)
      t_.fail("unexpected tag '" + t_.peek(1).text + "'");
    return body;
  }

private:
  /// Parses statements up to a block tag of one of these names, which is not
  /// consumed.
  Body until(std::initializer_list<std::string_view> ends) {
    if (++depth_ > parser_depth_limit)
      t_.fail("tags are nested too deeply");
    Body body;
    while (t_.peek().kind != TokenKind::end && !at_tag(ends))
      statement(body);
    --depth_;
    return body;
  }
  bool at_tag(std::initializer_list<std::string_view> names) const {
    if (t_.peek().kind != TokenKind::block_begin
        || t_.peek(1).kind != TokenKind::name)
      return false;
    return std::ranges::find(names, t_.peek(1).text) != names.end();
  }
  bool skip_tag(std::string_view name) {
    if (!at_tag({name}))
      return false;
    t_.take();
    t_.take();
    return true;
  }
  void end_tag(std::string_view name) {
    if (!skip_tag(name))
      t_.fail("expected the tag '" + std::string(name) + "'");
    close();
  }
  void close() {
    if (t_.peek().kind != TokenKind::block_end)
      t_.fail("expected the end of the tag");
    t_.take();
  }
  Statement& add(Body& body, StatementKind kind) const {
    Statement& statement = body.emplace_back();
    statement.kind = kind;
    statement.line = t_.peek().line;
    return statement;
  }

  void statement(Body& body) {
    const Token token = t_.take();
    if (token.kind == TokenKind::text) {
      add(body, StatementKind::text).text = token.text;
    } else if (token.kind == TokenKind::print_begin) {
      Statement& print = add(body, StatementKind::print);
      print.value = settled(parse_tuple(t_));
      if (t_.take().kind != TokenKind::print_end)
        t_.fail("expected '}}'");
    } else {
      tag(body);
    }
  }

  void tag(Body& body) {
    const std::string name = t_.need_name();
    if (name == "if")
      condition(add(body, StatementKind::condition));
    else if (name == "for")
      loop(add(body, StatementKind::loop));
    else if (name == "set")
      set(add(body, StatementKind::set));
    else if (name == "macro")
      macro(add(body, StatementKind::macro));
    else if (name == "call")
      call(add(body, StatementKind::call));
    else if (name == "filter")
      filter(add(body, StatementKind::filter));
    else if (name == "with")
      with(add(body, StatementKind::with));
    else if (name == "generation")
      enclosed(add(body, StatementKind::generation), "endgeneration");
    else if (name == "break" || name == "continue")
      jump(body, name == "break");
    else
      t_.fail("unsupported construct: the tag '" + name + "'");
  }

  void enclosed(Statement& statement, std::string_view end) {
    const bool outside = std::exchange(maybe_unreached_, false);
    close();
    statement.body = until({end});
    maybe_unreached_ = outside;
    end_tag(end);
  }

  /// Unknown names count as soon as they are read, but in an `if`, where they
  /// count when they are reached: Jinja's rule.
  ExpressionPtr settled(ExpressionPtr expression) {
    if (maybe_unreached_)
      t_.forget_doubts(0);
    t_.settle_doubts();
    return expression;
  }

  void jump(Body& body, bool leaves) {
    if (loops_ == 0)
      t_.fail("'break' and 'continue' stand in a loop only");
    add(body, leaves ? StatementKind::leave : StatementKind::next);
    close();
  }

  void condition(Statement& statement) {
    const bool outside = std::exchange(maybe_unreached_, true);
    for (;;) {
      Branch& branch = statement.branches.emplace_back();
      branch.condition = settled(parse_expression(t_));
      close();
      branch.body = until({"elif", "else", "endif"});
      if (!skip_tag("elif"))
        break;
    }
    if (skip_tag("else")) {
      close();
      Branch& branch = statement.branches.emplace_back();
      branch.body = until({"endif"});
    }
    maybe_unreached_ = outside;
    end_tag("endif");
  }

  std::vector<std::string> targets() {
    std::vector<std::string> names{t_.need_name()};
    while (t_.skip_op(","))
      names.push_back(t_.need_name());
    return names;
  }

  void loop(Statement& statement) {
    const bool parenthesis = t_.skip_op("(");
    statement.names = targets();
    if (parenthesis)
      t_.need_op(")");
    if (!t_.skip_name("in"))
      t_.fail("expected 'in'");
    statement.value = settled(parse_without_condition(t_));
    const bool outside = std::exchange(maybe_unreached_, false);
    if (t_.skip_name("if"))
      statement.filter = settled(parse_expression(t_));
    if (t_.is_name("recursive"))
      t_.fail("unsupported construct: a recursive loop");
    close();
    ++loops_;
    statement.body = until({"else", "endfor"});
    --loops_;
    if (skip_tag("else")) {
      close();
      statement.otherwise = until({"endfor"});
    }
    maybe_unreached_ = outside;
    end_tag("endfor");
  }

  void set(Statement& statement) {
    statement.names = targets();
    if (statement.names.size() == 1 && t_.skip_op(".")) {
      statement.target = statement.names[0];
      statement.text = t_.need_name();
    }
    if (t_.skip_op("=")) {
      statement.value = settled(parse_tuple(t_));
      close();
      return;
    }
    if (statement.names.size() > 1)
      t_.fail("expected '='");
    statement.kind = StatementKind::capture;
    if (t_.skip_op("|"))
      block_filters(statement);
    enclosed(statement, "endset");
  }

  void block_filters(Statement& statement) {
    const bool outside = std::exchange(maybe_unreached_, false);
    statement.filter = settled(parse_block_filters(t_));
    maybe_unreached_ = outside;
  }

  void filter(Statement& statement) {
    block_filters(statement);
    enclosed(statement, "endfilter");
  }

  void with(Statement& statement) {
    while (t_.peek().kind != TokenKind::block_end) {
      if (!statement.otherwise.empty())
        t_.need_op(",");
      Statement& one = add(statement.otherwise, StatementKind::set);
      one.names = targets();
      t_.need_op("=");
      one.value = settled(parse_expression(t_));
    }
    enclosed(statement, "endwith");
  }

  void macro(Statement& statement) {
    const bool reached = std::exchange(maybe_unreached_, false);
    statement.names.push_back(t_.need_name());
    parameters(statement);
    macro_body(statement, "endmacro");
    maybe_unreached_ = reached;
  }

  void call(Statement& statement) {
    statement.names.emplace_back("caller");
    if (t_.is_op("("))
      parameters(statement);
    statement.value = settled(parse_expression(t_));
    if (statement.value->kind != ExpressionKind::call)
      t_.fail("expected a call of a macro");
    macro_body(statement, "endcall");
  }

  void parameters(Statement& statement) {
    t_.need_op("(");
    while (!t_.skip_op(")")) {
      std::string name = t_.need_name();
      statement.parameters.emplace_back(
        std::move(name),
        t_.skip_op("=") ? settled(parse_expression(t_)) : nullptr);
      if (!t_.is_op(")"))
        t_.need_op(",");
    }
  }

  void macro_body(Statement& statement, std::string_view end) {
    const int outside = std::exchange(loops_, 0);
    enclosed(statement, end);
    loops_ = outside;
    for (const char* name : {"caller", "varargs", "kwargs"})
      if (mentions(statement.body, name))
        statement.mentioned.emplace_back(name);
    for (const auto& [name, absent] : statement.parameters)
      if (name == "caller" && !absent && !statement.mentioned.empty()
          && statement.mentioned[0] == name)
        t_.fail("expected a value for the parameter 'caller'");
  }

  TokenReader t_;
  int depth_ = 0;
  int loops_ = 0;
  bool maybe_unreached_ = false; ///< directly in an `if`
};

} // namespace

Body parse_template(const std::string& source) {
  return TemplateParser(source).run();
}

} // namespace troupe::models::jinja
