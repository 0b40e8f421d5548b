"""A rough outline of a C++ file that clang-format wrote: its functions, how
long they are, how deep their control statements nest, which lines loop."""
import re
from dataclasses import dataclass, field

from sources import blank_comments

TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|\S")
CONTROL = {"if", "for", "while", "switch", "do"}
LOOPS = {"for", "while", "do"}
SCOPES = {"namespace", "class", "struct", "union", "enum", "extern"}
CLOSING = {"(": ")", "{": "}", "[": "]"}


@dataclass
class Function:
    name: str
    first_line: int
    last_line: int = 0
    depth: int = 0
    loop_lines: set = field(default_factory=set)


class Outline:
    def __init__(self, text):
        code = blank_comments(text)
        code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
                      lambda m: re.sub(r"[^\n]", " ", m[0]), code, flags=re.M)
        self.tokens, self.lines, self.spaced = [], [], []
        line, end = 1, 0
        for match in TOKEN.finditer(code):
            line += code.count("\n", end, match.start())
            self.tokens.append(match[0])
            self.lines.append(line)
            self.spaced.append(match.start() != end)
            end = match.end()
        self.functions = []
        self.at = 0
        self.declarations()

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    # -- declarations --------------------------------------------------------

    def declarations(self):
        while self.peek() not in ("", "}"):
            self.declaration()

    def declaration(self):
        begin = self.at
        while self.peek() not in ("", ";", "}"):
            if self.peek() == "{":
                if self.body(begin):
                    return
            elif self.peek() in "([":
                self.group()
            else:
                self.at += 1
        if self.peek() == ";":
            self.at += 1

    def body(self, begin):
        """At a brace; True if the declaration ends with it."""
        head = self.tokens[begin:self.at]
        before_parenthesis = head[:head.index("(")] if "(" in head else head
        if head and head[0] == "template":
            before_parenthesis = [t for t in before_parenthesis if t != "class"]
        if SCOPES & set(before_parenthesis) and head[-1] != ")":
            self.at += 1
            self.declarations()
            self.at += 1
            return "namespace" in head or "extern" in head
        # a_{b} in a constructor's head has no blank before it
        if not self.spaced[self.at] or head[-1:] in (["="], [","], ["return"]):
            self.group()
            return False
        if "(" not in head:
            self.group()
            return False
        self.functions.append(
            Function(self.name_of(head), self.lines[begin]))
        function = self.functions[-1]
        self.block(function, 0, False)
        function.last_line = self.lines[self.at - 1]
        return "=" not in before_parenthesis

    @staticmethod
    def name_of(head):
        opening = head.index("(")
        name = head[opening - 1] if opening else "?"
        if name.startswith("TEST") or name.startswith("TYPED"):
            return ".".join(t for t in head[opening + 1:head.index(")")]
                            if t != ",")
        if name == "operator" or "operator" in head[max(0, opening - 3):opening]:
            return "operator"
        return name

    def group(self):
        closing = CLOSING[self.peek()]
        self.at += 1
        while self.peek() not in ("", closing):
            if self.peek() in CLOSING:
                self.group()
            else:
                self.at += 1
        self.at += 1

    # -- statements ----------------------------------------------------------

    def block(self, function, depth, loops):
        self.at += 1
        while self.peek() not in ("", "}"):
            self.statement(function, depth, loops)
        self.at += 1

    def statement(self, function, depth, loops):
        word = self.peek()
        function.depth = max(function.depth, depth)
        if loops and self.at < len(self.lines):
            function.loop_lines.add(self.lines[self.at])
        if word == "{":
            self.block(function, depth, loops)
        elif word in CONTROL:
            self.control(word, function, depth, loops)
        elif word in ("try", "else"):
            self.at += 1
            self.statement(function, depth, loops)
        elif word == "catch":
            self.at += 1
            self.group()
            self.statement(function, depth, loops)
        else:
            self.expression(function, depth, loops)

    def control(self, word, function, depth, loops):
        self.at += 1
        inside = loops or word in LOOPS
        if self.peek() == "constexpr":
            self.at += 1
        if word != "do" and self.peek() == "(":
            self.condition(function, depth, loops)
        self.statement(function, depth + 1, inside)
        if word == "do":
            self.expression(function, depth, loops)
        if word == "if" and self.peek() == "else":
            self.at += 1
            following = self.peek() == "if"
            self.statement(function, depth + (not following), inside)

    def condition(self, function, depth, loops):
        """A parenthesised group; lambdas inside it are looked at."""
        self.at += 1
        while self.peek() not in ("", ")"):
            if self.peek() == "(":
                self.condition(function, depth, loops)
            elif self.peek() == "{":
                self.block(function, depth, loops)
            else:
                self.at += 1
        self.at += 1

    def expression(self, function, depth, loops):
        while self.peek() not in ("", ";", "}"):
            if loops:
                function.loop_lines.add(self.lines[self.at])
            if self.peek() == "{":
                self.block(function, depth, loops)
            elif self.peek() == "(":
                self.condition(function, depth, loops)
            elif self.peek() == ":" and self.at and self.tokens[self.at - 1] != ":" \
                    and self.is_label():
                self.at += 1
                return
            else:
                self.at += 1
        if self.peek() == ";":
            self.at += 1

    def is_label(self):
        """case x: and default: end at their colon."""
        start = self.at - 1
        while start and self.tokens[start] not in (";", "{", "}", "case", "default"):
            start -= 1
        return (self.tokens[start] in ("case", "default")
                and self.tokens[self.at + 1] != ":"
                and "?" not in self.tokens[start:self.at])
