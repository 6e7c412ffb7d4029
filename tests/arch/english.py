#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts words and phrases that docs/HACKING.md ("Language") excludes, per room.

    english.py TREE [ROOM...]     prints each finding, of these rooms only if any are named
    english.py TREE --check       compares the counts with tests/arch/english.txt
    english.py TREE --update      lowers the numbers of tests/arch/english.txt to the counts
    english.py --self-test        checks bad texts and expects the findings

The check reads comments and string literals of C files, comments and docstrings of Python files, comments of shell scripts, the text
of Markdown files without code spans, and man pages. A Markdown file may exclude a passage: <!-- english: off --> ... <!-- english: on -->.
"""
import io
import os
import re
import sys
import tokenize

TOPS = ('README.md', 'CHANGELOG.md', 'src', 'include', 'tests', 'bench', 'scripts', 'docs', 'examples', 'python')
# generated files, and files that must name the excluded words
EXCLUDED = ('docs/check/coverage.md', 'tests/arch/english.py', 'tests/arch/check.py')
SLACK = None  # how far a count may lie below the number of english.txt; None: any distance

ACTOR = 'name the actor: initiator, caller, administrator, Linux'
COMMON = 'metaphor: use the term of the standards or of systems code'
WORDS = [
    (r'nobody|no one|somebody|someone|anybody|everybody|whoever|whosoever|people|a person|the world|the others', ACTOR),
    (r'mourners?|mourns?|forgives?|forgave|forgiven|forgiving|hinders?|hindered|doomed|ragged|torn|judges?|judged|judging|trio|rigs?|sweeps?'
     r'|parting|seals?|sealed|plugs?|faces?|asleep|falls? asleep|sleepers?', COMMON),
    (r'under way|underway|at work|just now|just being', 'say "in progress"'),
    (r'stays? it|stayed it', 'say "stays so"'),
    (r'by chance|a chance|no chance|chance and|time and chance', 'say "random bytes" or "possible"'),
    (r'has not (?:a|an|any|enough|its|the|\d+)|have not (?:a|an|any|enough|their|the|\d+)', 'say "does not have"'),
    (r'(?<!there )(?<!nor )is no (?!longer|more|less|limit|room|need|way|such)[a-z]+', 'say "is not a"'),
    (r'behind (?:it|them|that|this|a|an|the|its)', 'of time and order: say "after"'),
    (r'tells?|told', 'say "reports", "sends" or "asks"'),
    (r'for want of|to be had|be had|whose it|as it may', 'say it directly'),
]
# A sentence whose subject is a clause.
CLAUSE = re.compile(r'(?:^|[.;:] +)((?:Who|Whose) [a-z]+|What (?:is|was|has|can|must|may|would|comes|came|goes|does)\b)(?![^.;]*\?)')
WORD = [(re.compile(r'\b(?:' + pattern + r')\b', re.I), advice) for pattern, advice in WORDS]


def c_texts(text):
    """(line, text) of each comment and string literal of a C file."""
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
    for m in token.finditer(text):
        if m[0].startswith(('/', '"')) and not text.endswith('#include ', 0, m.start()):
            yield text.count('\n', 0, m.start()) + 1, m[0]


def python_texts(text):
    """(line, text) of each comment and docstring of a Python file."""
    fresh = True  # at the start of a statement, where a string is a docstring
    for t in tokenize.generate_tokens(io.StringIO(text).readline):
        if t.type == tokenize.COMMENT or t.type == tokenize.STRING and fresh:
            yield t.start[0], t.string
        if t.type not in (tokenize.COMMENT, tokenize.NL):
            fresh = t.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)


def shell_texts(text):
    for n, line in enumerate(text.split('\n'), 1):
        m = re.search(r'(?:^|\s)#(?!!)(.*)', line)
        if m:
            yield n, m[1]


def markdown_texts(text):
    skip = False
    for n, line in enumerate(text.split('\n'), 1):
        if line.startswith('<!-- english: '):
            skip = 'off' in line
        elif not skip:
            yield n, re.sub(r'`[^`]*`', '', line)


def man_texts(text):
    for n, line in enumerate(text.split('\n'), 1):
        if not line.startswith('.'):
            yield n, line


def reader_of(path, text):
    """The function that finds the prose of a file, or None."""
    if path.endswith(('.c', '.h')):
        return c_texts
    if path.endswith('.py') or re.match(r'#!.*python', text):
        return python_texts
    if path.endswith('.sh') or re.match(r'#!.*\bsh\b|#!.*bash', text) or path.startswith('tests/lab/jobs/'):
        return shell_texts
    if path.endswith('.md'):
        return markdown_texts
    if re.search(r'docs/man/.*\.\d$', path):
        return man_texts
    return None


def findings_in(path, text):
    """(line, word, advice) of each finding in a file."""
    reader = reader_of(path, text)
    for start, piece in reader(text) if reader else ():
        # a phrase may be broken at the end of a line: join lines, and remember where each begins
        joined, starts = '', []
        for line in piece.split('\n'):
            starts.append(len(joined))
            joined += re.sub(r'^\s*(?:/\*+|\*/|\*|#+|//|["\']+)?\s*', '', line) + ' '
        places = [(m.start(), m[0], advice) for pattern, advice in WORD for m in pattern.finditer(joined)]
        places += [(m.start(1), m[1], 'a clause as subject: begin with a noun') for m in CLAUSE.finditer(joined)]
        for at, word, advice in sorted(places):
            yield start + sum(1 for s in starts if s <= at) - 1, word, advice


def room_of(path):
    """The name under which a file's findings count: the folder of src or of tests/unit, so that rooms can be divided."""
    parts = path.split('/')
    if parts[0] == 'src' and len(parts) > 2:
        return parts[1]
    if parts[0] == 'tests' and len(parts) > 2:
        return '/'.join(parts[:3] if parts[1] == 'unit' and len(parts) > 3 else parts[:2])
    return parts[0]


