#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks of the structure that allow a list of known exceptions: tests/arch/ratchets.txt. A new exception fails; an exception
that is no longer needed is a warning. check.py calls these checks.

    ratchets.py TREE [BUILD] [--update]     prints the findings; --update removes exceptions that are no longer needed
    ratchets.py --self-test                 checks bad trees and expects the findings

A line of ratchets.txt is one of:
    reach ROOM OTHER        a file of ROOM may see OTHER through the headers that it includes, although rooms.txt forbids OTHER
    atomic FOLDER NAME...   the objects that code in src/FOLDER, except io, may access with atomic operations
    prefix LIBRARY NAME...  the prefixes of the external symbols of a library
    members STRUCT NUMBER   how many members a struct may have instead of MAX_MEMBERS
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

MAX_MEMBERS = 30
BUILTIN = re.compile(r'__(?:atomic|sync)_\w+\(\s*([^,;]*?)\s*[,)]')
QUALIFIED = re.compile(r'_Atomic[ \w]*?(\w+);|\batomic_\w+ (\w+);')
FILE = 'tests/arch/ratchets.txt'


def sources(tree):
    """{path below src: text}"""
    found = {}
    for folder, folders, names in os.walk(os.path.join(tree, 'src')):
        folders.sort()
        for name in sorted(names):
            if name.endswith(('.c', '.h')):
                path = os.path.join(folder, name)
                with open(path, errors='replace') as f:
                    found[os.path.relpath(path, os.path.join(tree, 'src'))] = f.read()
    return found


def read_exceptions(tree):
    """{(kind, key): {name}} of ratchets.txt"""
    found = {}
    path = os.path.join(tree, FILE)
    if os.path.exists(path):
        with open(path) as f:
            for line in f:
                words = line.split('#')[0].split()
                if words:
                    found.setdefault((words[0], words[1]), set()).update(words[2:])
    return found


def write_exceptions(tree, exceptions):
    with open(os.path.join(tree, FILE), 'w') as f:
        f.write('# Exceptions to the checks of tests/arch/ratchets.py, which describes the lines. The lists may only shrink.\n')
        for (kind, key), names in sorted(exceptions.items()):
            if kind == 'reach':
                f.writelines(f'reach {key} {name}\n' for name in sorted(names))
            elif names:
                f.write(f'{kind} {key} {" ".join(sorted(names))}\n')


def read_rooms(tree):
    """{room: what it may include}"""
    table = {}
    with open(os.path.join(tree, 'tests/arch/rooms.txt')) as f:
        for line in f:
            line = line.split('#')[0].strip()
            if line:
                head, allowed = line.split(':')
                table[head.split()[0]] = set(allowed.split())
    return table


def room_of(path, table):
    folder = os.path.dirname(path)
    while folder and folder not in table:
        folder = os.path.dirname(folder)
    return folder


def reached(path, includes):
    """{header: the file that includes it} of all headers that a file sees."""
    seen, pending = {}, [path]
    while pending:
        at = pending.pop()
        for header in includes.get(at, ()):
            if header not in seen:
                seen[header] = at
                pending.append(header)
    return seen


def find_reach(tree, files):
    """{('reach', room): {other: (path, via, header)}}: rooms that are visible only through other headers."""
    table, includes, found = read_rooms(tree), {}, {}
    for path, text in files.items():
        names = re.findall(r'^#include "([^"]+)"', text, re.M)
        beside = [os.path.normpath(os.path.join(os.path.dirname(path), n)) for n in names]
        includes[path] = [n if n in files else b for n, b in zip(names, beside) if n in files or b in files]
    for path in files:
        room = room_of(path, table)
        for header, via in reached(path, includes).items():
            other = room_of(header, table)
            if room and other and other != room and via != path and not table[room] & {other, header}:
                found.setdefault(('reach', room), {}).setdefault(other, (path, via, header))
    return found


def find_atomics(files):
    """{('atomic', folder): {name: path}} outside io."""
    found = {}
    for path, text in files.items():
        folder = path.split('/')[0]
        if folder == 'io':
            continue
        for m in BUILTIN.finditer(text):
            words = re.findall(r'\w+', re.sub(r'\[[^\]]*\]', '', m[1]))
            found.setdefault(('atomic', folder), {}).setdefault(words[-1] if words else '?', path)
        for m in QUALIFIED.finditer(text):
            found.setdefault(('atomic', folder), {}).setdefault(m[1] or m[2], path)
    return found


def find_prefixes(build):
    """{('prefix', library): {prefix: symbol}} of the static libraries and modules of a build."""
    found = {}
    for folder in glob.glob(os.path.join(build, 'src/**/lib*.a.p'), recursive=True) + \
            glob.glob(os.path.join(build, 'src/**/*verbs.so.p'), recursive=True):
        library = os.path.basename(folder)[:-2]
        objects = glob.glob(os.path.join(folder, '*.o'))
        text = subprocess.run(['nm', '-g', '--defined-only'] + objects, capture_output=True, text=True).stdout if objects else ''
        for line in text.splitlines():
            words = line.split()
            if len(words) == 3 and not words[2].startswith('__'):
                prefix = re.match(r'[a-z0-9]*_?', words[2])[0]
                found.setdefault(('prefix', library), {}).setdefault(prefix, words[2])
    return found


def count_members(body):
    """The members of one level; a nested struct counts as one member."""
    last = None
    while body != last:
        last, body = body, re.sub(r'\([^()]*\)|\[[^][]*\]|\{[^{}]*\}', '', body)
    return sum(1 + part.count(',') for part in body.split(';')[:-1])


