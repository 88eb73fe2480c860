#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Puts the page of the sink for HTML together: `make-page.py PAGE STYLE SCRIPT... OUTPUT`, run by meson.build. The
# page's policy allows the one script and the one style by their SHA-256, and nothing else: no text that a guest brings
# can become either.

import base64
import hashlib
import re
import sys

LICENCE = re.compile(r"\A/\* SPDX-License-Identifier: [^\n]*\*/\n")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def source_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def main():
    page_path, style_path, *script_paths, output_path = sys.argv[1:]
    style = "\n" + LICENCE.sub("", read(style_path))
    parts = [LICENCE.sub("", read(path)).strip() for path in script_paths]
    script = "\n'use strict';\n(() => {\n" + "\n\n".join(parts) + "\n})();\n"
    for text in (style, script):
        if re.search(r"</(script|style)|<!--", text, re.I):
            sys.exit("make-page.py: a part would end its own element")
    page = read(page_path)
    page = page.replace("@SCRIPT_SOURCE@", source_of(script)).replace("@STYLE_SOURCE@", source_of(style))
    page = page.replace("@STYLE@", style).replace("@SCRIPT@", script)
    with open(output_path, "w", encoding="utf-8") as file:
        file.write(page)


main()