def files(tree):
    for top in TOPS:
        if os.path.isfile(os.path.join(tree, top)):
            yield top
        for folder, folders, names in os.walk(os.path.join(tree, top)):
            folders[:] = sorted(d for d in folders if d not in ('corpus', 'vectors', '__pycache__'))
            for name in sorted(names):
                yield os.path.relpath(os.path.join(folder, name), tree)


def all_findings(tree):
    """{room: [(path, line, word, advice)]}, with an entry for each room that has prose."""
    found = {}
    for path in files(tree):
        if path in EXCLUDED:
            continue
        with open(os.path.join(tree, path), errors='replace') as f:
            text = f.read()
        if reader_of(path, text):
            found.setdefault(room_of(path), []).extend((path, n, w, a) for n, w, a in findings_in(path, text))
    return found


def read_numbers(tree):
    numbers = {}
    path = os.path.join(tree, 'tests/arch/english.txt')
    if os.path.exists(path):
        with open(path) as f:
            for line in f:
                if line.strip() and not line.startswith('#'):
                    room, number = line.split()
                    numbers[room] = int(number)
    return numbers


def write_numbers(tree, numbers):
    with open(os.path.join(tree, 'tests/arch/english.txt'), 'w') as f:
        f.write('# Findings of tests/arch/english.py in each room. The numbers may only fall: english.py . --update\n')
        for room in sorted(numbers):
            f.write(f'{room:24} {numbers[room]}\n')


def check(tree, out, slack=SLACK):
    """Appends (path, line, what) for each room whose count is higher than its number, or further below the number than slack."""
    numbers = read_numbers(tree)
    for room, found in sorted(all_findings(tree).items()):
        number = numbers.get(room, 0)
        if len(found) > number:
            out.append(('tests/arch/english.txt', 1, f'{room}: {len(found)} findings, at most {number}: mend the new ones of these'))
            out.extend((path, line, f'"{word}": {advice}') for path, line, word, advice in found)
        elif slack is not None and number - len(found) > slack:
            out.append(('tests/arch/english.txt', 1, f'{room}: {len(found)} findings, {number} in the file: run english.py . --update'))


def update(tree):
    """Lowers the numbers; a room that is new to the file gets its count. Returns the rooms whose count is too high."""
    numbers, found = read_numbers(tree), all_findings(tree)
    fresh = not numbers
    risen = [r for r in found if not fresh and len(found[r]) > numbers.get(r, 0)]
    write_numbers(tree, {r: len(found[r]) if r not in risen else numbers.get(r, 0) for r in found if r not in risen or r in numbers})
    return risen


def self_test():
    cases = [
        ('a.c', '/* Nobody\n * reads it. */\nint x;\n', [(1, 'Nobody')]),
        ('a.c', 'f("a doomed task");\nint judge; // a hinder\n', [(1, 'doomed'), (2, 'hinder')]),
        ('a.c', '#include "rig/x.h"\n/* one\n * request under\n * way */\n', [(3, 'under\n way')]),
        ('a.c', '/* There is no page. It is no page. */\n', [(1, 'is no page')]),
        ('a.c', '/* What is left stays. Whose lane ends? */\n', [(1, 'What is')]),
        ('a.py', '# whoever\nx = "nobody"\ndef f():\n    """The trio."""\n', [(1, 'whoever'), (4, 'trio')]),
        ('a.md', 'torn `torn`\n<!-- english: off -->\ntorn\n<!-- english: on -->\nragged\n', [(1, 'torn'), (5, 'ragged')]),
        ('docs/man/x.8', '.It Cm torn\nIt stays it.\n', [(2, 'stays it')]),
        ('a.sh', 'x=nobody # nobody\n', [(1, 'nobody')]),
    ]
    failures = 0
    for path, text, want in cases:
        found = [(n, w) for n, w, _ in findings_in(path, text)]
        if found != [(n, w.replace('\n', '')) for n, w in want]:
            failures += 1
            print(f'self-test: {path}: {text!r}: expected {want}, found {found}')
    print('english self-test:', 'ok' if not failures else f'{failures} failures')
    return 1 if failures else 0


def main():
    if '--self-test' in sys.argv:
        return self_test()
    tree, rest = sys.argv[1], sys.argv[2:]
    if rest == ['--update']:
        risen = update(tree)
        for room in risen:
            print(f'{room}: the count is higher than the number: english.py . {room} shows the findings')
        return 1 if risen else 0
    out = []
    if rest == ['--check']:
        check(tree, out)
    else:
        out = [(p, n, f'"{w}": {a}') for room, found in sorted(all_findings(tree).items()) if not rest or room in rest
               for p, n, w, a in found]
    for path, line, what in out:
        print(f'{path}:{line}: {what}')
    print(f'{len(out)} findings')
    return 1 if rest == ['--check'] and out else 0


if __name__ == '__main__':
    sys.exit(main())
