# SPDX-License-Identifier: BSD-2-Clause
"""Circles of files: object files that use each other's symbols, in all libraries, modules and programs. Such files can only
be understood together. No room may have a larger circle than tests/arch/circles.txt says, and no circle may go through two
rooms unless that file has the two. A header that says "each calls those above it" lists the files of a room in that order.
check.py calls these checks.

    circles.py TREE BUILD       prints all circles
    circles.py --self-test      checks a graph and numbers and expects the findings
"""
import fnmatch
import os
import re
import sys
import tempfile

import objects

FILE = 'tests/arch/circles.txt'


def components(graph):
    """Strongly connected components of more than one node, {node: its successors} (Tarjan, without recursion)."""
    index, low, stack, on_stack, result = {}, {}, [], set(), []

    def enter(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        work.append((node, iter(graph[node])))

    def leave(node):
        work.pop()
        if work:
            low[work[-1][0]] = min(low[work[-1][0]], low[node])
        if low[node] == index[node]:
            at = stack.index(node)
            part, stack[at:] = stack[at:], []
            on_stack.difference_update(part)
            if len(part) > 1:
                result.append(part)

    work = []
    for root in graph:
        if root not in index:
            enter(root)
        while work:
            node, successors = work[-1]
            to = next(successors, None)
            if to is None:
                leave(node)
            elif to not in index:
                enter(to)
            elif to in on_stack:
                low[node] = min(low[node], index[to])
    return result


def find_graph(found):
    """{object: the objects whose symbols it uses}, of its own library or program first, then of all libraries."""
    shared = {name: o for o in found if o.library.endswith('.a') for name in o.defined}
    own = {}
    for o in found:
        own.setdefault(o.library, {}).update((name, o) for name in o.defined)
    graph = {}
    for o in found:
        used = {own[o.library].get(name) or shared.get(name) for name in o.undefined}
        graph[o] = sorted(used - {None, o}, key=lambda to: to.where)
    return graph


def find_circles(graph):
    """(rooms, files) of each circle."""
    for part in components(graph):
        yield sorted({o.room for o in part}), sorted(o.path for o in part)


def read_limits(tree):
    """{room, or rooms joined by +: how many files the largest circle may have} of circles.txt"""
    limits = {}
    with open(os.path.join(tree, FILE)) as f:
        for line in f:
            words = line.split('#')[0].split()
            if words:
                limits[words[0]] = int(words[1])
    return limits


def compare(circles, limits, built, out, warnings):
    largest = {}
    for rooms, files in circles:
        key = '+'.join(rooms)
        largest[key] = max(largest.get(key, 1), len(files))
        if len(files) > limits.get(key, 1):
            out.append((FILE, 1, f'a circle of {len(files)} files in {key}, at most {limits.get(key, 1)}: {" ".join(files)}: '
                                 'move what these files need below them, or call by a pointer that is given'))
    for key, limit in sorted(limits.items()):
        if largest.get(key, 1) < limit and built.issuperset(key.split('+')):
            warnings.append((FILE, 1, f'{key}: the largest circle has {largest.get(key, 1)} files: lower its number'))


def read_orders(tree):
    """(header, folder below src, its files from the floor up) of the headers that say "each calls those above it"."""
    for folder, _, names in sorted(os.walk(os.path.join(tree, 'src'))):
        for name in (n for n in names if n.endswith('.h')):
            with open(os.path.join(folder, name), errors='replace') as f:
                comment = f.read().split('*/')[1:2]
            if comment and 'calls those above it' in re.sub(r'\s*\n \*\s*', ' ', comment[0]):
                files = re.findall(r'^ \*   ([\w*]+\.c)\s', comment[0], re.M)
                yield os.path.relpath(os.path.join(folder, name), tree), os.path.relpath(folder, os.path.join(tree, 'src')), files


def check_orders(tree, graph, out):
    """Checks that the files of such a header call those listed above them, and files of their circle, only. An internal.h
    lists all files of its folder."""
    circle = {o: n for n, part in enumerate(components(graph)) for o in part}
    for header, folder, files in read_orders(tree):
        floor = {}
        for o in (o for o in graph if os.path.dirname(o.path) == folder):
            fits = [f for f in files if fnmatch.fnmatch(os.path.basename(o.path), f)]
            if fits:
                floor[o] = files.index(max(fits, key=len))
            elif header.endswith('/internal.h'):
                out.append((header, 1, f'does not list {os.path.basename(o.path)}'))
        for o in floor:
            for to in graph[o]:
                if floor.get(to, 0) > floor[o] and (o not in circle or circle[o] != circle.get(to)):
                    out.append((header, 1, f'lists {files[floor[o]]} above {files[floor[to]]}, which it calls'))


def check(tree, found, out, warnings):
    graph = find_graph(found)
    compare(find_circles(graph), read_limits(tree), {o.room for o in found}, out, warnings)
    check_orders(tree, graph, out)


def self_test():
    graph = {'a': ['b'], 'b': ['c'], 'c': ['a', 'd'], 'd': ['e'], 'e': ['d', 'f'], 'f': [], 'g': ['a', 'g']}
    parts, failures, out, warnings = sorted(sorted(p) for p in components(graph)), 0, [], []
    if parts != [['a', 'b', 'c'], ['d', 'e']]:
        failures += 1
        print('self-test: the circles of the graph are', parts)
    # through two rooms of one library, through two libraries, and in a program
    calls = {('libx.a', 'x/a.c'): ('x_a', 'x_b'), ('libx.a', 'x/b.c'): ('x_b', 'x_a'), ('libx.a', 'x/in/c.c'): ('x_c', 'x_d'),
             ('libx.a', 'x/d.c'): ('x_d', 'x_c'), ('libx.a', 'x/e.c'): ('x_e', 'y_f'), ('liby.a', 'y/f.c'): ('y_f', 'x_e'),
             ('tool', 'z/g.c'): ('main', 'x_h'), ('tool', 'z/h.c'): ('x_h', 'main'), ('liby.a', 'y/h.c'): ('x_h', 'x_a'), ('libx.a', 'x/i.c'): ('x_i', 'x_e')}
    with tempfile.TemporaryDirectory() as tree:
        found = objects.read_sample(tree, 'x D :\nx/in D :\ny D :\nz D :\n', {
            at: f'int {to}(void); int {name}(void) {{ return {to}(); }}' for at, (name, to) in calls.items()})
        with open(os.path.join(tree, 'src/x/internal.h'), 'w') as f:
            f.write('/* SPDX */\n/*\n * internal.h: each of which\n * calls those above it:\n *   a.c  one\n *   b.c  two\n *   i.c  three\n *   e.c  four\n */\n')
        graph, orders = find_graph(found), []
        check_orders(tree, graph, orders)
        circles = sorted(find_circles(graph))
    want = [(['x'], ['x/a.c', 'x/b.c']), (['x', 'x/in'], ['x/d.c', 'x/in/c.c']), (['x', 'y'], ['x/e.c', 'y/f.c']),
            (['z'], ['z/g.c', 'z/h.c'])]
    if circles != want:
        failures += 1
        print('self-test: the circles of the build are', circles)
    texts = sorted(text for _, _, text in orders)
    if texts != ['does not list d.c', 'lists i.c above e.c, which it calls']:
        failures += 1
        print('self-test: the findings of the order are', texts)
    compare(circles, {'x': 1, 'x+y': 3, 'y': 4, 'z': 2, 'not/built': 2}, {o.room for o in found}, out, warnings)
    texts = [text.split(':')[0] for _, _, text in out + warnings]
    if texts != ['a circle of 2 files in x, at most 1', 'a circle of 2 files in x+x/in, at most 1', 'x+y', 'y']:
        failures += 1
        print('self-test: findings', out, 'warnings', warnings)
    print('circles self-test:', 'ok' if not failures else f'{failures} failures')
    return 1 if failures else 0


def main():
    if '--self-test' in sys.argv:
        return self_test()
    tree, build = sys.argv[1:3]
    for rooms, files in sorted(find_circles(find_graph(objects.read_build(tree, build, objects.rooms(tree))))):
        print(f'{len(files):3} {"+".join(rooms)}: {" ".join(files)}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
