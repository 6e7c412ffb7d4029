#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the structure of the tree: the includes of each room, the symbols that
pure rooms link to, the length of functions and files, forbidden constructs, and
the English of comments and texts (english.py).

    check.py TREE [--objects BUILD]     prints each finding as FILE:LINE: finding: remedy
    check.py --self-test                checks bad trees and expects the findings
"""
import os, re, subprocess, sys, tempfile

import circles
import documents
import drawing
import english
import messages
import objects
import ratchets
import states_map
import wall
from objects import room_of, rooms

WARN_FUNCTION, MAX_FUNCTION, MAX_FILE = 60, 100, 1000
HARD = True  # whether findings of english.py and ratchets.py, and of documents, fail or only warn

# The symbols of the C library and of helper libraries that a pure room may use.
PURE_SYMBOLS = re.compile(r'''^(
    mem(cpy|set|cmp|move|chr|rchr)|str(len|cmp|ncmp|chr|rchr|str|cpy|nlen|cspn|spn|tol|toul|toull|toll)|
    __isoc\d+_strto\w+|malloc|calloc|realloc|free|aligned_alloc|(__)?explicit_bzero(_chk)?|
    v?snprintf|__v?snprintf_chk|__mem\w+_chk|__str\w+_chk|__assert_fail|abort|__stack_chk_fail|
    crc32_iscsi|crc16_t10dif|EVP_\w+|CRYPTO_memcmp|OPENSSL_cleanse|qsort|bsearch|
    __cpu_model|__cpu_indicator_init|__popcountdi2|_GLOBAL_OFFSET_TABLE_|
    __asan_\w+|__ubsan_\w+|__sanitizer_\w+|__sanitizer\w*
)$''', re.X)

FORBIDDEN = [
    (re.compile(r'__attribute__\(\(\s*packed|#pragma pack'), 'packed struct: decode with get/put functions'),
    (re.compile(r'\b(ntohs|ntohl|htons|htonl|be(16|32|64)toh|htobe(16|32|64)|le(16|32|64)toh|htole(16|32|64))\b'),
     'byte order by macro: decode with get/put functions in a codec file'),
    (re.compile(r'^\s+(unsigned|int|bool|uint\d+_t)\s+\w+\s*:\s*\d+\s*;'), 'bit-field: use masks and shifts'),
    (re.compile(r'\b(TODO|FIXME|XXX)\b(?!.*#\d)'), 'unfinished: name the issue (TODO #n) or finish the work'),
]
PURE_FORBIDDEN = [
    (re.compile(r'(?<![>.\w])(printf|fprintf|puts|getenv|time|clock_gettime|rand|random|pthread_\w+)\s*\('),
     'a pure room has no I/O, clock, environment or thread: pass the value as an argument'),
]
TRANSPORT = re.compile(r'if \(.*\btransport\b\s*==')


def sources(tree, top):
    for d, dirs, files in os.walk(os.path.join(tree, top)):
        dirs.sort()
        for f in sorted(files):
            if f.endswith(('.c', '.h')):
                yield os.path.relpath(os.path.join(d, f), tree)


def read(tree, path):
    with open(os.path.join(tree, path), errors='replace') as f:
        return f.read().split('\n')


def code_of(line):
    """The line without string literals and one-line comments."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return re.sub(r'/\*.*?\*/|//.*', '', line)


def check_includes(tree, path, lines, table, out):
    room = room_of(os.path.relpath(path, 'src'), table)
    if not room:
        out.append((path, 1, 'belongs to no room of tests/arch/rooms.txt: add its folder there'))
        return
    for n, line in enumerate(lines, 1):
        m = re.match(r'#include "([^"]+)"', line)
        if not m:
            continue
        other = room_of(m.group(1), table)
        if not other:   # a private header beside the file
            if os.path.exists(os.path.join(tree, os.path.dirname(path), m.group(1))) or \
               m.group(1).startswith('iser/'):
                continue
            out.append((path, n, f'"{m.group(1)}" is in no room'))
        elif other != room and not table[room][1] & {other, m.group(1)}:
            out.append((path, n, f'{room} may not include {other} (tests/arch/rooms.txt)'))


def check_lines(path, lines, pure, out):
    comment = False
    for n, line in enumerate(lines, 1):
        todo = FORBIDDEN[-1]
        if todo[0].search(line):
            out.append((path, n, todo[1]))
        text = code_of(line)
        if comment:
            if '*/' not in text:
                continue
            text = text.split('*/', 1)[1]
            comment = False
        if '/*' in text:
            comment = True
            text = text.split('/*', 1)[0]
        for pattern, what in FORBIDDEN[:-1] + (PURE_FORBIDDEN if pure else []):
            if pattern.search(text):
                out.append((path, n, what))
        if TRANSPORT.search(text) and not path.startswith('src/datamover') and not path.startswith('src/net'):
            out.append((path, n, 'code above the datamover must not depend on the transport'))


