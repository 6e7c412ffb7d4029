#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the texts that users see with docs/messages.txt, so that a commit that changes a text shows the change there, too.

    messages.py TREE              prints the differences; exit status 1 if there are any
    messages.py TREE --update     writes docs/messages.txt
    messages.py --self-test       checks known input

A text is a string literal of the programs or of libiser that has at least two words: an error, a log line, an answer of the control
socket. The names of formats, JSON keys and help texts (literals of several lines) are not listed. docs/messages.txt has one section
for each folder and one line for each text, in alphabetical order, without the file: a text may move between files.
"""
import os
import re
import sys

FILE = 'docs/messages.txt'
# folders and files whose string literals reach an administrator or a user
PLACES = ('src/base', 'src/io', 'src/net', 'src/backstore/uring', 'src/rcap/verbs', 'src/lib', 'src/daemon', 'src/tools', 'src/nbdkit')
HEAD = '''# The texts that the programs and libiser print: errors, log lines, answers of the control socket.
# tests/arch/messages.py compares this file with the code; after changing a text, run: python3 tests/arch/messages.py . --update
'''
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
    """The content of docs/messages.txt."""
    out = HEAD
    for place in PLACES:
        texts = set()
        for folder, _, names in os.walk(os.path.join(tree, place)):
            for name in names:
                if name.endswith(('.c', '.h')):
                    with open(os.path.join(folder, name), errors='replace') as f:
                        texts.update(texts_of(f.read()))
        if texts:
            out += f'\n[{place}]\n' + ''.join(t + '\n' for t in sorted(texts))
    return out


def check(tree, out):
    """Appends (path, line, what) for each text that only one of the two has."""
    path = os.path.join(tree, FILE)
    listed = open(path, errors='replace').read() if os.path.exists(path) else ''
    wanted = table(tree)
    if listed == wanted:
        return
    for text in sorted(set(wanted.split('\n')) - set(listed.split('\n'))):
        out.append((FILE, 1, f'not listed: {text}'))
    for text in sorted(set(listed.split('\n')) - set(wanted.split('\n'))):
        out.append((FILE, 1, f'not in the code: {text}'))
    out.append((FILE, 1, 'texts and table differ: if the change is intended, run tests/arch/messages.py . --update'))


def self_test():
    code = ('#include "a b/c.h"\n/* "not a text" */\nsay("%s: cannot "\n\t"open: %s\\n", p);\nx = "key";\n'
            'usage("one two\\nthree four\\n");\nsay("size %" PRIu64 " is odd");\nreturn c ? "out of memory" : "%s %s";\n')
    want = ['%s: cannot open: %s', 'size %u is odd', 'out of memory', 'no file: \\"%s\\"']
    found = [*texts_of(code + 'say("no file: \\"%s\\"");')]
    failures = int(found != want)
    if failures:
        print('self-test: messages: found', found)
    print('messages self-test:', 'ok' if not failures else f'{failures} failures')
    return 1 if failures else 0


def main():
    if '--self-test' in sys.argv:
        return self_test()
    tree = sys.argv[1]
    if '--update' in sys.argv:
        with open(os.path.join(tree, FILE), 'w') as f:
            f.write(table(tree))
        return 0
    out = []
    check(tree, out)
    for path, line, what in out:
        print(f'{path}:{line}: {what}')
    return 1 if out else 0


if __name__ == '__main__':
    sys.exit(main())
