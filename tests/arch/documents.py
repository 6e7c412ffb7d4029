#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that what documents name exists: files, tests, functions (`file.c:function`), pages and headings of links."""
import os
import re
import sys
import tempfile

TOPS = ('src', 'include', 'tests', 'bench', 'scripts', 'docs', 'examples', 'python')
PLACEHOLDER = re.compile('[A-Z]{4}')  # as in tests/unit/ROOM/FILE_test.c


def lines_of(tree, path):
    with open(os.path.join(tree, path)) as f:
        return f.read().splitlines()


def files_of(tree):
    """Paths of files, by the last part of the path."""
    found = {}
    for name in os.listdir(tree):
        if os.path.isfile(os.path.join(tree, name)):
            found.setdefault(name, []).append(name)
    for top in TOPS:
        for d, _, files in os.walk(os.path.join(tree, top)):
            for name in files:
                found.setdefault(name, []).append(os.path.relpath(os.path.join(d, name), tree))
    return found


def named(files, name):
    """The files that a document may mean by a name, which may begin within the path."""
    return [p for p in files.get(os.path.basename(name), []) if p == name or p.endswith('/' + name)]


def defines(lines, function):
    """Whether a line begins a definition of the function: its name after a type, in the first column."""
    begin = re.compile(r'(?:[A-Za-z_][\w ]*[ *])?' + function + r'\(')
    return any(begin.match(line) and not line.endswith(';') for line in lines)


def anchors(lines):
    """The names that GitHub gives to headings."""
    return {re.sub(r'[^\w -]', '', m.group(1).replace('`', '').lower()).replace(' ', '-')
            for m in (re.match(r'#+ (.*)', line) for line in lines) if m}


def check_links(tree, path, n, line, out):
    for link in re.findall(r'\]\(([^)\s]+)\)', re.sub(r'`[^`]*`', '', line)):
        if re.match(r'\w+:', link):
            continue
        page, _, anchor = link.partition('#')
        to = os.path.normpath(os.path.join(os.path.dirname(path), page)) if page else path
        if not os.path.exists(os.path.join(tree, to)):
            out.append((path, n, f'links to {link}, which does not exist'))
        elif anchor and anchor not in anchors(lines_of(tree, to)):
            out.append((path, n, f'links to {link}, a heading that does not exist'))


def check_names(tree, files, tests, path, n, line, out):
    for name, function in re.findall(r'`([\w./-]+\.(?:c|h|py|sh))(?::(\w+))?`', line):
        where = named(files, name)
        if not where and not PLACEHOLDER.search(name):
            out.append((path, n, f'names {name}, which does not exist'))
        elif function and not any(defines(lines_of(tree, p), function) for p in where):
            out.append((path, n, f'names {function} of {name}, which has no such function'))
    for name in re.findall(r'`(test_\w+)`', line):
        if not PLACEHOLDER.search(name) and name not in tests and name + '.py' not in files and name + '.c' not in files:
            out.append((path, n, f'names the test {name}, which does not exist'))


def check(tree, out):
    files = files_of(tree)
    paths = [p for some in files.values() for p in some]
    tests = {t for p in paths if p.startswith('tests/') and p.endswith(('.c', '.py'))
             for t in re.findall(r'^(?:static void | *def )?(test_\w+)\(', '\n'.join(lines_of(tree, p)), re.M)}
    for path in sorted(p for p in paths if p.endswith('.md')):
        fenced = False
        for n, line in enumerate(lines_of(tree, path), 1):
            fenced ^= line.startswith('```')
            check_names(tree, files, tests, path, n, line, out)
            if not fenced:
                check_links(tree, path, n, line, out)


def self_test():
    """A page with one mistake of each kind, and right names beside them."""
    page = ['# A page', '', 'Right: `a.c`, `room/a.c:room_do`, `a.c:helper`, [here](#a-page), [there](docs/b.md#two-words), [web](https://x.example/y).',
            '`missing.c`', '`a.c:room_undo`', '`a.c:only_called`', '[b](docs/c.md)', '[b](docs/b.md#three)', '`test_nothing`']
    want = ['missing.c, which does not exist', 'room_undo of a.c', 'only_called of a.c', 'docs/c.md, which', '#three, a heading', 'test_nothing']
    source = ['static struct x *helper(int a)', '{', '\tonly_called(a);', '}', 'int room_do(int a,', '\t    int b)', '{', '}', 'void only_called(int a);']
    with tempfile.TemporaryDirectory() as d:
        for path, lines in (('README.md', page), ('docs/b.md', ['# B', '## Two words']), ('src/room/a.c', source)):
            os.makedirs(os.path.dirname(os.path.join(d, path)), exist_ok=True)
            with open(os.path.join(d, path), 'w') as f:
                f.write('\n'.join(lines) + '\n')
        out = []
        check(d, out)
    texts = [what for _, _, what in out]
    good = len(texts) == len(want) and all(w in t for w, t in zip(want, texts))
    if not good:
        print('self-test: documents: the findings are', texts)
    return 0 if good else 1


if __name__ == '__main__':
    if '--self-test' in sys.argv:
        sys.exit(self_test())
    findings = []
    check(sys.argv[1], findings)
    for where, line, text in findings:
        print(f'{where}:{line}: {text}')
    sys.exit(bool(findings))
