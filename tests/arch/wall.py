# SPDX-License-Identifier: BSD-2-Clause
"""iser-check is a second reading of the standards. So its room (src/tools/check) may use, of this tree, only its own functions
and those of a few files of base that know no protocol. check.py calls this check; it reads the symbols of the objects."""
import tempfile

import objects

ROOM = 'tools/check'
ALLOWED = ('base/escape.c', 'base/opt.c')  # bytes.h, list.h and xtime.h of base have no object


def check(found, out):
    """Appends a finding for each symbol that crosses the wall, in either direction."""
    owner = {}
    for o in found:
        for name in o.defined:
            owner.setdefault(name, set()).add(o.path)
    inside = {name for o in found if o.room == ROOM for name in o.defined} - {'main'}
    for o in found:
        if o.room != ROOM:
            out.extend((o.where, 1, f'links to {name} of {ROOM}: no other room may use what the suite has')
                       for name in sorted(o.undefined & inside) if owner[name] and all(p.startswith(ROOM) for p in owner[name]))
            continue
        for name in sorted(o.undefined - inside):
            paths = owner.get(name, set())
            if paths and not paths & set(ALLOWED):
                out.append((o.where, 1, f'{ROOM}: links to {name} of {sorted(paths)[0]}: the suite shares no code with what it checks'))


def self_test():
    table = 'base P :\niscsi P : base\ntools/check D :\n'
    with tempfile.TemporaryDirectory() as d:
        found = objects.read_sample(d, table, {
            ('libbase.a', 'base/opt.c'): 'int opt_f(void) { return 0; }', ('libbase.a', 'base/crc32c.c'): 'int crc_f(void) { return 0; }',
            ('libiscsi.a', 'iscsi/t.c'): 'int check_g(void); int text_f(void) { return check_g(); }',
            ('iser-check', 'tools/check/a.c'): 'int opt_f(void), crc_f(void), text_f(void); int check_g(void) { return opt_f() + crc_f() + text_f(); }'})
        out = []
        check(found, out)
    texts = sorted(text.split(':')[0] + text.split(':')[1] for _, _, text in out)
    want = ['links to check_g of tools/check no other room may use what the suite has', 'tools/check links to crc_f of base/crc32c.c',
            'tools/check links to text_f of iscsi/t.c']
    if texts != want:
        print('self-test: wall: found', texts)
    print('wall self-test:', 'ok' if texts == want else 'failed')
    return int(texts != want)
