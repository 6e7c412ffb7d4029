# SPDX-License-Identifier: BSD-2-Clause
"""Circles of files: object files of a library that use each other's symbols. Such files can only be understood together. A
circle may not go through two rooms, and no room may have a larger circle than tests/arch/circles.txt says. check.py calls
this check.

    circles.py TREE BUILD       prints all circles
    circles.py --self-test      checks a graph and numbers and expects the findings
"""
import os
import sys

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
                result.append(sorted(part))

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


def find_circles(found):
    """(rooms, files) of each circle, library by library."""
    for library in sorted({o.library for o in found}):
        here = {o.name: o for o in found if o.library == library}
        owner = {name: o.name for o in here.values() for name in o.defined}
        graph = {o.name: sorted({owner[u] for u in o.undefined if u in owner} - {o.name}) for o in here.values()}
        for files in components(graph):
            yield sorted({here[f].room for f in files}), files


def read_limits(tree):
    """{room: how many files its largest circle may have} of circles.txt; a room that is not there has no circle."""
    limits = {}
    with open(os.path.join(tree, FILE)) as f:
        for line in f:
            words = line.split('#')[0].split()
            if words:
                limits[words[0]] = int(words[1])
    return limits


def compare(circles, limits, out, warnings):
    largest = {}
    for rooms, files in circles:
        if len(rooms) > 1:
            out.append((FILE, 1, f'a circle through {", ".join(rooms)}: {" ".join(files)}: '
                                 'move what both need below them, or call by a pointer that is given'))
            continue
        room = rooms[0]
        largest[room] = max(largest.get(room, 1), len(files))
        if len(files) > limits.get(room, 1):
            out.append((FILE, 1, f'{room}: a circle of {len(files)} files, at most {limits.get(room, 1)}: '
                                 f'{" ".join(files)}: move what they need below them'))
    for room, limit in sorted(limits.items()):
        if largest.get(room, 1) < limit:
            warnings.append((FILE, 1, f'{room}: the largest circle has {largest.get(room, 1)} files: lower its number'))


def check(tree, found, out, warnings):
    compare(find_circles(found), read_limits(tree), out, warnings)


def self_test():
    graph = {'a': ['b'], 'b': ['c'], 'c': ['a', 'd'], 'd': ['e'], 'e': ['d', 'f'], 'f': [], 'g': ['a', 'g']}
    found, failures, out, warnings = sorted(components(graph)), 0, [], []
    if found != [['a', 'b', 'c'], ['d', 'e']]:
        failures += 1
        print('self-test: the circles of the graph are', found)
    compare([(['x'], ['a', 'b', 'c']), (['x', 'y'], ['d', 'e'])], {'x': 2, 'z': 4}, out, warnings)
    if len(out) != 2 or len(warnings) != 1:
        failures += 1
        print('self-test: findings', out, 'warnings', warnings)
    print('circles self-test:', 'ok' if not failures else f'{failures} failures')
    return 1 if failures else 0


def main():
    if '--self-test' in sys.argv:
        return self_test()
    import check as structure
    table = structure.rooms(sys.argv[1])
    for rooms, files in find_circles(objects.read_build(sys.argv[2], table)):
        print(f'{len(files):3} {", ".join(rooms)}: {" ".join(files)}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
