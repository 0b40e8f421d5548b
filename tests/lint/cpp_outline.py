"""A rough outline of a C++ file that clang-format wrote: its functions, how
long they are, how deep their control statements nest, which lines loop; and its
classes, how many data members they have."""
import re
from dataclasses import dataclass, field

from sources import blank_comments

TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|\S")
CONTROL = {"if", "for", "while", "switch", "do"}
LOOPS = {"for", "while", "do"}
SCOPES = {"namespace", "class", "struct", "union", "enum", "extern"}
CLASSES = {"class", "struct", "union"}
NO_MEMBERS = {"using", "typedef", "friend", "static", "template", "operator"}
CLOSING = {"(": ")", "{": "}", "[": "]"}


@dataclass
class Function:
    name: str
    first_line: int
    last_line: int = 0
    depth: int = 0
    loop_lines: set = field(default_factory=set)


@dataclass
class Class:
    name: str
    first_line: int
    members: int = 0


def num_members(tokens):
    """Data members that a declaration of a class makes; groups are one token."""
    while len(tokens) > 1 and tokens[0] in ("public", "protected", "private"):
        tokens = tokens[2:]
    if tokens[:2] == ["alignas", "()"]:
        tokens = tokens[2:]
    if NO_MEMBERS & set(tokens) or not tokens:
        return 0
    if SCOPES & {tokens[0]} and tokens[-1] == "{}":
        return 0  # a type
    if SCOPES & {tokens[0]} and len(tokens) == 2:
        return 0  # a type's name
    angles, count, value = 0, 1, False
    for before, token, after in zip([""] + tokens, tokens, tokens[1:] + [""]):
        if token == "<":
            angles += 1
        elif token == ">" and before != "-":
            angles -= 1
        elif angles == 0 and token == "()" and not value and "()" not in (before, after):
            return 0  # a function, and no pointer to one
        elif angles == 0 and token == "=":
            value = True
        elif angles == 0 and token == ",":
            count, value = count + 1, False
    return count


def tokens_of(text):
    """Tokens without comments, contents of strings and directives; their lines,
    and whether there is a blank before them."""
    code = blank_comments(text)
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
                  lambda m: re.sub(r"[^\n]", " ", m[0]), code, flags=re.M)
    tokens, lines, spaced = [], [], []
    line, end = 1, 0
    for match in TOKEN.finditer(code):
        line += code.count("\n", end, match.start())
        tokens.append(match[0])
        lines.append(line)
        spaced.append(match.start() != end)
        end = match.end()
    return tokens, lines, spaced


class TokenReader:
    """Reads the tokens of a file one after the other."""
    def __init__(self, text):
        self.tokens, self.lines, self.spaced = tokens_of(text)
        self.at = 0

    def peek(self, ahead=0):
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def group(self):
        """Skips a group of parentheses, brackets or braces."""
        closing = CLOSING[self.peek()]
        self.at += 1
        while self.peek() not in ("", closing):
            if self.peek() in CLOSING:
                self.group()
            else:
                self.at += 1
        self.at += 1


class Outline(TokenReader):
    def __init__(self, text):
        super().__init__(text)
        self.functions, self.classes = [], []
        self.inside = None  # the class whose declarations these are
        self.declarations()

    # -- declarations --------------------------------------------------------

    def declarations(self):
        while self.peek() not in ("", "}"):
            self.declaration()

    def declaration(self):
        begin, words = self.at, []
        while self.peek() not in ("", ";", "}"):
            if self.peek() == "{":
                words.append("{}")
                if self.body(begin):
                    self.count(words if "=" in words else [])
                    return
            elif self.peek() in "([":
                words += ["()"] * (self.peek() == "(")
                self.group()
            else:
                words.append(self.peek())
                self.at += 1
        self.count(words)
        if self.peek() == ";":
            self.at += 1

    def count(self, words):
        if self.inside:
            self.inside.members += num_members(words)

    def body(self, begin):
        """At a brace; True if the declaration ends with it."""
        head = self.tokens[begin:self.at]
        before_parenthesis = head[:head.index("(")] if "(" in head else head
        if head and head[0] == "template":
            before_parenthesis = [t for t in before_parenthesis if t != "class"]
        if SCOPES & set(before_parenthesis) and head[-1] != ")":
            outside, self.inside = self.inside, self.class_of(begin, head)
            self.at += 1
            self.declarations()
            self.at += 1
            self.inside = outside
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

    def class_of(self, begin, head):
        """The class whose body begins here, or None."""
        if not CLASSES & set(head) or {"enum", "namespace"} & set(head):
            return None
        while CLASSES & set(head):
            head = head[1:]
        self.classes.append(Class(self.class_name(head), self.lines[begin]))
        return self.classes[-1]

    @staticmethod
    def class_name(words):
        """Of `Name`, `Owner::Name`, `Name final : public Base`, or nothing."""
        while words[1:3] == [":", ":"]:
            words = words[3:]
        return words[0] if words else "-"

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
