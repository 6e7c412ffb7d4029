#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lists the texts that users see, so that a reviewer sees at once which texts some commits change.

    messages.py TREE                prints them
    messages.py TREE --since COMMIT prints those that have come (+) and gone (-) since that commit
    messages.py --self-test         checks known input

A text is a string literal of the programs or of libiser that has at least two words: an error, a log line, an answer of the control
socket. The names of formats, JSON keys and help texts (literals of several lines) are not listed. Each folder has a section, with
its texts in alphabetical order and without the file: a text may move between files.
"""
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile

# folders and files whose string literals reach an administrator or a user
PLACES = ('src/base', 'src/io', 'src/net', 'src/backstore/uring', 'src/rcap/verbs', 'src/lib', 'src/daemon', 'src/tools', 'src/nbdkit')
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#[ \t]*(?:include|error)[^\n]*|'
                   r'"(?:\\.|[^"\\\n])*"(?:\s*(?:"(?:\\.|[^"\\\n])*"|PRI[a-zA-Z]\d\d))*', re.S | re.M)
PIECE = re.compile(r'"((?:\\.|[^"\\\n])*)"|PRI([a-zA-Z])\d\d')
WORDS = re.compile(r'[A-Za-z][a-z\']+[,;:]? +(?:[a-z]|%|[A-Z][a-z])|%[-.*\d]*[a-z]+[,;:]? +[a-z\']{3,}|[a-z]{3,}: %')


def texts_of(code):
    """The texts of a C file."""
    for m in TOKEN.finditer(code):
        if not m[0].startswith('"'):
            continue
        text = ''.join(p[2] or p[1] for p in PIECE.finditer(m[0]))
        if text.count('\\n') > 1 or not WORDS.search(text):
            continue
        yield text[:-2] if text.endswith('\\n') else text


def table(tree):
    """The list of a tree."""
    out = ''
    for place in PLACES:
        texts = set()
        for folder, _, names in os.walk(os.path.join(tree, place)):
            for name in names:
                if name.endswith(('.c', '.h')):
                    with open(os.path.join(folder, name), errors='replace') as f:
                        texts.update(texts_of(f.read()))
        if texts:
            out += f'[{place}]\n' + ''.join(t + '\n' for t in sorted(texts)) + '\n'
    return out


def lines_of(listed):
    """The texts of a list, each with its section."""
    found, section = set(), ''
    for line in listed.splitlines():
        if re.fullmatch(r'\[[\w/]+\]', line):
            section = line
        elif line:
            found.add(f'{section} {line}')
    return found


def changes(old, new):
    """The lines that only one of two lists has."""
    old, new = lines_of(old), lines_of(new)
    return [*(f'- {t}' for t in sorted(old - new)), *(f'+ {t}' for t in sorted(new - old))]


def table_at(tree, commit):
    """The list of the tree as it was at a commit."""
    archive = subprocess.run(['git', '-C', tree, 'archive', commit, 'src'], check=True, stdout=subprocess.PIPE).stdout
    with tempfile.TemporaryDirectory() as d, tarfile.open(fileobj=io.BytesIO(archive)) as t:
        t.extractall(d)
        return table(d)


def self_test():
    code = ('#include "a b/c.h"\n/* "not a text" */\nsay("%s: cannot "\n\t"open: %s\\n", p);\nx = "key";\n'
            'usage("one two\\nthree four\\n");\nsay("size %" PRIu64 " is odd");\nreturn c ? "out of memory" : "%s %s";\n')
    want = ['%s: cannot open: %s', 'size %u is odd', 'out of memory', 'no file: \\"%s\\"']
    found = [*texts_of(code + 'say("no file: \\"%s\\"");')]
    failures = int(found != want)
    seen = changes('[src/a]\none two\nsame text\n', '[src/a]\nsame text\n\n[src/b]\none two\n')
    if seen != ['- [src/a] one two', '+ [src/b] one two']:
        failures += 1
        print('self-test: messages: changes', seen)
    if failures:
        print('self-test: messages: found', found)
    print('messages self-test:', 'ok' if not failures else f'{failures} failures')
    return 1 if failures else 0


def main():
    if '--self-test' in sys.argv:
        return self_test()
    tree = sys.argv[1]
    if '--since' in sys.argv:
        print('\n'.join(changes(table_at(tree, sys.argv[sys.argv.index('--since') + 1]), table(tree))))
    else:
        print(table(tree), end='')
    return 0


if __name__ == '__main__':
    sys.exit(main())
