#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the clauses of tests/arch/spec with the marks in the tree, and makes the page spec-map.md of both, which the build installs.

    spec_map.py TREE                 checks marks and clauses
    spec_map.py TREE --write FILE    writes the page
    spec_map.py --self-test          checks bad trees and expects the findings

tests/arch/spec/rfcN.txt has a line for each MUST and MUST NOT: "SECTION #N | requirement", in the order of the RFC. If openiser has
no function for the clause, a second bar gives the reason: "not implemented: REASON", or "none: REASON" if the clause requires
nothing from this software. The script copies a line that begins with "#: " to the text before the table.

A mark is a comment above a function (src) or a test (tests): [RFC 7145: 7.3.5 #3-5 #8, 9.5.2 #6]. Every clause needs a mark in
both, unless the list has a reason; every mark must name a clause of the list and must stand above a function.
"""
import os, re, sys, tempfile

MARK = re.compile(r'\[RFC (\d{4}): ([^\]]*)\]')
FUNCTION = re.compile(r'^(?:[a-z].*[ *])?([a-z_][a-z0-9_]*)\(', re.I)
PYTHON = re.compile(r'^\s*def (\w+)\(')


def read_list(path, out, name):
    """Returns {(section, n): (text, reason)} in order; the key None has the text before the table."""
    clauses, last = {None: ''}, None
    with open(path) as f:
        for n, line in enumerate(f, 1):
            line = line.rstrip('\n')
            if line.startswith('#: '):
                clauses[None] += line[3:] + '\n'
            if not line or line.startswith('#'):
                continue
            m = re.match(r'(\d+(?:\.\d+)*) #(\d+) \| ([^|]+?)(?: \| ((?:not implemented|none): .+))?$', line)
            if not m:
                out.append((name, n, 'not "SECTION #N | requirement | not implemented: REASON"'))
                continue
            key = (m[1], int(m[2]))
            want = last[1] + 1 if last and last[0] == m[1] else 1
            if key[1] != want:
                out.append((name, n, f'{m[1]} #{m[2]} comes where #{want} should'))
            if key in clauses:
                out.append((name, n, f'{m[1]} #{m[2]} is listed twice'))
            clauses[key] = (m[3], m[4])
            last = key
    return clauses


def expand(text):
    """Returns the clauses of '7.3.5 #3-5 #8, 9.5.2 #6', or None if the text has another form."""
    keys = []
    for part in re.sub(r'\s*\n\s*(?:\*|#(?!\d))?\s*', ' ', text).split(','):
        m = re.match(r'\s*(\d+(?:\.\d+)*)((?: #\d+(?:-\d+)?)+)\s*$', part)
        if not m:
            return None
        for item in m[2].split():
            a, _, b = item[1:].partition('-')
            keys += [(m[1], n) for n in range(int(a), int(b or a) + 1)]
    return keys


def function_below(lines, n, python):
    """Returns the name of the first function that is defined after line n (from 0)."""
    for line in lines[n:n + 40]:
        m = PYTHON.match(line) if python else FUNCTION.match(line)
        if m:
            return m[1]
        if not python and line.startswith('}'):
            return None
    return None


def marks_of(tree, path, out):
    """Yields (rfc, clause, function, line) of each mark in a file."""
    with open(os.path.join(tree, path), errors='replace') as f:
        text = f.read()
    lines = text.split('\n')
    for m in MARK.finditer(text):
        line = text.count('\n', 0, m.start()) + 1
        keys = expand(m[2])
        if keys is None:
            out.append((path, line, f'not a mark: {m[0]}'))
            continue
        below = text.count('\n', 0, m.end())
        name = function_below(lines, below + (0 if path.endswith('.py') else 1), path.endswith('.py'))
        if not name:
            out.append((path, line, 'a mark above no function'))
            continue
        for key in keys:
            yield m[1], key, name, line


def files(tree, top):
    for d, dirs, names in os.walk(os.path.join(tree, top)):
        dirs.sort()
        for f in sorted(names):
            path = os.path.relpath(os.path.join(d, f), tree)
            if f.endswith(('.c', '.h', '.py')) and not path.startswith('tests/arch'):
                yield path


def collect(tree):
    """Returns the clause lists, the marks of each clause, and the findings."""
    out, lists, found = [], {}, {}
    folder = os.path.join(tree, 'tests/arch/spec')
    for f in sorted(os.listdir(folder)):
        name = os.path.join('tests/arch/spec', f)
        lists[re.sub(r'\D', '', f)] = read_list(os.path.join(folder, f), out, name)
    for top in ('src', 'tests'):
        for path in files(tree, top):
            for rfc, key, name, line in marks_of(tree, path, out):
                if key not in lists.get(rfc, {}):
                    out.append((path, line, f'[RFC {rfc}: {key[0]} #{key[1]}] is not a clause of tests/arch/spec/rfc{rfc}.txt'))
                    continue
                if top == 'tests' and not name.startswith('test_'):
                    out.append((path, line, f'{name} is not a test'))
                found.setdefault((rfc, key), {'src': [], 'tests': []})[top].append((path, name))
    for rfc, clauses in lists.items():
        for key in filter(None, clauses):
            reason = clauses[key][1]
            at, where = f'tests/arch/spec/rfc{rfc}.txt', found.get((rfc, key))
            if reason and where:
                out.append((at, 1, f'{key[0]} #{key[1]}: "{reason}", but {where} has a mark'))
            for top, what in (('src', 'function implements'), ('tests', 'test checks')):
                if not reason and not (where and where[top]):
                    out.append((at, 1, f'{key[0]} #{key[1]}: no {what} it'))
    return lists, found, out


def section_key(key):
    return [int(x) for x in key[0].split('.')], key[1]


def names(refs):
    seen = []
    for path, name in refs:
        text = f'`{name}` ({os.path.splitext(path.split("/", 1)[1])[0]})'
        if text not in seen:
            seen.append(text)
    return '<br>'.join(seen)


def render(lists, found):
    out = ['# Clauses, functions, tests', '',
           'Generated by `tests/arch/spec_map.py` from the clause lists in `tests/arch/spec` and the marks in code and tests.',
           'Each MUST and MUST NOT in the order of its RFC, paraphrased.', '']
    for rfc, clauses in sorted(lists.items(), reverse=True):
        prose = clauses.pop(None)
        done = [k for k in clauses if not clauses[k][1]]
        missing = [k for k in clauses if (clauses[k][1] or '').startswith('not implemented')]
        out += [f'## RFC {rfc}', '', f'{len(clauses)} clauses: {len(done)} implemented, {len(missing)} not implemented, '
                f'{len(clauses) - len(done) - len(missing)} that require nothing from this software.', '', prose,
                '| clause | requirement | implemented by | tested by |', '|---|---|---|---|']
        for key in sorted(clauses, key=section_key):
            text, reason = clauses[key]
            where = found.get((rfc, key), {'src': [], 'tests': []})
            cells = ('–', reason.partition(': ')[2] if reason.startswith('none') else '**' + reason.replace(':', ':**', 1)) \
                if reason else (names(where['src']), names(where['tests']))
            out.append(f'| §{key[0]} #{key[1]} | {text} | {cells[0]} | {cells[1]} |')
        out.append('')
    return '\n'.join(out)


def self_test():
    good = {
        'tests/arch/spec/rfc9999.txt': '1.1 #1 | one\n1.1 #2 | two | not implemented: no need\n',
        'src/a.c': '/* Does it. [RFC 9999: 1.1 #1] */\nint f(int a)\n{\n}\n',
        'tests/a_test.c': '/* [RFC 9999: 1.1\n * #1] */\nstatic void test_f(void **state)\n{\n}\n',
    }
    bad = [
        ('src/a.c', '/* [RFC 9999: 1.1 #3] */\nint f(void)\n{\n}\n', 'is not a clause'),
        ('src/a.c', '/* [RFC 9999: 1.1] */\nint f(void)\n{\n}\n', 'not a mark'),
        ('src/a.c', '/* [RFC 9999: 1.1 #1] */\n', 'above no function'),
        ('src/a.c', 'int f(void)\n{\n}\n', 'no function implements'),
        ('src/a.c', '/* [RFC 9999: 1.1 #1-2] */\nint f(void)\n{\n}\n', ', but '),
        ('tests/a_test.c', 'static void test_f(void **state)\n{\n}\n', 'no test checks'),
        ('tests/a_test.c', '/* [RFC 9999: 1.1 #1] */\nstatic void begin(void)\n{\n}\n', 'is not a test'),
        ('tests/arch/spec/rfc9999.txt', '1.1 #2 | two\n', 'comes where #1 should'),
        ('tests/arch/spec/rfc9999.txt', 'unknown\n', 'not "SECTION'),
    ]
    failures = 0
    for path, text, want in [(None, None, None)] + bad:
        with tempfile.TemporaryDirectory() as d:
            for p, t in dict(good, **({path: text} if path else {})).items():
                os.makedirs(os.path.dirname(os.path.join(d, p)), exist_ok=True)
                with open(os.path.join(d, p), 'w') as f:
                    f.write(t)
            found = [w for _, _, w in collect(d)[2]]
            if (want is None and found) or (want and not any(want in w for w in found)):
                failures += 1
                print(f'self-test: expected "{want}", found {found}')
    print('self-test:', 'ok' if not failures else f'{failures} failures')
    return 1 if failures else 0


def main():
    if '--self-test' in sys.argv:
        return self_test()
    tree = sys.argv[1]
    lists, found, out = collect(tree)
    if '--write' in sys.argv:
        if sys.argv[-1] == '--write':
            print('spec_map: --write: no file is named; for example: --write spec-map.md')
            return 2
        with open(sys.argv[sys.argv.index('--write') + 1], 'w') as f:
            f.write(render(lists, found))
        return 0
    for p, line, what in out:
        print(f'{p}:{line}: {what}')
    print(f'{len(out)} findings')
    return 1 if out else 0


if __name__ == '__main__':
    sys.exit(main())
