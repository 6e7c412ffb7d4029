# SPDX-License-Identifier: BSD-2-Clause
"""Reads the rooms of rooms.txt, and the object files of a build: the room of each, the symbols that it defines and uses.
check.py, circles.py and ratchets.py use it."""
import json
import os
import re
import subprocess

WRITABLE = re.compile(r'\.(data|bss|tdata|tbss)(?!\.rel\.ro)|\*COM\*')  # the linker makes .data.rel.ro constant


class Object:
    """An object file; library is what it is linked into: libbase.a, backstore-nbd.so, iserctl."""
    def __init__(self, library, path, room):
        self.library, self.path, self.room = library, path, room  # path: of the source, below src
        self.where = f'src/{path}'
        self.defined, self.undefined, self.writable = set(), set(), []


def rooms(tree):
    """{room: (P or D, what it may include)} of rooms.txt"""
    table = {}
    with open(os.path.join(tree, 'tests/arch/rooms.txt')) as f:
        for line in f:
            line = line.split('#')[0].strip()
            if not line:
                continue
            head, allowed = line.split(':')
            name, kind = head.split()
            table[name] = (kind, set(allowed.split()))
    return table


def room_of(path, table):
    """The room of a path below src/."""
    d = os.path.dirname(path)
    while d and d not in table:
        d = os.path.dirname(d)
    return d


def read_commands(tree, build, table):
    """{path of an object file: Object} of all sources of src that the build has compiled. libiser.so has the sources of
    libiser_core.a."""
    found = {}
    with open(os.path.join(build, 'compile_commands.json')) as f:
        commands = json.load(f)
    for c in commands:
        folder = os.path.dirname(c['output'])
        path, source = os.path.join(build, c['output']), os.path.join(c['directory'], c['file'])
        if not folder.startswith('src/') or '/libiser.so' in folder or not os.path.exists(path):
            continue
        generated = not os.path.isabs(c['file']) and not c['file'].startswith('..')
        source = os.path.relpath(source, os.path.join(c['directory'] if generated else tree, 'src'))
        found[path] = Object(os.path.basename(folder)[:-2], source, room_of(source, table))
    return found


def read_build(tree, build, table):
    """The objects of all libraries, modules and programs of a build."""
    found, o = read_commands(tree, build, table), None
    text = subprocess.run(['objdump', '-t'] + sorted(found), capture_output=True, text=True).stdout if found else ''
    for line in text.splitlines():
        m = re.match(r'(\S+\.o):\s+file format', line)
        if m:
            o = found[m[1]]
        m = re.match(r'[0-9a-f]{16} (.{7}) (\S+)\s+[0-9a-f]{16}\s+(?:\.hidden )?(\S+)$', line)
        if not m:
            continue
        flags, section, name = m.groups()
        if section == '*UND*':
            o.undefined.add(name)
            continue
        if 'l' not in flags:
            o.defined.add(name)
        if WRITABLE.match(section) and 'O' in flags:
            o.writable.append(name)
    return list(found.values())


def read_sample(tree, rooms_text, files):
    """For self-tests: writes {(library, path below src): text} to a tree, compiles it, and reads that build."""
    build, commands = os.path.join(tree, 'b'), []
    for (library, path), text in files.items():
        source, output = os.path.join(tree, 'src', path), f'src/{library}.p/{path.replace("/", "_")}.o'
        for name in (source, os.path.join(build, output)):
            os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(source, 'w') as f:
            f.write(text)
        subprocess.run(['cc', '-w', '-c', source, '-o', os.path.join(build, output)], check=True)
        commands.append({'directory': build, 'file': '../src/' + path, 'output': output})
    os.makedirs(os.path.join(tree, 'tests/arch'))
    with open(os.path.join(tree, 'tests/arch/rooms.txt'), 'w') as f:
        f.write(rooms_text)
    with open(os.path.join(build, 'compile_commands.json'), 'w') as f:
        json.dump(commands, f)
    return read_build(tree, build, rooms(tree))
