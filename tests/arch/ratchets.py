#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks of the structure that allow a list of known exceptions: tests/arch/ratchets.txt. A new exception fails; an exception
that is no longer needed is a warning. check.py calls these checks.

    ratchets.py TREE [BUILD] [--update]     prints the findings; --update removes exceptions that are no longer needed, and
                                            lowers numbers
    ratchets.py --self-test                 checks bad trees and expects the findings

A line of ratchets.txt is one of:
    reach ROOM OTHER        a file of ROOM may see OTHER through the headers that it includes, although rooms.txt forbids OTHER
    atomic FOLDER NAME...   the objects that code in src/FOLDER, except io, may access with atomic operations
    prefix LIBRARY NAME...  the prefixes of the external symbols of a library
    members STRUCT NUMBER   how many members a struct may have instead of MAX_MEMBERS; the members of nested structs count if
                            other rooms see the struct, else a nested struct counts as one
    block STRUCT NAME       a member of bytes with an alignment, whose contents another file of the room declares
    static NAME NUMBER      how many files may have a static function of this name instead of MAX_STATICS
"""
import os
import re
import sys
import tempfile

import objects
from objects import room_of

MAX_MEMBERS = 30
MAX_STATICS = 3
NUMBERS = {'members', 'static'}  # kinds with a limit, which may only fall
BUILTIN = re.compile(r'__(?:atomic|sync)_\w+\(\s*([^,;]*?)\s*[,)]')
QUALIFIED = re.compile(r'_Atomic[ \w]*?(\w+);|\batomic_\w+ (\w+);')
BLOCK = re.compile(r'(?:_Alignas\([^;]*?\)|__attribute__\(\(aligned[^;]*?)\s(?:unsigned char|char|uint8_t) (\w+)\[')
STATIC = re.compile(r'^static\b[^;={}]*?(\w+)\([^;{}]*\)\s*\n\{', re.M)
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


def find_includes(files):
    """{path: the headers of src that it includes}"""
    includes = {}
    for path, text in files.items():
        names = re.findall(r'^#include "([^"]+)"', text, re.M)
        beside = [os.path.normpath(os.path.join(os.path.dirname(path), n)) for n in names]
        includes[path] = [n if n in files else b for n, b in zip(names, beside) if n in files or b in files]
    return includes


def find_reach(files, table):
    """({('reach', room): {other: (path, via, header)}}: rooms that are visible only through other headers; the headers that
    other rooms see)"""
    includes, found, seen = find_includes(files), {}, set()
    for path in files:
        room = room_of(path, table)
        for header, via in reached(path, includes).items():
            other = room_of(header, table)
            if not room or not other or other == room:
                continue
            seen.add(header)
            if via != path and not table[room][1] & {other, header}:
                found.setdefault(('reach', room), {}).setdefault(other, (path, via, header))
    return found, seen


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


def find_prefixes(found):
    """{('prefix', library): {prefix: symbol}} of the libraries and modules of a build."""
    prefixes = {}
    for o in found:
        for name in o.defined if '.' in o.library else ():
            if not name.startswith('__'):
                prefixes.setdefault(('prefix', o.library), {}).setdefault(re.match(r'[a-z0-9]*_?', name)[0], name)
    return prefixes


def count_members(body, leaves):
    """The members of a struct. A nested struct counts as one, with leaves as its members."""
    count, last = 0, None
    while body != last:
        last, body = body, re.sub(r'\([^()]*\)|\[[^][]*\]', '', body)
    while True:
        inner = re.search(r'(?:\b(?:struct|union)[^;{}]*)?\{([^{}]*)\}(?:[^;{}]*;)?', body)
        part = inner[1] if inner else body
        if leaves or not inner:
            count += sum(1 + p.count(',') for p in part.split(';') if p.strip())
        if not inner:
            return count
        body = body[:inner.start()] + ('' if leaves else 'nested;') + body[inner.end():]


def find_members(files, seen):
    """{('members', struct): {number: (path, line, other rooms see it)}} of structs with more than MAX_MEMBERS, and
    {('block', struct): {member: the same}}"""
    found = {}
    for path, text in files.items():
        plain = re.sub(r'/\*.*?\*/', lambda m: '\n' * m[0].count('\n'), text, flags=re.S)
        for m in re.finditer(r'^(?:struct|union) (\w+) \{\n(.*?)^\}', plain, re.S | re.M):
            where = path, plain.count('\n', 0, m.start()) + 1, path in seen
            count = count_members(m[2], path in seen)
            if count > MAX_MEMBERS:
                found['members', m[1]] = {str(count): where}
            for name in BLOCK.findall(m[2]):
                found.setdefault(('block', m[1]), {})[name] = where
    return found


def find_statics(files):
    """{('static', name): {number: (path, 1)}} of names of static functions in more than MAX_STATICS files."""
    paths = {}
    for path, text in sorted(files.items()):
        for name in set(STATIC.findall(re.sub(r'/\*.*?\*/', '', text, flags=re.S))) if path.endswith('.c') else ():
            paths.setdefault(name, []).append(path)
    return {('static', name): {str(len(p)): (' '.join(p), 1)} for name, p in paths.items() if len(p) > MAX_STATICS}


def messages(kind, key, name, where, limit):
    if kind == 'reach':
        path, via, header = where
        return 'src/' + path, f'{key} sees {header} of room {name} through {via}: include less there, or forward-declare'
    if kind == 'atomic':
        return 'src/' + where, f'atomic access to {name} outside io: send a message to the owner instead, or add the name to {FILE}'
    if kind == 'members':
        how = ('declare a new one in a named struct (it counts as one), or move those that other rooms do not use to a struct of a header of the room'
               if where[2] else 'group them by their job in nested structs')
        return 'src/' + where[0], f'struct {key} has {name} members, {limit} are permitted: {how}'
    if kind == 'block':
        return 'src/' + where[0], f'struct {key}: {name} hides members in a block of bytes: declare them'
    if kind == 'static':
        return FILE, f'{name} files have a static function {key} ({where[0]}), {MAX_STATICS} may: name the object of the verb'
    return FILE, f'{key}: external symbol {where} has the unknown prefix "{name}": use a prefix of the room, or add the prefix'


def is_known(kind, name, known):
    return any(int(name) <= int(k) for k in known) if kind in NUMBERS else name in known


def find_stale(kind, known, found):
    """{exception that is no longer needed: what takes its place, or None}"""
    if kind not in NUMBERS:
        return dict.fromkeys(known - found)
    now = max(map(int, found), default=0)
    return {k: str(now) if now else None for k in known if int(k) > now}


def check(tree, built, out, warnings, update=False):
    """built: the objects of a build (objects.read_build), or None."""
    files, known = sources(tree), read_exceptions(tree)
    found, seen = find_reach(files, objects.rooms(tree))
    found.update({**find_atomics(files), **find_members(files, seen), **find_statics(files), **find_prefixes(built or ())})
    for (kind, key), names in sorted(found.items()):
        for name in sorted(names):
            if not is_known(kind, name, known.get((kind, key), ())):
                limit = max([MAX_MEMBERS, *map(int, known.get((kind, key), ()))]) if kind == 'members' else None
                path, what = messages(kind, key, name, names[name], limit)
                out.append((path, names[name][1] if kind in ('members', 'block') else 1, what))
    for (kind, key), names in sorted(known.items()):
        if kind == 'prefix' and key not in {o.library for o in built or ()}:
            continue  # not in this build: a module without its library, for example
        stale = find_stale(kind, names, set(found.get((kind, key), {})))
        for name, instead in sorted(stale.items()):
            warnings.append((FILE, 1, f'{kind} {key} {name} is {"now " + instead if instead else "no longer needed"}: run ratchets.py . --update'))
        known[kind, key] = names - set(stale) | {i for i in stale.values() if i}
    if update:
        write_exceptions(tree, known)


def self_test():
    table = 'base P :\nbackstore P : base\ndevice P : base backstore\ntarget P : base device\n'
    chain = {'src/backstore/b.h': 'struct bs;\n', 'src/device/d.h': '#include "backstore/b.h"\n'}
    nested = 'struct big {\n\tstruct {\n' + '\t\tint a, b;\n' * 20 + '\t} part;\n\tint (*f)(int, int);\n};\n'

    def statics(n):
        return {f'src/base/{i}.c': 'static bool ask(int a,\n\t\tint b)\n{\n\treturn f(a);\n}\n' for i in range(n)}
    cases = [
        ('target sees backstore/b.h', {**chain, 'src/target/t.c': '#include "device/d.h"\n'}),
        (None, {**chain, 'src/target/t.c': '#include "device/d.h"\n', FILE: 'reach target backstore\n'}),
        ('reach target backstore is no longer', {**chain, FILE: 'reach target backstore\n'}),
        ('atomic access to count', {'src/device/d.c': 'x = __atomic_load_n(&lu->count, __ATOMIC_RELAXED);\n'}),
        ('atomic access to gone', {'src/device/d.h': 'struct x {\n\t_Atomic bool gone;\n};\n'}),
        (None, {'src/device/d.c': '__atomic_store_n(&c[i], 1, 0);\n', FILE: 'atomic device c\n'}),
        ('struct big has 32 members', {'src/base/b.h': 'struct big {\n' + '\tint a, b; /* two; */\n' * 16 + '};\n'}),
        ('struct big has 32 members, 31 are permitted', {'src/base/b.h': 'struct big {\n' + '\tint a, b;\n' * 16 + '};\n', FILE: 'members big 31\n'}),
        (None, {'src/base/b.h': 'struct big {\n' + '\tint a, b;\n' * 16 + '};\n', FILE: 'members big 32\n'}),
        (None, {'src/base/b.h': nested}),
        ('struct big has 41 members', {'src/base/b.h': nested, 'src/device/d.c': '#include "base/b.h"\n'}),
        ('members big 50 is now 41', {'src/base/b.h': nested, 'src/device/d.c': '#include "base/b.h"\n', FILE: 'members big 50\n'}),
        ('big: room hides members', {'src/base/b.h': 'struct big {\n\t_Alignas(16) unsigned char room[400];\n};\n'}),
        (None, {'src/base/b.h': 'struct big {\n\t_Alignas(16) unsigned char room[400];\n\tuint8_t cdb[16];\n};\n', FILE: 'block big room\n'}),
        ('4 files have a static function ask (base/0.c base/1.c base/2.c base/3.c)', statics(4)),
        (None, statics(3)),
        (None, {**statics(4), FILE: 'static ask 4\n'}),
        ('static ask 4 is no longer needed', {**statics(3), FILE: 'static ask 4\n'}),
    ]
    failures = 0
    with tempfile.TemporaryDirectory() as tree:
        built = objects.read_sample(tree, table, {('libx.a', 'base/a.c'): 'int a_f; static int b_f;', ('x', 'base/b.c'): 'int c_f;'})
        found = find_prefixes(built)
        if found != {('prefix', 'libx.a'): {'a_': 'a_f'}}:
            failures += 1
            print(f'self-test: prefixes: found {found}')
        with open(os.path.join(tree, FILE), 'w') as f:
            f.write('prefix libx.a a_ b_\nprefix module.so m_\n')
        out, warnings = [], []
        check(tree, built, out, warnings)
        if out or [text.split(':')[0] for _, _, text in warnings] != ['prefix libx.a b_ is no longer needed']:
            failures += 1
            print(f'self-test: prefixes: found {out} {warnings}')
    for want, files in cases:
        with tempfile.TemporaryDirectory() as tree:
            for path, text in {'tests/arch/rooms.txt': table, **files}.items():
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
    built = objects.read_build(rest[0], rest[1], objects.rooms(rest[0])) if len(rest) > 1 else None
    check(rest[0], built, out, warnings, update)
    for path, line, what in out + warnings:
        print(f'{path}:{line}: {what}')
    return 1 if out else 0


if __name__ == '__main__':
    sys.exit(main())