def find_members(files):
    """{('members', struct): {number: (path, line)}} of structs with more than MAX_MEMBERS."""
    found = {}
    for path, text in files.items():
        plain = re.sub(r'/\*.*?\*/', lambda m: '\n' * m[0].count('\n'), text, flags=re.S)
        for m in re.finditer(r'^(?:struct|union) (\w+) \{\n(.*?)^\}', plain, re.S | re.M):
            count = count_members(m[2])
            if count > MAX_MEMBERS:
                found['members', m[1]] = {str(count): (path, plain.count('\n', 0, m.start()) + 1)}
    return found


def messages(kind, key, name, where):
    if kind == 'reach':
        path, via, header = where
        return 'src/' + path, f'{key} sees {header} of room {name} through {via}: include less there, or forward-declare'
    if kind == 'atomic':
        return 'src/' + where, f'atomic access to {name} outside io: send a message to the owner instead, or add the name to {FILE}'
    if kind == 'members':
        return 'src/' + where[0], f'struct {key} has {name} members, {MAX_MEMBERS} are enough: group them by their job in nested structs'
    return FILE, f'{key}: external symbol {where} has the unknown prefix "{name}": use a prefix of the room, or add the prefix'


def check(tree, build, out, warnings, update=False):
    files, known = sources(tree), read_exceptions(tree)
    found = {**find_reach(tree, files), **find_atomics(files), **find_members(files), **(find_prefixes(build) if build else {})}
    for (kind, key), names in sorted(found.items()):
        for name in sorted(set(names) - known.get((kind, key), set())):
            path, what = messages(kind, key, name, names[name])
            out.append((path, names[name][1] if kind == 'members' else 1, what))
    stale = {}
    for (kind, key), names in sorted(known.items()):
        if kind != 'prefix' or build:
            stale[kind, key] = names - set(found.get((kind, key), {}))
            for name in sorted(stale[kind, key]):
                warnings.append((FILE, 1, f'{kind} {key} {name} is no longer needed: run ratchets.py . --update'))
    if update:
        write_exceptions(tree, {k: names - stale.get(k, set()) for k, names in known.items()})


def self_test():
    rooms = 'base P :\nbackstore P : base\ndevice P : base backstore\ntarget P : base device\n'
    chain = {'src/backstore/b.h': 'struct bs;\n', 'src/device/d.h': '#include "backstore/b.h"\n'}
    cases = [
        ('target sees backstore/b.h', {**chain, 'src/target/t.c': '#include "device/d.h"\n'}),
        (None, {**chain, 'src/target/t.c': '#include "device/d.h"\n', FILE: 'reach target backstore\n'}),
        ('reach target backstore is no longer', {**chain, FILE: 'reach target backstore\n'}),
        ('atomic access to count', {'src/device/d.c': 'x = __atomic_load_n(&lu->count, __ATOMIC_RELAXED);\n'}),
        ('atomic access to gone', {'src/device/d.h': 'struct x {\n\t_Atomic bool gone;\n};\n'}),
        (None, {'src/device/d.c': '__atomic_store_n(&c[i], 1, 0);\n', FILE: 'atomic device c\n'}),
        ('struct big has 32 members', {'src/base/b.h': 'struct big {\n' + '\tint a, b; /* two; */\n' * 16 + '};\n'}),
        ('struct big has 32 members', {'src/base/b.h': 'struct big {\n' + '\tint a, b;\n' * 16 + '};\n', FILE: 'members big 31\n'}),
        (None, {'src/base/b.h': 'struct big {\n' + '\tint a, b;\n' * 16 + '};\n', FILE: 'members big 32\n'}),
        (None, {'src/base/b.h': 'struct big {\n\tstruct {\n' + '\t\tint a;\n' * 40 + '\t} part;\n\tint (*f)(int, int);\n};\n'}),
    ]
    failures = 0
    with tempfile.TemporaryDirectory() as build:
        folder = os.path.join(build, 'src/libx.a.p')
        os.makedirs(folder)
        subprocess.run(['cc', '-x', 'c', '-c', '-', '-o', os.path.join(folder, 'a.o')], input='int a_f; static int b_f;', text=True, check=True, stderr=subprocess.DEVNULL)
        found = find_prefixes(build)
        if found != {('prefix', 'libx.a'): {'a_': 'a_f'}}:
            failures += 1
            print(f'self-test: prefixes: found {found}')
    for want, files in cases:
        with tempfile.TemporaryDirectory() as tree:
            for path, text in {'tests/arch/rooms.txt': rooms, **files}.items():
                os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
                with open(os.path.join(tree, path), 'w') as f:
                    f.write(text)
            out, warnings = [], []
            check(tree, None, out, warnings)
            texts = [what for _, _, what in out + warnings]
            if bool(texts) != bool(want) or want and not any(want in t for t in texts):
                failures += 1
                print(f'self-test: {sorted(files)}: expected {want!r}, found {texts}')
    print('ratchets self-test:', 'ok' if not failures else f'{failures} failures')
    return 1 if failures else 0


def main():
    if '--self-test' in sys.argv:
        return self_test()
    update = '--update' in sys.argv
    rest = [a for a in sys.argv[1:] if a != '--update']
    out, warnings = [], []
    check(rest[0], rest[1] if len(rest) > 1 else None, out, warnings, update)
    for path, line, what in out + warnings:
        print(f'{path}:{line}: {what}')
    return 1 if out else 0


if __name__ == '__main__':
    sys.exit(main())
