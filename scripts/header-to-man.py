#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Makes a man page from a public header: `header-to-man.py HEADER PAGE VERSION NAME...`, run by docs/meson.build; NAMEs
# are those of all public headers, whose pages name each other. The header's first /** comment is the description; each
# later one, and the declaration below it, becomes an entry. In a comment an empty line ends a paragraph, "(name)" means
# the parameter or member of that name, `code` is code, lines that begin with "- " are a list, and lines indented by
# four or more are shown as they are. A PH_API function without a comment is an error: what is public is documented.

import os
import re
import sys
import textwrap

COMMENT = re.compile(r"/\*\*(?!/)(.*?)\*/", re.S)
X_ENTRY = re.compile(r'^\s*X\((\w+),\s*(-?\d+),\s*"([^"]*)",\s*"([^"]*)"\)')


# Words that keep their capital inside a sentence.
PROPER_NAMES = ("OpenTelemetry",)


def decapitalise(text):
    """What a sentence says, as the words behind a dash."""
    return text if text.startswith(PROPER_NAMES) else text[0].lower() + text[1:]


def escape(text):
    """Text in which roff sees no command."""
    text = text.replace("\\", "\\e")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def code(text):
    """Code, with every hyphen one that can be copied."""
    return escape(text).replace("-", "\\-")


def strip_comment(body):
    """The text of a block comment, without its stars."""
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in body.split("\n")]
    return "\n".join(lines).strip("\n")


def fill(declaration):
    """A function's declaration, broken between its parameters alone."""
    if len(declaration) <= 76:
        return declaration
    head, parameters = re.match(r"((?:[^(]|\(\*)*)\((.*)", declaration).groups()
    parameters = ", ".join(one.replace(" ", "\u00a0") for one in parameters.split(", "))
    text = textwrap.fill(head.replace(" ", "\u00a0") + "(" + parameters, 76, subsequent_indent="    ",
                         break_long_words=False, break_on_hyphens=False)
    return text.replace("\u00a0", " ")


def decorate(text, names):
    """One paragraph of a comment as roff: parameters in italics, code and our own names in bold."""
    out = []
    for part in re.split(r"(`[^`]+`)", text):
        if part.startswith("`") and len(part) > 2:
            out.append("\\fB" + code(part[1:-1]) + "\\fR")
            continue
        part = escape(part)
        part = re.sub(r"(?<!\w)\((\*?)(\w+)\)",
                      lambda m: f"{m[1]}\\fI{m[2]}\\fR" if m[2] in names else m[0], part)
        part = re.sub(r"\b(ph_\w+|PH_[A-Z]\w*)", r"\\fB\1\\fR", part)
        out.append(part)
    # A number below zero has a minus sign, not a hyphen.
    return re.sub(r"(^|[\s(])-(\d|errno)", r"\1\\-\2", "".join(out))


def prose(text, names, begin=".PP"):
    """A whole comment as roff lines. `begin` is what starts a paragraph."""
    lines = []
    for paragraph in re.split(r"\n\s*\n", text):
        rows = paragraph.split("\n")
        if all(row.startswith("    ") for row in rows):
            lines += [begin, ".RS 4", ".nf"] + [code(row[4:]) for row in rows] + [".fi", ".RE"]
            continue
        items = []
        for row in rows:
            if row.lstrip().startswith("- ") or not items:
                items.append(row.strip())
            else:
                items[-1] += "\n" + row.strip()
        if not items:
            continue
        for item in items:
            if item.startswith("- "):
                lines += [".IP \\(bu 2", decorate(item[2:], names)]
            else:
                lines += [begin, decorate(item, names)]
    return lines


def find_declaration(text):
    """What stands at the start of the text: a run of #defines, or one declaration up to its end."""
    text = text.lstrip("\n")
    if text.startswith("#define"):
        taken = []
        continued = False
        for line in text.split("\n"):
            if not continued and not line.startswith("#define"):
                break
            taken.append(line)
            continued = line.endswith("\\")
        return "\n".join(taken)
    depth = 0
    position = 0
    while position < len(text):
        if text.startswith("/*", position):
            position = text.index("*/", position) + 2
            continue
        character = text[position]
        if character in "({":
            depth += 1
        elif character in ")}":
            depth -= 1
            # The body of an inline function ends it; of a struct, the semicolon does.
            if character == "}" and depth == 0 and not re.match(r"\s*[\w\s]*;", text[position + 1:]):
                return text[:position + 1]
        elif character == ";" and depth == 0:
            return text[:position + 1]
        position += 1
    raise ValueError("a declaration without an end: " + text[:60])


