"""Names at namespace scope of a C++ file that clang-format wrote: in which
namespace they are, what they are, and whether other files can see them."""
import re
from dataclasses import dataclass

from cpp_outline import TokenReader
from sources import blank_comments

TYPES = {"class", "struct", "union", "enum"}
WITH_GROUP = {"alignas", "decltype", "noexcept", "requires", "__attribute__",
              "explicit"}
NO_NAMES = {"const", "int", "long", "short", "unsigned", "signed", "char", "bool",
            "float", "double", "void", "auto"}
WORD = re.compile(r"[A-Za-z_]\w*")
MACRO = re.compile(r"^[ \t]*#[ \t]*(define|undef)[ \t]+(\w+)((?:[^\n]*\\\n)*[^\n]*)", re.M)


@dataclass(frozen=True)
class Name:
    scope: str      # of named namespaces: "troupe::net"; macros have none
    name: str
    kind: str       # type, function, variable, alias, test or macro
    text: str       # what two of one name may have in common: parameters, value
    line: int
    internal: bool  # seen by its own file only


def names_of(text):
    """All names of a file, in order."""
    return [*macros_of(text), *Scopes(text).names]


def macros_of(text):
    """Macros that are still defined at the end of the file."""
    found = {}
    code = blank_comments(text, strings=False)
    for match in MACRO.finditer(code):
        if match[1] == "undef":
            found.pop(match[2], None)
            continue
        line = code.count("\n", 0, match.start()) + 1
        value = " ".join(match[3].replace("\\\n", " ").split())
        found[match[2]] = Name("", match[2], "macro", value, line, True)
    return list(found.values())


class Scopes(TokenReader):
    def __init__(self, text):
        super().__init__(text)
        self.names = []
        self.declarations((), False)

    def declarations(self, scope, internal):
        while self.peek() not in ("", "}"):
            if self.peek() == "namespace" or self.tokens[self.at:self.at + 2] == ["inline", "namespace"]:
                self.namespace(scope, internal)
            elif self.peek() == "extern" and self.peek(1) == '"' and self.peek(3) == "{":
                self.at += 4
                self.declarations(scope, internal)
                self.at += 1
            elif self.peek() == ";":
                self.at += 1
            else:
                self.declaration(scope, internal)

    def namespace(self, scope, internal):
        begin = self.at
        while self.peek() not in ("", "{", ";"):
            self.at += 1
        head = self.tokens[begin:self.at]
        opens = self.peek() == "{"
        self.at += 1
        if not opens:
            self.add(scope, head[1], "alias", "".join(head[2:]), begin, internal)
            return
        named = [t for t in head if t not in ("inline", "namespace", ":")]
        self.declarations((*scope, *named), internal or not named)
        self.at += 1

    def add(self, scope, name, kind, text, begin, internal):
        self.names.append(Name("::".join(scope), name, kind, text, self.lines[begin], internal))

    def angles(self):
        """Skips <..> after `template`."""
        depth = 0
        while self.peek():
            depth += (self.peek() == "<") - (self.peek() == ">")
            if self.peek() == "(":
                self.group()
                continue
            self.at += 1
            if depth == 0:
                return

    def declaration(self, scope, internal):
        template = []
        while self.peek() == "template":
            begin = self.at
            self.at += 1
            self.angles()
            template += self.tokens[begin:self.at]
        begin = self.at
        words = self.head()
        if "static" in words:
            internal = True
        found = self.found(words, template)
        self.end()
        for name, kind, text in found:
            self.add(scope, name, kind, text, begin, internal)

    def head(self):
        """Words up to the value or body; groups are lists of their tokens."""
        words, angles = [], 0
        while self.peek() not in ("", ";", "}"):
            token = self.peek()
            if token in "{=" and "operator" not in words[-3:]:
                break
            if token in "([":
                begin = self.at
                self.group()
                inner = tuple(self.tokens[begin:self.at])
                if words and words[-1] in WITH_GROUP:
                    words.pop()
                elif not angles and inner[1:2] != ("[",):
                    words.append(inner)
                continue
            after_operator = "operator" in words[-3:]
            if not after_operator:
                angles += (token == "<") - (token == ">" and words[-1:] != ["-"])
            if angles == 0 or token == "<":
                words.append(token)
            self.at += 1
        return words

    def end(self):
        """Skips value and body."""
        while self.peek() not in ("", ";", "}"):
            if self.peek() == "{":
                self.group()
                if self.peek() not in (";", ",", ".", "(", "?", "+"):
                    return
            elif self.peek() in "([":
                self.group()
            else:
                self.at += 1
        if self.peek() == ";":
            self.at += 1

    def found(self, words, template):
        """(name, kind, text) of all that a declaration makes."""
        plain = [w for w in words if isinstance(w, str)]
        if not words or words[0] in ("static_assert", "friend", "extern") \
                or words[0] == "using" and words[1] in ("namespace", "enum"):
            return []
        if words[0] in ("using", "typedef"):
            return self.alias(plain)
        if TYPES & set(plain[:1]):
            return self.type(plain)
        groups = [i for i, w in enumerate(words) if isinstance(w, tuple) and w[0] == "("]
        if groups and groups[0] > 0:
            return self.function(words, groups[0], template)
        words = [w for w in plain if w not in ("<", ">")]
        if len(words) < 2 or not WORD.fullmatch(words[-1]) or words[-2] == ":":
            return []
        return [(words[-1], "variable", "")]

    def alias(self, plain):
        if self.peek() == "=":
            end = self.tokens.index(";", self.at)
            return [(plain[1], "alias", "".join(self.tokens[self.at:end]))]
        found = []
        for one in " ".join(plain[1:]).split(","):
            path = [w for w in one.split() if w not in (":", "troupe")]
            found.append((path[-1], "alias", "::".join(path)))
        return found

    def type(self, plain):
        names = [w for w in plain if w not in TYPES]
        if not names or names[1:2] == [":"] and names[2:3] == [":"]:
            return []
        return [(names[0], "type", "" if self.peek() == "{" else "forward")]

    @staticmethod
    def function(words, at, template):
        name = words[at - 1]
        if "operator" in words[max(0, at - 4):at]:
            begin = len(words[:at]) - 1 - words[:at][::-1].index("operator")
            name = "".join(words[begin:at])
            before = words[:begin]
        else:
            before = words[:at - 1]
        if before[-1:] in ([":"], ["~"]) or not isinstance(name, str):
            return []  # a member, or of another namespace
        if not before:  # a macro: TEST_F(Suite, Name)
            return [("".join([name, *words[at]]), "test", "")]
        if not WORD.match(name):
            return []
        text = " ".join([*template, *parameters(list(words[at][1:-1]))])
        return [(name, "function", text)]


def parameters(tokens):
    """Types of parameters, without names and default values."""
    parts, depth, value = [[]], 0, False
    for before, token in zip([""] + tokens, tokens):
        depth += (token in "([{<") - (token in ")]}" or token == ">" and before != "-")
        if token == "," and depth == 0:
            parts.append([])
            value = False
        elif token == "=" and depth == 0:
            value = True
        elif not value:
            parts[-1].append(token)
    for part in parts:
        named = len(part) > 1 and WORD.fullmatch(part[-1]) and part[-1] not in NO_NAMES \
            and part[-2] not in (":", "const")
        yield " ".join(part[:-1] if named else part) + ","