def check_sizes(path, lines, out, warnings):
    if len(lines) > MAX_FILE:
        out.append((path, 1, f'{len(lines)} lines, at most {MAX_FILE}: split the file by job'))
    start = None
    for n, line in enumerate(lines, 1):
        if line.startswith('{'):
            start = n
        elif line.startswith('}') and start:
            length = n - start + 1
            if line.rstrip() == '}' and length > MAX_FUNCTION:
                out.append((path, start, f'a function of {length} lines, at most {MAX_FUNCTION}'))
            elif line.rstrip() == '}' and length > WARN_FUNCTION:
                warnings.append((path, start, f'a function of {length} lines'))
            start = None


def check_tree(tree):
    out, warnings = [], []
    table = rooms(tree)
    for path in sources(tree, 'src'):
        lines = read(tree, path)
        room = room_of(os.path.relpath(path, 'src'), table)
        check_includes(tree, path, lines, table, out)
        check_lines(path, lines, bool(room) and table[room][0] == 'P', out)
        check_sizes(path, lines, out, warnings)
    for top in ('src', 'tests', 'include', 'bench', 'examples'):
        for path in sources(tree, top):
            lines = read(tree, path)
            if 'SPDX-License-Identifier: BSD-2-Clause' not in lines[0]:
                out.append((path, 1, 'the first line is not the SPDX line'))
            if top != 'src':
                check_sizes(path, lines, out, warnings)
    return out, warnings


def check_headers(tree, out):
    """Checks that each header compiles alone."""
    for top in ('src', 'include'):
        for path in sources(tree, top):
            if not path.endswith('.h'):
                continue
            r = subprocess.run(['gcc', '-std=gnu11', '-D_GNU_SOURCE', '-DOPENISER_VERSION=""', '-Wall', '-Wextra',
                                '-Wno-unused-function', '-Werror', '-fsyntax-only', '-Isrc', '-Iinclude',
                                '-I' + os.path.dirname(path), '-x', 'c', path],
                               cwd=tree, capture_output=True, text=True)
            if r.returncode:
                first = next((l for l in r.stderr.splitlines() if 'error' in l), 'error')
                out.append((path, 1, 'does not compile alone: ' + first))


def linked_rooms(room, table):
    """The rooms whose functions a room may call: those that it may include, and their own. A header that is named alone
    stands for its room and the rooms inside it; a room inside that room gets only its types."""
    seen, pending = set(), [room]
    while pending:
        r = pending.pop()
        if r in seen:
            continue
        seen.add(r)
        for entry in table[r][1]:
            if not entry.endswith('.h'):
                pending.append(entry)
                continue
            other = room_of(entry, table)
            if not r.startswith(other + '/'):
                pending += [x for x in table if x == other or x.startswith(other + '/') and table[x][0] == 'P']
    return seen


def check_objects(table, found, out):
    """Checks that pure rooms link to no function that does I/O or that they may not include, and have no writable global."""
    pure = [o for o in found if table[o.room][0] == 'P']
    for o in pure:
        for name in o.writable:
            out.append((o.where, 1, f'{o.room}: writable global {name}: a pure room has none'))
    for room in sorted({o.room for o in pure}):
        linked = linked_rooms(room, table)
        allowed = {name for o in found if o.room in linked for name in o.defined}
        for o in (x for x in pure if x.room == room):
            for name in sorted(o.undefined - allowed):
                if not PURE_SYMBOLS.match(name):
                    out.append((o.where, 1, f'{room}: links to {name}, which it may not'))


def check_format(tree, out):
    files = [p for top in ('src', 'tests', 'include', 'bench', 'examples') for p in sources(tree, top)]
    r = subprocess.run(['clang-format', '--dry-run', '-Werror'] + files, cwd=tree, capture_output=True, text=True)
    seen = set()
    for line in r.stderr.splitlines():
        m = re.match(r'(\S+?):(\d+):\d+: error', line)
        if m and m.group(1) not in seen:
            seen.add(m.group(1))
            out.append((m.group(1), int(m.group(2)), 'not formatted: run make format'))


