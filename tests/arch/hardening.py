#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks in the built programs the protections of compiler and linker against the abuse of memory errors.

    hardening.py BUILD        checks the programs and libraries of BUILD; ends with "N passed, N failed"
    hardening.py --self-test  builds programs that lack one protection each, and expects the finding
"""
import glob
import os
import platform
import struct
import subprocess
import sys
import tempfile

PT_LOAD, PT_DYNAMIC, SHT_NOTE, NT_GNU_PROPERTY_TYPE_0 = 1, 2, 7, 5
PT_GNU_STACK, PT_GNU_RELRO = 0x6474e551, 0x6474e552
DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT = 5, 6, 10, 11
DT_RPATH, DT_TEXTREL, DT_BIND_NOW, DT_RUNPATH, DT_FLAGS, DT_FLAGS_1 = 15, 22, 24, 29, 30, 0x6ffffffb
DF_TEXTREL, DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 4, 8, 1, 0x08000000
ET_DYN, EM_X86_64 = 3, 62
X86_FEATURE_1_AND, X86_IBT_AND_SHSTK = 0xc0000002, 3

PROGRAMS = ('src/daemon/iserd', 'src/tools/iser', 'src/tools/iserctl', 'src/tools/iser-tgtadm')
OPTIONAL = ('src/tools/iser-check',)
LIBRARIES = ('src/lib/libiser.so.*.*', 'src/rcap-verbs.so')


class Elf:
    """A 64-bit ELF file of this machine's byte order."""

    def __init__(self, path):
        with open(path, 'rb') as f:
            self.bytes = f.read()
        if self.bytes[:5] != b'\x7fELF\x02':
            raise ValueError(f'{path}: not a 64-bit ELF file')
        self.type, self.machine = struct.unpack_from('=HH', self.bytes, 16)
        at, = struct.unpack_from('=Q', self.bytes, 32)
        size, count = struct.unpack_from('=HH', self.bytes, 54)
        # type, flags, offset, address, physical address, size in the file, size in memory, alignment
        self.segments = [struct.unpack_from('=IIQQQQQQ', self.bytes, at + i * size) for i in range(count)]
        self.dynamic = []
        for _, _, offset, _, _, length, _, _ in self.of_type(PT_DYNAMIC):
            self.dynamic += struct.iter_unpack('=QQ', self.bytes[offset:offset + length])

    def of_type(self, kind):
        return [s for s in self.segments if s[0] == kind]

    def value(self, tag):
        return next((v for t, v in self.dynamic if t == tag), None)

    def at(self, address):
        """Returns the offset in the file of the byte that is loaded at an address."""
        for _, _, offset, start, _, length, _, _ in self.of_type(PT_LOAD):
            if start <= address < start + length:
                return offset + address - start
        raise ValueError(f'nothing is loaded at {address:#x}')

    def imports(self):
        """Returns the names that the file imports. All linkers put the string table after the symbols."""
        symbols, strings = self.at(self.value(DT_SYMTAB)), self.at(self.value(DT_STRTAB))
        names = set()
        for at in range(symbols, strings, self.value(DT_SYMENT)):
            name, _, _, section = struct.unpack_from('=IBBH', self.bytes, at)
            if section == 0:
                names.add(self.bytes[strings + name:self.bytes.index(b'\0', strings + name)].decode())
        return names

    def sections(self, kind):
        """Yields offset and length of the sections of one type."""
        at, = struct.unpack_from('=Q', self.bytes, 40)
        size, count = struct.unpack_from('=HH', self.bytes, 58)
        for i in range(count):
            _, found, _, _, offset, length = struct.unpack_from('=IIQQQQ', self.bytes, at + i * size)
            if found == kind:
                yield offset, length

    def x86_features(self):
        """Returns the control-flow protection of an object."""
        for offset, length in self.sections(SHT_NOTE):
            if struct.unpack_from('=III', self.bytes, offset)[2] != NT_GNU_PROPERTY_TYPE_0:
                continue
            at, end = offset + 16, offset + length  # after the note's header and "GNU"
            while at + 8 <= end:
                kind, size = struct.unpack_from('=II', self.bytes, at)
                if kind == X86_FEATURE_1_AND:
                    return struct.unpack_from('=I', self.bytes, at + 8)[0]
                at += 8 + (size + 7) // 8 * 8
        return 0


