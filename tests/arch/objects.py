# SPDX-License-Identifier: BSD-2-Clause
"""Reads the object files of a build: which room they belong to, which symbols they define and use. check.py and circles.py
use it."""
import os
import re
import subprocess

# Rooms that have a library. The objects of rooms inside them (device/unit in device) are in the same library.
LIBRARIES = {'base': 'base', 'scsi': 'scsi', 'iscsi': 'iscsi', 'datamover': 'datamover', 'datamover/tcp': 'dmtcp',
             'datamover/iser': 'dmiser', 'rcap': 'rcap', 'rcap/iwarp': 'iwarp', 'backstore': 'backstore',
             'device': 'device', 'target': 'target', 'initiator': 'initiator'}
WRITABLE = re.compile(r'\.(data|bss|tdata|tbss)(?!\.rel\.ro)|\*COM\*')  # the linker makes .data.rel.ro constant


class Object:
    """An object file."""
    def __init__(self, library, member, room):
        self.library, self.room = library, room
        self.name = re.sub(r'\.c\.o$', '', member)
        self.where = f'{library}({member})'
        self.defined, self.undefined, self.writable = set(), set(), []


def room_of_member(member, library_room, table):
    """device_unit_io.c.o in the library of device: device/unit."""
    inside = [r for r in table if r == library_room or r.startswith(library_room + '/') and r not in LIBRARIES]
    fits = [r for r in inside if member.startswith(r.replace('/', '_') + '_')]
    return max(fits, key=len) if fits else library_room


def read_library(path, room, table):
    """The objects of one library."""
    found = []
    text = subprocess.run(['objdump', '-t', path], capture_output=True, text=True).stdout
    for line in text.splitlines():
        m = re.match(r'(\S+\.o):\s+file format', line)
        if m:
            member = os.path.basename(m.group(1))  # a thin archive names paths
            found.append(Object(path, member, room_of_member(member, room, table)))
        m = re.match(r'[0-9a-f]{16} (.{7}) (\S+)\s+[0-9a-f]{16}\s+(?:\.hidden )?(\S+)$', line)
        if not m:
            continue
        flags, section, name = m.groups()
        if section == '*UND*':
            found[-1].undefined.add(name)
            continue
        if 'l' not in flags:
            found[-1].defined.add(name)
        if WRITABLE.match(section) and 'O' in flags:
            found[-1].writable.append(name)
    return found


def read_build(build, table):
    """The objects of all libraries of LIBRARIES that the build has."""
    found = []
    for room, lib in LIBRARIES.items():
        path = os.path.join(build, 'src', f'lib{lib}.a')
        if os.path.exists(path):
            found += read_library(path, room, table)
    return found
