# SPDX-License-Identifier: BSD-2-Clause
"""AES-256-XTS by libgcrypt, which every Debian system has: decrypts images
independently of the library that iserd uses."""
import ctypes
import struct

SECTOR = 512
AES256, XTS = 9, 13  # GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_XTS


def _library():
    try:
        lib = ctypes.CDLL("libgcrypt.so.20")
    except OSError:
        return None
    lib.gcry_check_version(None)
    return lib


_lib = _library()
present = _lib is not None


def decrypt(key, data, first=0):
    """Decrypts sectors from number `first` on; the tweak is the number, little endian."""
    h = ctypes.c_void_p()
    assert not _lib.gcry_cipher_open(ctypes.byref(h), AES256, XTS, 0)
    try:
        assert not _lib.gcry_cipher_setkey(h, key, ctypes.c_size_t(len(key)))
        out = ctypes.create_string_buffer(SECTOR)
        plain = []
        for i in range(len(data) // SECTOR):
            assert not _lib.gcry_cipher_setiv(h, struct.pack("<QQ", first + i, 0),
                                              ctypes.c_size_t(16))
            assert not _lib.gcry_cipher_decrypt(
                h, out, ctypes.c_size_t(SECTOR), data[SECTOR * i:SECTOR * (i + 1)],
                ctypes.c_size_t(SECTOR))
            plain.append(out.raw)
        return b"".join(plain)
    finally:
        _lib.gcry_cipher_close(h)
