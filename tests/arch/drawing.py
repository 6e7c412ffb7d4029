#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws the rooms of tests/arch/rooms.txt, in docs/rooms.svg.

    drawing.py TREE            compares the drawing with rooms.txt
    drawing.py TREE --write    writes it

A box is a room; those inside device, lib, daemon and tools are lines in the box of the whole. A line leads down to a room that the upper
one may include, all of it or a header; lines that follow from others, and those to base, are left out.
"""
import os
import sys

from objects import room_of, rooms

FILE = 'docs/rooms.svg'
WHOLE = ('device', 'lib', 'daemon', 'tools')
PROGRAMS = ('tools', 'nbdkit')  # use lib by include/iser
WIDTH, ROW, BOX, LINE = 1180, 96, 128, 13
STYLE = '''text { font: 12px sans-serif; text-anchor: middle; fill: #1c1e21 } .s { font-size: 10px; fill: #5b6168 }
rect { stroke: #5b6168 } .P { fill: #e3effb } .D { fill: #fbeedd } line { stroke: #8a9199 } .all { fill: #ffffff; stroke: none }'''


def box_of(room, table):
    """The box that has a room: that of the whole, unless a pure whole has a driver inside."""
    whole = room.split('/')[0]
    return whole if whole in WHOLE and table[whole][0] == table[room][0] else room


def below(table):
    """{box: the boxes that it may include}, base left out, without what follows from others."""
    lower = {box_of(r, table): set() for r in table}
    for room, (_, allowed) in table.items():
        lower[box_of(room, table)] |= {box_of(a if a in table else room_of(a, table), table) for a in allowed}
    for box in set(PROGRAMS) & set(lower):
        lower[box].add('lib')
    lower = {b: s - {b, 'base'} for b, s in lower.items()}

    def reaches(a, b):
        return b in lower[a] or any(reaches(x, b) for x in lower[a])
    return {b: {x for x in s if not any(reaches(y, x) for y in s if y != x)} for b, s in lower.items()}


def rows_of(lower):
    """The boxes in rows, the lowest first; each stands above all that it includes."""
    height = {}

    def of(b):
        if b not in height:
            height[b] = 1 + max((of(x) for x in lower[b]), default=0)
        return height[b]
    rows = [[] for _ in range(max(map(of, lower)) + 1)]
    rows[0] = ['base']
    for b in lower:
        if b != 'base':
            rows[height[b]].append(b)
    place = {'base': 0.5}
    for row in rows[1:]:   # near what they include, so that lines are short
        row.sort(key=lambda b: (sum(place[x] for x in lower[b]) / len(lower[b]) if lower[b] else list(lower).index(b) / len(lower)))
        place.update({b: (i + 0.5) / len(row) for i, b in enumerate(row)})
    return rows


def render(table):
    lower = below(table)
    rows = rows_of(lower)
    inside = {b: [r.split('/', 1)[1] for r in table if r != b and box_of(r, table) == b] for b in lower}
    height = len(rows) * ROW + 20
    half = {b: max(BOX, len(' '.join(inside[b])) * 5 + 24) // 2 for b in lower}
    where, out = {}, []
    for y, row in enumerate(rows):
        gap = (WIDTH - sum(2 * half[b] for b in row)) // (len(row) + 1)
        x = gap
        for b in row:
            where[b] = (x + half[b], height - 60 - y * ROW)
            x += 2 * half[b] + gap
    for b in sorted(lower):
        for x in sorted(lower[b]):
            (x1, y1), (x2, y2) = where[b], where[x]
            out.append(f'<line x1="{x1}" y1="{y1 + 20}" x2="{x2}" y2="{y2 - 20}"/>')
    for row in rows:
        for b in row:
            x, y = where[b]
            words = ' '.join(inside[b])
            out.append(f'<rect class="{table[b][0]}" x="{x - half[b]}" y="{y - 20}" width="{2 * half[b]}" height="40" rx="4"/>')
            out.append(f'<text x="{x}" y="{y - 2 if words else y + 4}">{b}</text>')
            if words:
                out.append(f'<text class="s" x="{x}" y="{y + LINE}">{words}</text>')
    out.append(f'<text class="s" x="{WIDTH // 2}" y="{height - 12}">All rooms may include base. Blue: pure rooms, without system calls. Orange: drivers. A line leads to a room that the upper one may include.</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">\n<style>{STYLE}</style>\n'
            f'<rect class="all" width="{WIDTH}" height="{height}"/>\n' + '\n'.join(out) + '\n</svg>\n')


def check(tree, out):
    path = os.path.join(tree, FILE)
    if not os.path.exists(path) or open(path).read() != render(rooms(tree)):
        out.append((FILE, 1, 'does not show the rooms of tests/arch/rooms.txt: run tests/arch/drawing.py . --write'))


def self_test():
    """Inner rooms are in the box of the whole, drivers are not; a line that follows from others is left out; a change shows."""
    table = {'base': ('P', set()), 'scsi': ('P', {'base'}), 'device/unit': ('P', {'base', 'scsi', 'device/device.h'}),
             'device': ('P', {'base', 'scsi', 'device/unit'}), 'device/sg': ('D', {'base', 'device/pass.h', 'io'}), 'io': ('D', {'base'}),
             'target': ('P', {'scsi', 'device'})}
    want = {'base': set(), 'scsi': set(), 'device': {'scsi'}, 'device/sg': {'device', 'io'}, 'io': set(), 'target': {'device'}}
    good = below(table) == want and sorted(rows_of(want)[3]) == ['device/sg', 'target']
    before = render(table)
    good = good and '>unit<' in before and before != render({**table, 'net': ('D', {'io'})})
    if not good:
        print('self-test: drawing:', below(table), rows_of(want))
    return 0 if good else 1


if __name__ == '__main__':
    if '--self-test' in sys.argv:
        sys.exit(self_test())
    if '--write' in sys.argv:
        with open(os.path.join(sys.argv[1], FILE), 'w') as f:
            f.write(render(rooms(sys.argv[1])))
    findings = []
    check(sys.argv[1], findings)
    for where, line, text in findings:
        print(f'{where}:{line}: {text}')
    sys.exit(bool(findings))