class Entry:
    """One comment and what it documents."""

    def __init__(self, comment, declaration):
        self.comment = comment
        self.statuses = []
        # The whole vocabulary: parameters and members among it.
        self.names = set(re.findall(r"\w+", COMMENT.sub("", declaration)))
        if declaration.startswith("#define"):
            self.section = "MACROS"
            self.read_macros(declaration)
        else:
            self.read_declaration(declaration)

    def read_macros(self, text):
        self.titles = re.findall(r"^#define\s+(\w+)", text, re.M)
        shown = []
        for macro in re.split(r"^(?=#define)", text, flags=re.M)[1:]:
            joined = re.sub(r"\s*\\\n\s*", " ", macro).strip()
            with_parameters = re.match(r"#define\s+(\w+\([^)]*\))", joined)
            if with_parameters:
                shown.append(with_parameters[1])
            elif len(joined) <= 100:
                shown.append(re.sub(r"\s+", " ", joined))
            else:
                shown.append(re.match(r"#define\s+\w+", joined)[0])
            for line in macro.split("\n"):
                entry = X_ENTRY.match(line)
                if entry:
                    self.statuses.append(entry.groups())
        self.code = "\n".join(shown)

    def read_declaration(self, text):
        text = re.sub(r"\bPH_API\s+", "", text)
        text = re.sub(r"\s*\b(PH_PRINTF\([^)]*\)|__attribute__\(\((?:[^()]|\([^()]*\))*\)\))", "", text, flags=re.S)
        if re.match(r"\s*(static\s+)?inline\b|\s*static\b", text) and "{" in text:
            text = text[:text.index("{")].rstrip() + ";"
            text = re.sub(r"^\s*(static\s+|inline\s+|__inline__\s+)+", "", text)
        # An enum that a macro fills is shown without its preprocessor lines.
        text = re.sub(r"^#(define|undef).*\n", "", text, flags=re.M)
        self.code = text.strip()
        flat = COMMENT.sub("", self.code)
        pointer = re.match(r"typedef\b[^{;]*\(\*\s*(\w+)\)", flat)
        if flat.startswith("typedef") or re.match(r"(struct|union|enum)\b[^(]*[{;]", flat):
            self.section = "TYPES"
            if pointer:
                self.code = fill(" ".join(self.code.split()))
            title = pointer[1] if pointer else re.findall(r"\w+", flat)[-1]
            if not flat.startswith("typedef"):
                title = re.match(r"\w+\s+(\w+)", flat)[1]
        else:
            self.section = "FUNCTIONS"
            called = re.search(r"(\w+)\s*\(", flat)
            title = called[1] if called else re.findall(r"\w+", flat)[-1]
            # Filled again: without what was taken out, and for a narrower page than our source.
            self.code = fill(" ".join(self.code.split()))
        self.titles = [title]

    def roff(self):
        lines = [".SS " + ", ".join(self.titles), ".nf"]
        lines += [code(line) for line in self.code.split("\n")]
        lines += [".fi"] + prose(self.comment, self.names)
        for name, number, kind, message in self.statuses:
            lines += [".TP", f"\\fBPH_{name}\\fR ({code(number)}, {code(kind)})", decorate(message, set())]
        return lines


def read_header(text):
    """The description and the entries of a header."""
    comments = list(COMMENT.finditer(text))
    if not comments:
        raise ValueError("no /** comment describes the file")
    entries = []
    end = comments[0].end()
    for comment in comments[1:]:
        if comment.start() < end:
            continue  # inside a declaration that was taken whole
        declaration = find_declaration(text[comment.end():])
        entries.append(Entry(strip_comment(comment[1]), declaration))
        end = text.index(declaration, comment.end()) + len(declaration)
    documented = {title for entry in entries for title in entry.titles}
    for line in re.findall(r"^PH_API\b[^;]*;", text, re.M):
        name = re.search(r"(\w+)\s*\(", line)
        if name and name[1] not in documented:
            raise ValueError(f"{name[1]} has no comment")
    return strip_comment(comments[0][1]), entries


def main():
    header, page, version, *headers = sys.argv[1:]
    with open(header, encoding="utf-8") as file:
        text = file.read()
    description, entries = read_header(text)

    title = os.path.basename(page).rsplit(".", 1)[0]
    about = re.split(r"[.:](?:\s|$)", " ".join(description.split("\n\n")[0].split()))[0]
    lines = [
        '.\\" Made from a header by header-to-man.py.',
        f'.TH {title.upper()} 3 "" "pinhole {version}" "pinhole"',
        ".SH NAME",
        f"{code(title)} \\- {escape(decapitalise(about))}",
        ".SH SYNOPSIS",
        ".nf",
        f"#include <pinhole/{os.path.basename(header)}>",
        ".fi",
        ".SH DESCRIPTION",
    ]
    lines += prose(description, set())[1:]
    for section in ("FUNCTIONS", "TYPES", "MACROS"):
        chosen = [entry for entry in entries if entry.section == section]
        if chosen:
            lines.append(".SH " + section)
        for entry in chosen:
            lines += entry.roff()
    others = sorted(name if name == "pinhole.h" else "pinhole-" + name for name in headers)
    others = [f".BR {code(name)} (3)" for name in others if name != title]
    lines += [".SH SEE ALSO"] + [line + "," for line in [".BR pinhole (1)"] + others[:-1]] + others[-1:]
    with open(page, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


try:
    main()
except ValueError as problem:
    sys.exit(f"header-to-man.py: {sys.argv[1]}: {problem}")
