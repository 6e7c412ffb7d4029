# SPDX-License-Identifier: BSD-2-Clause
"""Bootable ISO 9660 images: a volume with one file, and an El Torito entry (no
emulation) with 16-bit code that writes a word to the serial port."""
import struct

SECTOR = 2048
COM1 = 0x3f8


def boot_code(word):
    """Code with origin 7C00h: writes each byte of `word` to COM1, then halts."""
    code = bytes.fromhex(
        "31c0"          # xor ax, ax
        "8ed8"          # mov ds, ax
        "be1f7c"        # mov si, text
        # next:
        "ac"            # lodsb
        "84c0"          # test al, al
        "7412"          # jz stop
        "88c3"          # mov bl, al
        # wait:
        "bafd03"        # mov dx, COM1 + 5
        "ec"            # in al, dx
        "a820"          # test al, 20h
        "74f8"          # jz wait
        "baf803"        # mov dx, COM1
        "88d8"          # mov al, bl
        "ee"            # out dx, al
        "ebe9"          # jmp next
        # stop:
        "f4"            # hlt
        "ebfd")         # jmp stop
    origin = 0x7c00 + len(code)
    code = code[:5] + struct.pack("<H", origin) + code[7:]
    return (code + word.encode() + b"\0").ljust(SECTOR, b"\0")


def both(fmt, n):
    """ISO 9660 section 7.3: little-endian, then big-endian."""
    return struct.pack("<" + fmt, n) + struct.pack(">" + fmt, n)


def record(name, lba, size, directory=False):
    """A directory record (section 9.1)."""
    body = (b"\0" + both("I", lba) + both("I", size) +
            bytes([126, 11, 21, 0, 0, 0, 0, 2 if directory else 0, 0, 0]) +
            both("H", 1) + bytes([len(name)]) + name)
    if len(body) % 2 == 0:
        body += b"\0"
    return bytes([len(body) + 1]) + body


def volume(label, blocks, root):
    """The primary volume descriptor (section 8.4)."""
    d = bytearray(SECTOR)
    d[0:7] = b"\x01CD001\x01"
    d[8:40] = b" " * 32
    d[40:72] = label.encode().ljust(32)
    d[80:88] = both("I", blocks)
    d[120:124] = d[124:128] = both("H", 1)
    d[128:132] = both("H", SECTOR)
    d[132:140] = both("I", 10)
    d[140:144] = struct.pack("<I", 20)
    d[148:152] = struct.pack(">I", 21)
    d[156:190] = record(b"\0", root, SECTOR, True)
    for at, n in ((190, 128), (318, 128), (446, 128), (574, 128), (702, 111)):
        d[at:at + n] = b" " * n
    d[813:881] = (b"0" * 16 + b"\0") * 4
    d[881] = 1
    return bytes(d)


def boot_record(catalogue):
    """El Torito figure 7."""
    d = bytearray(SECTOR)
    d[0:7] = b"\0CD001\x01"
    d[7:30] = b"EL TORITO SPECIFICATION"
    d[71:75] = struct.pack("<I", catalogue)
    return bytes(d)


def catalogue(image):
    """Validation entry, default entry: four 512-byte sectors, no emulation."""
    first = bytearray(32)
    first[0] = 1
    first[30:32] = b"\x55\xaa"
    first[28:30] = struct.pack("<H", -sum(struct.unpack("<16H", first)) & 0xffff)
    default = struct.pack("<BBHBBHI", 0x88, 0, 0, 0, 0, 4, image)
    return (bytes(first) + default).ljust(SECTOR, b"\0")


def path_table(root, order):
    return (b"\1\0" + struct.pack(order + "IH", root, 1) + b"\0\0").ljust(
        SECTOR, b"\0")


def image(word, content=b"hello\n", blocks=400):
    """Returns the bytes of the image; at boot the image prints `word`."""
    root = 22
    data = [b"\0" * SECTOR] * blocks
    files = (record(b"\0", root, SECTOR, True) +
             record(b"\1", root, SECTOR, True) +
             record(b"HELLO.TXT;1", 24, len(content)))
    data[16] = volume("OPENISER", blocks, root)
    data[17] = boot_record(19)
    data[18] = b"\xffCD001\x01".ljust(SECTOR, b"\0")
    data[19] = catalogue(23)
    data[20] = path_table(root, "<")
    data[21] = path_table(root, ">")
    data[22] = files.ljust(SECTOR, b"\0")
    data[23] = boot_code(word)
    out = bytearray(b"".join(data))
    out[24 * SECTOR:24 * SECTOR + len(content)] = content
    return bytes(out)
