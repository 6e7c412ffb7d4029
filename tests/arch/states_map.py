#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each transition of the state tables of RFC 7143 section 8 has a test that takes it, by its number. check.py calls this check.

    states_map.py TREE --write    writes the list of the tests to docs/states.md
    states_map.py --self-test     checks bad trees and expects the findings

A test names a transition by assert_took(ROLE, "T5") of tests/unit/took.h, which fails unless the code of the role has taken it.
The rows are those of src/iscsi/states.c. For a row of the standard that is not there, tests/arch/states.txt has a line
"T2 initiator | reason", or "M3 target | reason | test" with a test of the event, whose name has the number.
"""
import os, re, sys, tempfile

TABLE, REASONS, PAGE = 'src/iscsi/states.c', 'tests/arch/states.txt', 'docs/states.md'
MARK = '<!-- written by tests/arch/states_map.py -->\n'
ROW = re.compile(r'\{ ISCSI_\w+,\s*ISCSI_\w+,\s*(INI|TGT|BOTH),\s*"([A-Z0-9 ]+)" \}')
CALL = re.compile(r'^static void (test_\w+)|assert_took\((?:ISCSI_)?(INI|TGT)\w*, "(\w+)"\)', re.M)
ROLES = {'INI': ['initiator'], 'TGT': ['target'], 'BOTH': ['initiator', 'target']}


def numbers(text):
    """T3-5 M1 -> T3 T4 T5 M1"""
    for word in text.split():
        a, _, b = word[1:].partition('-')
        for n in range(int(a), int(b or a) + 1):
            yield f'{word[0]}{n}'


# RFC 7143 §8.1.3, §8.1.4, §8.2, §8.3.1, §8.3.2
STANDARD = {(n, role) for role, text in (('initiator', 'T1-2 T4-5 T7-18 M1-4 N1 N3-6'),
                                         ('target', 'T3-13 T15-18 M1-4 N1-3 N5-11')) for n in numbers(text)}


def read(tree, path):
    with open(os.path.join(tree, path)) as f:
        return f.read()


def rows_of(text):
    return {(n, role) for roles, names in ROW.findall(text) for n in names.split() for role in ROLES[roles]}


def reasons_of(text, out):
    """Returns {(row, role): (reason, test or None)}."""
    found = {}
    for n, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith('#'):
            continue
        m = re.match(r'([TMN]\d+) (initiator|target) \| ([^|]+?)(?: \| (test_\w+))?$', line)
        if m and (m[1], m[2]) not in found:
            found[m[1], m[2]] = (m[3], m[4])
        else:
            out.append((REASONS, n, 'not "NUMBER ROLE | REASON" or "NUMBER ROLE | REASON | TEST", or a second line for the row'))
    return found


def tests_of(tree):
    """Returns {(row, role): [(test, file)]} and {test: file} of the unit tests."""
    took, tests = {}, {}
    for d, dirs, names in os.walk(os.path.join(tree, 'tests/unit')):
        dirs.sort()
        for path in (os.path.relpath(os.path.join(d, n), tree) for n in sorted(names) if n.endswith('_test.c')):
            test = None
            for name, role, number in CALL.findall(read(tree, path)):
                if name:
                    test = name
                    tests[name] = path
                elif test:
                    took.setdefault((number, ROLES[role][0]), []).append((test, path))
    return took, tests


def key_of(row):
    return 'TMN'.index(row[0][0]), int(row[0][1:]), row[1]


def compare(rows, reasons, took, tests, out):
    for row in sorted(STANDARD | rows, key=key_of):
        name = f'{row[0]} of the {row[1]}'
        if row not in STANDARD:
            out.append((TABLE, 1, f'{name} is no transition of RFC 7143 §8'))
        elif row in rows and row in reasons:
            out.append((REASONS, 1, f'{name} is in {TABLE}; remove the line'))
        elif row in rows and row not in took:
            out.append((TABLE, 1, f'no test takes {name}; write one with assert_took'))
        elif row not in rows and row not in reasons:
            out.append((REASONS, 1, f'{name} is not in {TABLE}; give the reason'))
    for row in sorted(set(took) - rows, key=key_of):
        out.append((took[row][0][1], 1, f'assert_took names {row[0]} of the {row[1]}, which is not in {TABLE}'))
    for row, (_, test) in reasons.items():
        if test and (test not in tests or row[0].lower() not in test.split('_')):
            out.append((REASONS, 1, f'{row[0]} of the {row[1]}: {test} is no test with that number in its name'))


def collect(tree, out):
    rows, reasons = rows_of(read(tree, TABLE)), reasons_of(read(tree, REASONS), out)
    took, tests = tests_of(tree)
    compare(rows, reasons, took, tests, out)
    return rows, reasons, took, tests


def where(test, path):
    return f'`{test}` ({path.removeprefix("tests/unit/").removesuffix(".c")})'


def render(rows, reasons, took, tests):
    lines = ['', '## Tests of the transitions', '', 'Each test fails unless the code of the role takes the transition.', '',
             '| transition | role | test |', '|---|---|---|']
    for row in sorted(rows, key=key_of):
        refs = dict.fromkeys(where(*x) for x in took.get(row, []))
        lines.append(f'| {row[0]} | {row[1]} | {"<br>".join(refs)} |')
    lines += ['', 'Transitions of RFC 7143 section 8 that the tables above do not have:', '', '| transition | role | reason | test of the event |', '|---|---|---|---|']
    for row in sorted(reasons, key=key_of):
        reason, test = reasons[row]
        lines.append(f'| {row[0]} | {row[1]} | {reason} | {where(test, tests.get(test, "")) if test else ""} |')
    return '\n'.join(lines) + '\n'


def check(tree, out):
    found = []
    text = render(*collect(tree, found))
    if not found and read(tree, PAGE).partition(MARK)[2] != text:
        found.append((PAGE, 1, 'is out of date: python3 tests/arch/states_map.py . --write'))
    out += found


def self_test():
    table = ''.join(f'{{ ISCSI_A, ISCSI_B, {"INI" if role == "initiator" else "TGT"}, "{n}" }},\n' for n, role in sorted(STANDARD - {('T2', 'initiator')}))
    calls = 'static void test_all_m3(void **state)\n' + ''.join(
        f'\tassert_took({"INI" if role == "initiator" else "ISCSI_TGT"}, "{n}");\n' for n, role in sorted(STANDARD - {('T2', 'initiator')}))
    good = (table, 'T2 initiator | the library connects\n', calls)
    cases = ((good, None), ((table.replace('"T5"', '"T19"'), good[1], calls), 'T19 of the initiator is no transition'),
             ((table, '', calls), 'T2 of the initiator is not in'), ((table, 'T2 | why\n', calls), 'not "NUMBER ROLE'),
             ((table, good[1] + 'T3 target | no\n', calls), 'T3 of the target is in'),
             ((table, good[1], calls.replace('assert_took(INI, "T5")', '')), 'no test takes T5 of the initiator'),
             ((table, good[1], calls + 'assert_took(INI, "T2");'), 'names T2 of the initiator'),
             ((table, 'T2 initiator | no | test_all_m3\n', calls), 'is no test with that number'))
    failures = 0
    for (rows, reasons, tests), want in cases:
        with tempfile.TemporaryDirectory() as d:
            for path, text in ((TABLE, rows), (REASONS, reasons), ('tests/unit/x/a_test.c', tests), (PAGE, '')):
                os.makedirs(os.path.join(d, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(d, path), 'w') as f:
                    f.write(text)
            out = []
            collect(d, out)
            if bool(out) != bool(want) or want and not any(want in w for _, _, w in out):
                failures += 1
                print(f'self-test: expected "{want}", found {out}')
    print('states_map self-test:', 'ok' if not failures else f'{failures} failures')
    return 1 if failures else 0


def main():
    if '--self-test' in sys.argv:
        return self_test()
    tree, out = sys.argv[1], []
    text = render(*collect(tree, out))
    if '--write' in sys.argv:
        head = read(tree, PAGE).partition(MARK)[0]
        with open(os.path.join(tree, PAGE), 'w') as f:
            f.write(head + MARK + text)
    else:
        check(tree, out)
    for path, line, what in out:
        print(f'{path}:{line}: {what}')
    return 1 if out else 0


if __name__ == '__main__':
    sys.exit(main())