def findings(path, program):
    """Returns the missing protections of one file."""
    e = Elf(path)
    imports, out = e.imports(), []
    if e.type != ET_DYN or program and not (e.value(DT_FLAGS_1) or 0) & DF_1_PIE:
        out.append('no position-independent executable')
    if not e.of_type(PT_GNU_RELRO):
        out.append('no RELRO segment')
    if not ((e.value(DT_FLAGS) or 0) & DF_BIND_NOW or (e.value(DT_FLAGS_1) or 0) & DF_1_NOW or
            e.value(DT_BIND_NOW) is not None):
        out.append('no BIND_NOW: a part of the RELRO segment stays writable')
    if not e.of_type(PT_GNU_STACK) or e.of_type(PT_GNU_STACK)[0][1] & 1:
        out.append('executable stack')
    if any(s[1] & 3 == 3 for s in e.of_type(PT_LOAD)):
        out.append('a segment that is both writable and executable')
    if (e.value(DT_FLAGS) or 0) & DF_TEXTREL or e.value(DT_TEXTREL) is not None:
        out.append('text relocations')
    if e.value(DT_RPATH) is not None or e.value(DT_RUNPATH) is not None:
        out.append('a search path for libraries')
    if '__stack_chk_fail' not in imports:
        out.append('no stack protector')
    if not any(n.startswith('__') and n.endswith('_chk') for n in imports):
        out.append('no _FORTIFY_SOURCE')
    return out


def object_findings(path):
    """Returns the missing protections of one object. The linker drops the mark of control-flow protection if the
    start-up objects of the C library lack it, as those of Debian do."""
    e = Elf(path)
    if e.machine == EM_X86_64 and e.x86_features() & X86_IBT_AND_SHSTK != X86_IBT_AND_SHSTK:
        return ['no control-flow protection (-fcf-protection)']
    return []


def check(build):
    passed = failed = 0
    files = [(os.path.join(build, p), True) for p in PROGRAMS + tuple(p for p in OPTIONAL if os.path.exists(os.path.join(build, p)))]
    for pattern in LIBRARIES:
        found = [f for f in glob.glob(os.path.join(build, pattern)) if os.path.isfile(f)]
        if not found and 'verbs' not in pattern:  # the module is not built if its libraries are absent
            failed += 1
            print(f'FAIL {pattern}: not built')
        files += [(f, False) for f in found]
    objects = glob.glob(os.path.join(build, 'src/**/*.o'), recursive=True)
    results = [(p, findings(p, program)) for p, program in files]
    bad = [(o, object_findings(o)) for o in objects]
    results.append((f'{len(objects)} objects', [w + ': ' + os.path.relpath(o, build) for o, ws in bad for w in ws][:5]))
    for path, out in results:
        for what in out:
            print(f'FAIL {path}: {what}')
        passed += not out
        failed += bool(out)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


ALL = ['-O2', '-fPIE', '-pie', '-fstack-protector-strong', '-U_FORTIFY_SOURCE', '-D_FORTIFY_SOURCE=2',
       '-Wl,-z,relro,-z,now,-z,noexecstack']
EXAMPLE = '''#include <string.h>
int main(int argc, char **argv)
{
	char copy[8];
	strcpy(copy, argv[argc - 1]);
	return copy[0];
}
'''


def self_test():
    cases = [('no position-independent', ['-no-pie', '-fno-pie']), ('no RELRO', ['-Wl,-z,norelro']),
             ('no BIND_NOW', ['-Wl,-z,lazy']), ('executable stack', ['-Wl,-z,execstack']),
             ('no stack protector', ['-fno-stack-protector']), ('no _FORTIFY_SOURCE', ['-U_FORTIFY_SOURCE']),
             ('a search path', ['-Wl,-rpath,/nowhere'])]
    failures = 0
    with tempfile.TemporaryDirectory() as d:
        source, program = os.path.join(d, 'x.c'), os.path.join(d, 'x')
        with open(source, 'w') as f:
            f.write(EXAMPLE)

        def compile_it(options, out):
            subprocess.run(' '.join([os.environ.get('CC', 'cc')] + ALL + options + [source, '-o', out]), shell=True,
                           check=True)
        for want, without in [(None, [])] + cases:
            compile_it(without, program)
            found = findings(program, True)
            if bool(found) != bool(want) or want and not any(w.startswith(want) for w in found):
                failures += 1
                print(f'self-test: {without}: expected {want}, found {found}')
        for way in ['full', 'none'] if platform.machine() == 'x86_64' else []:
            compile_it(['-c', '-fcf-protection=' + way], program)
            if bool(object_findings(program)) != (way == 'none'):
                failures += 1
                print(f'self-test: -fcf-protection={way}: found {object_findings(program)}')
    print('self-test:', 'ok' if not failures else f'{failures} failures')
    return 1 if failures else 0


sys.exit(self_test() if '--self-test' in sys.argv else check(sys.argv[1]))
