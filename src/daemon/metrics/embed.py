#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""usage: embed.py PAGE.html OUT.c: writes the page as a C array, with a Content Security Policy
that permits the script and the style sheet of the page and nothing else."""
import base64
import hashlib
import re
import sys


def digest(page, tag):
    """Returns the hash source (CSP Level 3, 2.3.1) of the element's text."""
    text = re.search("<%s>(.*?)</%s>" % (tag, tag), page, re.S).group(1)
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


with open(sys.argv[1], encoding="utf-8") as f:
    page = f.read()
policy = ("default-src 'none'; script-src %s; style-src %s; connect-src 'self'; img-src data:; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
          % (digest(page, "script"), digest(page, "style")))
octets = page.encode()
with open(sys.argv[2], "w") as f:
    f.write('#include "daemon/metrics/page.h"\n\n')
    f.write('const char page_policy[] = "%s";\n' % policy)
    f.write("const size_t page_len = %d;\n" % len(octets))
    f.write("const char page_text[] = {\n")
    for i in range(0, len(octets), 16):
        f.write("".join("%d," % (b if b < 128 else b - 256) for b in octets[i:i + 16]) + "\n")
    f.write("};\n")
