# SPDX-License-Identifier: BSD-2-Clause
"""embed.py OUT TOP FILE...: writes the table of embedded_cases (check.h): the library of iser-check and its cases as C arrays."""
import os
import sys


def main():
    out, top, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    arrays, entries = '', ''
    for i, path in enumerate(files):
        with open(path, 'rb') as f:
            data = f.read()
        rows = (data[n:n + 20] for n in range(0, len(data), 20))
        arrays += f'static const char file_{i}[] = {{\n' + ''.join(
            '\t' + ', '.join(str(b if b < 128 else b - 256) for b in row) + ',\n' for row in rows) + '};\n'
        entries += f'\t{{ "{os.path.relpath(path, top)}", file_{i}, {len(data)} }},\n'
    with open(out, 'w') as f:
        f.write('#include "tools/check/check.h"\n\n' + arrays + 'const struct embedded embedded_cases[] = {\n' + entries +
                '\t{ NULL, NULL, 0 },\n};\n')


main()