def self_test():
    """Feeds each check a tree with the fault that the check must find."""
    bad = {
        'src/device/a.c': ('#include "net/net.h"\n', 'device may not include net'),
        'src/iscsi/b.c': ('struct __attribute__((packed)) x { int a; };\n', 'packed struct'),
        'src/iscsi/c.c': ('int f(void)\n{\n\treturn ntohl(1);\n}\n', 'byte order by macro'),
        'src/iscsi/d.c': ('struct x {\n\tunsigned a : 3;\n};\n', 'bit-field'),
        'src/target/e.c': ('/* TO' + 'DO: later */\n', 'unfinished'),
        'src/target/f.c': ('int f(void)\n{\n\tprintf("x");\n}\n', 'a pure room has no I/O'),
        'src/target/g.c': ('int f(void)\n{\n' + '\tx();\n' * 120 + '}\n', 'a function of 122 lines'),
        'src/target/h.c': ('\n' * 1100, '1101 lines'),
        'src/target/i.c': ('int f(void)\n{\n\tif (c->transport == TCP)\n\t\tx();\n}\n', 'must not depend'),
        'src/nowhere/j.c': ('int x;\n', 'belongs to no room'),
        'src/device/unit/l.c': ('#include "device/block/block.h"\n', 'device/unit may not include device/block'),
        'src/target/m.c': ('#include "device/unit/unit.h"\n', 'target may not include device/unit'),
    }
    failures = 0
    spdx = '/* SPDX-License-Identifier: BSD-2-Clause */\n'
    here = os.path.dirname(os.path.abspath(__file__))
    for path, (text, want) in list(bad.items()) + [('src/base/k.c', ('int x;\n', 'SPDX'))]:
        with tempfile.TemporaryDirectory() as d:
            os.makedirs(os.path.join(d, os.path.dirname(path)))
            os.makedirs(os.path.join(d, 'tests/arch'))
            with open(os.path.join(here, 'rooms.txt')) as src, open(os.path.join(d, 'tests/arch/rooms.txt'), 'w') as dst:
                dst.write(src.read())
            with open(os.path.join(d, path), 'w') as f:
                f.write(text if want == 'SPDX' else spdx + text)
            found = [w for _, _, w in check_tree(d)[0]]
            ok = any(want in w for w in found)
            if want == '1101 lines':
                ok = any('lines, at most' in w for w in found)
            if want.startswith('a function'):
                ok = any('a function of' in w for w in found)
            if not ok:
                failures += 1
                print(f'self-test: {path}: expected "{want}", found {found}')
    # a tree without faults gives no findings
    with tempfile.TemporaryDirectory() as d:
        os.makedirs(os.path.join(d, 'src/device'))
        os.makedirs(os.path.join(d, 'tests/arch'))
        with open(os.path.join(here, 'rooms.txt')) as src, open(os.path.join(d, 'tests/arch/rooms.txt'), 'w') as dst:
            dst.write(src.read())
        with open(os.path.join(d, 'src/device/a.c'), 'w') as f:
            f.write(spdx + '#include "base/bytes.h"\nint f(void)\n{\n\treturn 0;\n}\n')
        found, _ = check_tree(d)
        if found:
            failures += 1
            print('self-test: a tree without faults gives', found)
    # objects: a pure room and a driver room with the same faults, and what a pure room may use
    with tempfile.TemporaryDirectory() as d:
        fault = 'int puts(const char *); int io_f(void); int {0}_n; void {0}_g(void) {{ puts(""); io_f(); base_f(); }}'
        found = objects.read_sample(d, 'base P :\ncluster P : base\nio D : base\n', {
            ('libbase.a', 'base/b.c'): 'int base_f(void) { return 0; }', ('libcluster.a', 'cluster/c.c'): fault.format('cluster'),
            ('libio.a', 'io/i.c'): 'int io_f(void) { return 0; }' + fault.format('io')})
        out = []
        check_objects(rooms(d), found, out)
        texts = sorted(what for _, _, what in out)
        if texts != ['cluster: links to io_f, which it may not', 'cluster: links to puts, which it may not',
                     'cluster: writable global cluster_n: a pure room has none']:
            failures += 1
            print('self-test: the findings of objects are', texts)
    print('self-test:', 'ok' if not failures else f'{failures} failures')
    return 1 if failures else 0


def main():
    if '--self-test' in sys.argv:
        return self_test() | circles.self_test() | documents.self_test() | drawing.self_test() | english.self_test() | messages.self_test() | ratchets.self_test() | states_map.self_test() | wall.self_test()
    tree = sys.argv[1]
    out, warnings = check_tree(tree)
    check_headers(tree, out)
    check_format(tree, out)
    counted = out if HARD else []
    documents.check(tree, counted)
    drawing.check(tree, counted)
    english.check(tree, counted)
    states_map.check(tree, counted)
    found = None
    if '--objects' in sys.argv:
        found = objects.read_build(tree, sys.argv[sys.argv.index('--objects') + 1], rooms(tree))
        check_objects(rooms(tree), found, out)
        circles.check(tree, found, out, warnings)
        wall.check(found, out)
    ratchets.check(tree, found, counted, warnings)
    if not HARD and counted:
        print(f'{len(counted)} new findings of the checks that only warn')
    for path, line, what in warnings:
        print(f'{path}:{line}: warning: {what}')
    for path, line, what in out:
        print(f'{path}:{line}: {what}')
    print(f'{len(out)} findings, {len(warnings)} warnings')
    return 1 if out else 0


if __name__ == '__main__':
    sys.exit(main())
