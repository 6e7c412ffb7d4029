/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iwarp.h: iWARP as octets: MPA frames, FPDUs, DDP and RDMAP headers, Terminate
 * Headers; each with the figure of its RFC or with the capture that it comes
 * from. "siw": seen from Linux 6.1's software iWARP.
 *
 * FPDUs without a capture were laid out octet by octet after the text of RFC
 * 5044 §§4.2 to 4.4, by a program that shares nothing with this project's
 * and gives figures 5 and 6 of the RFC.
 */
#ifndef TESTS_VECTORS_IWARP_H
#define TESTS_VECTORS_IWARP_H

#include "rcap/iwarp/mpa.h"
#include "rcap/iwarp/rdmap.h"

/* clang-format off */

/* RFC 5044 §7.1.1 (the figure of the frame), RFC 6581 §9 (the block). */
struct vector_frame {
	const char *source, *hex;
	struct mpa_frame f; /* private_data NULL: what is behind the block */
};

#define REQ "4d504120494420526571204672616d65"
#define REP "4d504120494420526570204672616d65"

static const struct vector_frame vector_frames[] = {
	{ "rev 1, siw", REQ "0001000480000000",
	  { .revision = 1, .private_len = 4 } },
	{ "rev 1 with C, siw", REQ "4001000480000000",
	  { .revision = 1, .crc = true, .private_len = 4 } },
	{ "rev 1 with M, siw", REQ "8001000480000000",
	  { .revision = 1, .markers = true, .private_len = 4 } },
	{ "rev 1, nothing else", REQ "00010000",
	  { .revision = 1, .private_len = 0 } },
	{ "rev 1, reply, siw", REP "0001000480000000",
	  { .is_reply = true, .revision = 1, .private_len = 4 } },
	{ "rev 1 with C, reply, siw", REP "4001000480000000",
	  { .is_reply = true, .revision = 1, .crc = true, .private_len = 4 } },
	{ "rev 1, rejection, siw", REP "20010000",
	  { .is_reply = true, .revision = 1, .reject = true, .private_len = 0 } },
	{ "rev 2, ib_iser on siw", REQ "100200080080000180000000",
	  { .revision = 2, .enhanced = true, .ird = 128, .ord = 1, .private_len = 4 } },
	{ "rev 2, libiscsi on siw", REQ "1002000800040000c0000000",
	  { .revision = 2, .enhanced = true, .ird = 4, .ord = 0, .private_len = 4 } },
	{ "rev 2 with C, siw", REQ "500200080080000080000000",
	  { .revision = 2, .enhanced = true, .crc = true, .ird = 128, .ord = 0, .private_len = 4 } },
	{ "rev 2 with M, siw", REQ "900200080080000080000000",
	  { .revision = 2, .enhanced = true, .markers = true, .ird = 128, .ord = 0, .private_len = 4 } },
	{ "rev 2, rping on siw", REQ "1002000400010001",
	  { .revision = 2, .enhanced = true, .ird = 1, .ord = 1, .private_len = 0 } },
	{ "rev 2, LIO on siw, reply", REP "100200080001008080000000",
	  { .is_reply = true, .revision = 2, .enhanced = true, .ird = 1, .ord = 128, .private_len = 4 } },
	{ "rev 2, tgt on siw, reply", REP "1002000400010080",
	  { .is_reply = true, .revision = 2, .enhanced = true, .ird = 1, .ord = 128, .private_len = 0 } },
	{ "rev 2 with C, reply, siw", REP "500200080001008080000000",
	  { .is_reply = true, .revision = 2, .enhanced = true, .crc = true, .ird = 1, .ord = 128, .private_len = 4 } },
	{ "rev 2, rejection, siw", REP "3002000400000000",
	  { .is_reply = true, .revision = 2, .enhanced = true, .reject = true, .private_len = 0 } },
	{ "rev 2 without S: as rev 1", REQ "0002000480000000",
	  { .revision = 2, .private_len = 4 } },
	{ "RFC 6581 §9 figure, A with B", REQ "50020004c0053ffe",
	  { .revision = 2, .enhanced = true, .crc = true, .peer_to_peer = true, .rtr = MPA_RTR_SEND, .ird = 5, .ord = 0x3ffe, .private_len = 0 } },
	{ "RFC 6581 §9 figure, A with B", REP "50020004c0053ffe",
	  { .is_reply = true, .revision = 2, .enhanced = true, .crc = true, .peer_to_peer = true, .rtr = MPA_RTR_SEND, .ird = 5, .ord = 0x3ffe, .private_len = 0 } },
	{ "RFC 6581 §9 figure, A with C", REQ "500200048005bffe",
	  { .revision = 2, .enhanced = true, .crc = true, .peer_to_peer = true, .rtr = MPA_RTR_WRITE, .ird = 5, .ord = 0x3ffe, .private_len = 0 } },
	{ "RFC 6581 §9 figure, A with C", REP "500200048005bffe",
	  { .is_reply = true, .revision = 2, .enhanced = true, .crc = true, .peer_to_peer = true, .rtr = MPA_RTR_WRITE, .ird = 5, .ord = 0x3ffe, .private_len = 0 } },
	{ "RFC 6581 §9 figure, A with D", REQ "5002000480057ffe",
	  { .revision = 2, .enhanced = true, .crc = true, .peer_to_peer = true, .rtr = MPA_RTR_READ, .ird = 5, .ord = 0x3ffe, .private_len = 0 } },
	{ "RFC 6581 §9 figure, A with D", REP "5002000480057ffe",
	  { .is_reply = true, .revision = 2, .enhanced = true, .crc = true, .peer_to_peer = true, .rtr = MPA_RTR_READ, .ird = 5, .ord = 0x3ffe, .private_len = 0 } },
	{ "RFC 6581 §9 figure, A with B, C, D", REQ "50020004c005fffe",
	  { .revision = 2, .enhanced = true, .crc = true, .peer_to_peer = true, .rtr = MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ, .ird = 5, .ord = 0x3ffe, .private_len = 0 } },
	{ "RFC 6581 §9 figure, A with B, C, D", REP "50020004c005fffe",
	  { .is_reply = true, .revision = 2, .enhanced = true, .crc = true, .peer_to_peer = true, .rtr = MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ, .ird = 5, .ord = 0x3ffe, .private_len = 0 } },
	{ "A, C, D answered with C, siw", REP "1002000880018004c0000000",
	  { .is_reply = true, .revision = 2, .enhanced = true, .peer_to_peer = true, .rtr = MPA_RTR_WRITE, .ird = 1, .ord = 4, .private_len = 4 } },
	{ "A, D answered with D, siw", REP "1002000880014004c0000000",
	  { .is_reply = true, .revision = 2, .enhanced = true, .peer_to_peer = true, .rtr = MPA_RTR_READ, .ird = 1, .ord = 4, .private_len = 4 } },
	{ "RFC 6581 §9.1, depths left to the ULPs", REQ "100200043fff3fff",
	  { .revision = 2, .enhanced = true, .ird = MPA_DEPTH_ULP, .ord = MPA_DEPTH_ULP, .private_len = 0 } },
};

/* RFC 5044 §4. hex: all octets of the FPDU, a marker before it counted; pos: of
 * its first one in the stream. */
struct vector_fpdu {
	const char *source;
	bool markers, crc;
	uint64_t pos;
	const char *ulpdu, *hex;
};

static const struct vector_fpdu vector_fpdus[] = {
	{ "RFC 5044 figure 5", true, true, 0,
	  "414300000000000000000000000100000000000000000000000000000000000000000000000000000000",
	  "00000000002a414300000000000000000000000100000000000000000000000000000000000000000000000000000000"
	  "52239983" },
	{ "RFC 5044 figure 6", true, true, 492,
	  "414300000000000000000000000200000000000000000000000000000000000000000000000000000000",
	  "002a41430000000000000000000000020000000000000014000000000000000000000000000000000000000000000000"
	  "84925898" },
	{ "the same without markers", false, true, 492,
	  "414300000000000000000000000200000000000000000000000000000000000000000000000000000000",
	  "002a414300000000000000000000000200000000000000000000000000000000000000000000000000000000290fbede" },
	{ "the same without CRC", true, false, 492,
	  "414300000000000000000000000200000000000000000000000000000000000000000000000000000000",
	  "002a41430000000000000000000000020000000000000014000000000000000000000000000000000000000000000000"
	  "00000000" },
	{ "Send of a Text Request, siw", false, true, 0,
	  "414300000000000000000000000200000000100000000000000000000000000000000000000000000000000000000181"
	  "000000000000000000000000000000000065000000000000000109bea8e100000000000000000000000000000000",
	  "005e41430000000000000000000000020000000010000000000000000000000000000000000000000000000000000000"
	  "0181000000000000000000000000000000000065000000000000000109bea8e100000000000000000000000000000000"
	  "bc69aa39" },
	{ "Send with Invalidate, LIO on siw", false, true, 0,
	  "414400001001000000000000000300000000100000000000000000000000000000000000000000000000000000002180"
	  "0000000000000000000000000000000000660000000009bea8e20000000300000042000000000000000000000000",
	  "005e41440000100100000000000000030000000010000000000000000000000000000000000000000000000000000000"
	  "21800000000000000000000000000000000000660000000009bea8e20000000300000042000000000000000000000000"
	  "c1ab606c" },
	{ "RDMA Write of 36 octets, LIO on siw", false, true, 0,
	  "c140000010010000000000000000000006025bb800024c494f2d4f52472052414d4449534b2d4d43502020202020342e"
	  "3020",
	  "0032c140000010010000000000000000000006025bb800024c494f2d4f52472052414d4449534b2d4d43502020202020"
	  "342e3020fbc0c5ad" },
	{ "RDMA Read Request, LIO on siw", false, true, 0,
	  "4141000000000000000100000001000000003bd6b301ffff888008c3a00000001000000020010000000000000000",
	  "002e4141000000000000000100000001000000003bd6b301ffff888008c3a00000001000000020010000000000000000"
	  "7984d067" },
	{ "RDMA Write of 4 octets, no CRC, siw", false, false, 0,
	  "c140307f9403ffff88800d64500000000000",
	  "0012c140307f9403ffff88800d6450000000000000000000" },
	{ "RDMA Write of 8 octets, no CRC, siw", false, false, 0,
	  "c140dc9d4b0000007f379b7380100001ffff00000200",
	  "0016c140dc9d4b0000007f379b7380100001ffff0000020000000000" },
	{ "rping Send, no CRC, siw", false, false, 0,
	  "414300000000000000000000000100000000000055d95dadff60acb36c0000000064",
	  "0022414300000000000000000000000100000000000055d95dadff60acb36c000000006400000000" },
	{ "pad of 0 octets", false, true, 0,
	  "c1401234567800000000abcdef00",
	  "000ec1401234567800000000abcdef0016756554" },
	{ "pad of 3 octets", false, true, 0,
	  "c1401234567800000000abcdef0001",
	  "000fc1401234567800000000abcdef000100000095af2f27" },
	{ "pad of 2 octets", false, true, 0,
	  "c1401234567800000000abcdef000102",
	  "0010c1401234567800000000abcdef0001020000d8a8b020" },
	{ "pad of 1 octets", false, true, 0,
	  "c1401234567800000000abcdef00010203",
	  "0011c1401234567800000000abcdef0001020300a64c6cad" },
	{ "a marker before the length", true, true, 1024,
	  "c1401234567800000000abcdef00a1a2a3a4a5a6",
	  "000000000014c1401234567800000000abcdef00a1a2a3a4a5a6000055b0d997" },
	{ "a marker in the STag", true, true, 1020,
	  "c1401234567800000000abcdef00a1a2a3a4a5a6",
	  "0014c140000000041234567800000000abcdef00a1a2a3a4a5a6000074be6e31" },
	{ "a marker behind the STag", true, true, 1016,
	  "c1401234567800000000abcdef00a1a2a3a4a5a6",
	  "0014c140123456780000000800000000abcdef00a1a2a3a4a5a60000d44aee45" },
	{ "a marker in the offset", true, true, 1012,
	  "c1401234567800000000abcdef00a1a2a3a4a5a6",
	  "0014c14012345678000000000000000cabcdef00a1a2a3a4a5a60000831125f1" },
	{ "a marker before the payload", true, true, 1008,
	  "c1401234567800000000abcdef00a1a2a3a4a5a6",
	  "0014c1401234567800000000abcdef0000000010a1a2a3a4a5a60000f186767a" },
	{ "a marker in the payload, before the pad", true, true, 1004,
	  "c1401234567800000000abcdef00a1a2a3a4a5a6",
	  "0014c1401234567800000000abcdef00a1a2a3a400000014a5a6000064ce3a23" },
	{ "a marker before the CRC", true, true, 1000,
	  "c1401234567800000000abcdef00a1a2a3a4a5a6",
	  "0014c1401234567800000000abcdef00a1a2a3a4a5a6000000000018a7af19a2" },
	{ "a marker behind it: of the next one", true, true, 996,
	  "c1401234567800000000abcdef00a1a2a3a4a5a6",
	  "0014c1401234567800000000abcdef00a1a2a3a4a5a60000d29bebe4" },
	{ "a marker before the CRC, CRC off", true, false, 1000,
	  "c1401234567800000000abcdef00a1a2a3a4a5a6",
	  "0014c1401234567800000000abcdef00a1a2a3a4a5a600000000001800000000" },
	{ "markers in front and two in the payload", true, true, 512,
	  "c1401234567800000000abcdef00030a11181f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dce3ea"
	  "f1f8ff060d141b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a"
	  "41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f363d444b525960676e757c838a"
	  "91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3da"
	  "e1e8eff6fd040b121920272e353c434a51585f666d747b828990979ea5acb3bac1c8cfd6dde4ebf2f900070e151c232a"
	  "31383f464d545b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc030a11181f262d343b424950575e656c737a"
	  "81888f969da4abb2b9c0c7ced5dce3eaf1f8ff060d141b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3ca"
	  "d1d8dfe6edf4fb020910171e252c333a41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a"
	  "21282f363d444b525960676e757c838a91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b323940474e555c636a"
	  "71787f868d949ba2a9b0b7bec5ccd3dae1e8eff6fd040b121920272e353c434a51585f666d747b828990979ea5acb3ba"
	  "c1c8cfd6dde4ebf2f900070e151c232a31383f464d545b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc030a"
	  "11181f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dce3eaf1f8ff060d141b222930373e454c535a"
	  "61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a41484f565d646b727980878e959ca3aa"
	  "b1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f363d444b525960676e757c838a91989fa6adb4bbc2c9d0d7dee5ecf3fa"
	  "01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3dae1e8eff6fd040b121920272e353c434a"
	  "51585f666d747b828990979ea5acb3bac1c8cfd6dde4ebf2f900070e151c232a31383f464d545b626970777e858c939a"
	  "a1a8afb6bdc4cbd2d9e0e7eef5fc030a11181f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dce3ea"
	  "f1f8ff060d141b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a"
	  "41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f363d444b525960676e757c838a"
	  "91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3da"
	  "e1e8eff6fd040b121920272e353c434a51585f666d747b828990979ea5acb3bac1c8cfd6dde4ebf2f900070e151c232a"
	  "31383f464d545b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc030a11181f262d343b424950575e656c737a"
	  "81888f969da4abb2",
	  "000000000428c1401234567800000000abcdef00030a11181f262d343b424950575e656c737a81888f969da4abb2b9c0"
	  "c7ced5dce3eaf1f8ff060d141b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910"
	  "171e252c333a41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f363d444b525960"
	  "676e757c838a91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b323940474e555c636a71787f868d949ba2a9b0"
	  "b7bec5ccd3dae1e8eff6fd040b121920272e353c434a51585f666d747b828990979ea5acb3bac1c8cfd6dde4ebf2f900"
	  "070e151c232a31383f464d545b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc030a11181f262d343b424950"
	  "575e656c737a81888f969da4abb2b9c0c7ced5dce3eaf1f8ff060d141b222930373e454c535a61686f767d848b9299a0"
	  "a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0"
	  "f7fe050c131a21282f363d444b525960676e757c838a91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b323940"
	  "474e555c636a71787f868d949ba2a9b0b7bec5ccd3dae1e8eff6fd040b121920272e353c434a51585f666d747b828990"
	  "979ea5acb3bac1c8cfd6dde4ebf2f900070e151c232a31383f464d545b626970000001fc777e858c939aa1a8afb6bdc4"
	  "cbd2d9e0e7eef5fc030a11181f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dce3eaf1f8ff060d14"
	  "1b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a41484f565d64"
	  "6b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f363d444b525960676e757c838a91989fa6adb4"
	  "bbc2c9d0d7dee5ecf3fa01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3dae1e8eff6fd04"
	  "0b121920272e353c434a51585f666d747b828990979ea5acb3bac1c8cfd6dde4ebf2f900070e151c232a31383f464d54"
	  "5b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc030a11181f262d343b424950575e656c737a81888f969da4"
	  "abb2b9c0c7ced5dce3eaf1f8ff060d141b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4"
	  "fb020910171e252c333a41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f363d44"
	  "4b525960676e757c838a91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b323940474e555c636a71787f868d94"
	  "9ba2a9b0b7bec5ccd3dae1e8eff6fd040b121920272e353c434a51585f666d747b828990979ea5acb3bac1c8cfd6dde4"
	  "ebf2f900070e151c232a31383f464d54000003fc5b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc030a1118"
	  "1f262d343b424950575e656c737a81888f969da4abb2000063497e84" },
	{ "three markers in the payload", true, true, 508,
	  "c1401234567800000000abcdef00030a11181f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dce3ea"
	  "f1f8ff060d141b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a"
	  "41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f363d444b525960676e757c838a"
	  "91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3da"
	  "e1e8eff6fd040b121920272e353c434a51585f666d747b828990979ea5acb3bac1c8cfd6dde4ebf2f900070e151c232a"
	  "31383f464d545b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc030a11181f262d343b424950575e656c737a"
	  "81888f969da4abb2b9c0c7ced5dce3eaf1f8ff060d141b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3ca"
	  "d1d8dfe6edf4fb020910171e252c333a41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a"
	  "21282f363d444b525960676e757c838a91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b323940474e555c636a"
	  "71787f868d949ba2a9b0b7bec5ccd3dae1e8eff6fd040b121920272e353c434a51585f666d747b828990979ea5acb3ba"
	  "c1c8cfd6dde4ebf2f900070e151c232a31383f464d545b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc030a"
	  "11181f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dce3eaf1f8ff060d141b222930373e454c535a"
	  "61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a41484f565d646b727980878e959ca3aa"
	  "b1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f363d444b525960676e757c838a91989fa6adb4bbc2c9d0d7dee5ecf3fa"
	  "01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3dae1e8eff6fd040b121920272e353c434a"
	  "51585f666d747b828990979ea5acb3bac1c8cfd6dde4ebf2f900070e151c232a31383f464d545b626970777e858c939a"
	  "a1a8afb6bdc4cbd2d9e0e7eef5fc030a11181f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dce3ea"
	  "f1f8ff060d141b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a"
	  "41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f363d444b525960676e757c838a"
	  "91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3da"
	  "e1e8eff6fd040b121920272e353c434a51585f666d747b828990979ea5acb3bac1c8cfd6dde4ebf2f900070e151c232a"
	  "31383f464d545b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc030a11181f262d343b424950575e656c737a"
	  "81888f969da4abb2",
	  "0428c140000000041234567800000000abcdef00030a11181f262d343b424950575e656c737a81888f969da4abb2b9c0"
	  "c7ced5dce3eaf1f8ff060d141b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910"
	  "171e252c333a41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f363d444b525960"
	  "676e757c838a91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b323940474e555c636a71787f868d949ba2a9b0"
	  "b7bec5ccd3dae1e8eff6fd040b121920272e353c434a51585f666d747b828990979ea5acb3bac1c8cfd6dde4ebf2f900"
	  "070e151c232a31383f464d545b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc030a11181f262d343b424950"
	  "575e656c737a81888f969da4abb2b9c0c7ced5dce3eaf1f8ff060d141b222930373e454c535a61686f767d848b9299a0"
	  "a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0"
	  "f7fe050c131a21282f363d444b525960676e757c838a91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b323940"
	  "474e555c636a71787f868d949ba2a9b0b7bec5ccd3dae1e8eff6fd040b121920272e353c434a51585f666d747b828990"
	  "979ea5acb3bac1c8cfd6dde4ebf2f900070e151c232a31383f464d545b626970777e858c00000204939aa1a8afb6bdc4"
	  "cbd2d9e0e7eef5fc030a11181f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dce3eaf1f8ff060d14"
	  "1b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4fb020910171e252c333a41484f565d64"
	  "6b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f363d444b525960676e757c838a91989fa6adb4"
	  "bbc2c9d0d7dee5ecf3fa01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3dae1e8eff6fd04"
	  "0b121920272e353c434a51585f666d747b828990979ea5acb3bac1c8cfd6dde4ebf2f900070e151c232a31383f464d54"
	  "5b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc030a11181f262d343b424950575e656c737a81888f969da4"
	  "abb2b9c0c7ced5dce3eaf1f8ff060d141b222930373e454c535a61686f767d848b9299a0a7aeb5bcc3cad1d8dfe6edf4"
	  "fb020910171e252c333a41484f565d646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0f7fe050c131a21282f363d44"
	  "4b525960676e757c838a91989fa6adb4bbc2c9d0d7dee5ecf3fa01080f161d242b323940474e555c636a71787f868d94"
	  "9ba2a9b0b7bec5ccd3dae1e8eff6fd040b121920272e353c434a51585f666d747b828990979ea5acb3bac1c8cfd6dde4"
	  "ebf2f900070e151c232a31383f464d545b62697000000404777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc030a1118"
	  "1f262d343b424950575e656c737a81888f969da4abb200007473245c" },
};

/* RFC 5041 §4.2, §4.3; RFC 5040 §4.1 figure 3, §4.4; RFC 7306. tx: what we send is the
 * same. */
struct vector_header {
	const char *source, *hex;
	bool tx;
	struct rdmap_header h;
};

static const struct vector_header vector_headers[] = {
	{ "RDMA Write, siw",
	  "c140307f9403ffff88800d645000", true,
	  { .tagged = true, .last = true, .opcode = RDMAP_WRITE, .stag = 0x307f9403, .to = 0xffff88800d645000 } },
	{ "RDMA Write, more to come, RFC 5041 §4.2",
	  "8140123456780000000000001000", true,
	  { .tagged = true, .opcode = RDMAP_WRITE, .stag = 0x12345678, .to = 0x1000 } },
	{ "RDMA Write, reserved bits set",
	  "fd70123456780000000000001000", false,
	  { .tagged = true, .last = true, .opcode = RDMAP_WRITE, .stag = 0x12345678, .to = 0x1000 } },
	{ "RDMA Read Request, LIO on siw",
	  "41410000000000000001000000010000000003eb3c0000007f65505120000000100036f1ca3effff88800839c000", true,
	  { .last = true, .opcode = RDMAP_READ_REQUEST, .qn = 1, .msn = 1, .sink_stag = 0x03eb3c00, .sink_to = 0x00007f6550512000, .read_size = 0x1000, .source_stag = 0x36f1ca3e, .source_to = 0xffff88800839c000 } },
	{ "RDMA Read Response, siw",
	  "c1428d88f8000000561f851878c0", true,
	  { .tagged = true, .last = true, .opcode = RDMAP_READ_RESPONSE, .stag = 0x8d88f800, .to = 0x0000561f851878c0 } },
	{ "RDMA Read Response, more to come, siw",
	  "814227c6ac01ffff888008c3e000", true,
	  { .tagged = true, .opcode = RDMAP_READ_RESPONSE, .stag = 0x27c6ac01, .to = 0xffff888008c3e000 } },
	{ "Send, siw",
	  "414300000000000000000000000200000000", true,
	  { .last = true, .opcode = RDMAP_SEND, .msn = 2 } },
	{ "Send, second segment, RFC 5041 §4.3",
	  "0143000000000000000000000007000005a0", true,
	  { .opcode = RDMAP_SEND, .msn = 7, .mo = 1440 } },
	{ "Send, reserved bits set",
	  "7d73000000000000000000000007000005a0", false,
	  { .last = true, .opcode = RDMAP_SEND, .msn = 7, .mo = 1440 } },
	{ "Send with Invalidate, LIO on siw",
	  "414400001001000000000000000300000000", true,
	  { .last = true, .opcode = RDMAP_SEND_INV, .stag = 0x1001, .msn = 3 } },
	{ "Send with Solicited Event, RFC 5040 figure 3",
	  "414500000000000000000000000100000000", true,
	  { .last = true, .opcode = RDMAP_SEND_SE, .msn = 1 } },
	{ "Send with SE and Invalidate, RFC 5040 figure 3",
	  "4146deadbeef00000000ffffffff00000000", true,
	  { .last = true, .opcode = RDMAP_SEND_SE_INV, .stag = 0xdeadbeef, .msn = 0xffffffff } },
	{ "Terminate, siw",
	  "414700000000000000020000000100000000", true,
	  { .last = true, .opcode = RDMAP_TERMINATE, .qn = 2, .msn = 1 } },
	{ "Immediate Data, RFC 7306 figure 7",
	  "4148000000000000000000000001000000000102030405060708", true,
	  { .last = true, .opcode = RDMAP_IMMEDIATE, .msn = 1, .value = 0x0102030405060708 } },
	{ "Immediate Data with SE, RFC 7306 figure 7",
	  "414900000000000000000000000200000000ffffffffffffffff", true,
	  { .last = true, .opcode = RDMAP_IMMEDIATE_SE, .msn = 2, .value = UINT64_MAX } },
	{ "Atomic Request, FetchAdd, RFC 7306 figure 4",
	  "414a00000000000000010000000300000000000000000000000312345678ff149c0e20c34200000000000000000780000000000000000000000000000000ffffffffffffffff", true,
	  { .last = true, .opcode = RDMAP_ATOMIC_REQUEST, .qn = 1, .msn = 3, .atomic = RDMAP_FETCH_ADD, .request_id = 3, .source_stag = 0x12345678, .source_to = 0xff149c0e20c34200, .value = 7, .mask = 0x8000000000000000, .compare_mask = UINT64_MAX } },
	{ "Atomic Request, CmpSwap, RFC 7306 figure 4",
	  "414a0000000000000001000000040000000000000002deadbeef1234567800000000000010001111111111111111222222222222222233333333333333334444444444444444", true,
	  { .last = true, .opcode = RDMAP_ATOMIC_REQUEST, .qn = 1, .msn = 4, .atomic = RDMAP_CMP_SWAP, .request_id = 0xdeadbeef, .source_stag = 0x12345678, .source_to = 0x1000, .value = 0x1111111111111111, .mask = 0x2222222222222222, .compare = 0x3333333333333333, .compare_mask = 0x4444444444444444 } },
	{ "Atomic Request, reserved bits set",
	  "414a00000000000000010000000400000000fffffff2deadbeef1234567800000000000010000000000000000000000000000000000000000000000000000000000000000000", false,
	  { .last = true, .opcode = RDMAP_ATOMIC_REQUEST, .qn = 1, .msn = 4, .atomic = RDMAP_CMP_SWAP, .request_id = 0xdeadbeef, .source_stag = 0x12345678, .source_to = 0x1000 } },
	{ "Atomic Response, RFC 7306 figure 6",
	  "414b00000000000000030000000100000000deadbeef0102030405060708", true,
	  { .last = true, .opcode = RDMAP_ATOMIC_RESPONSE, .qn = 3, .msn = 1, .request_id = 0xdeadbeef, .value = 0x0102030405060708 } },
};

/* RFC 5040 §4.8 figures 7 to 10: the Terminate Header, behind the DDP header. */
struct vector_terminate {
	const char *source, *hex;
	bool tx; /* ours looks the same */
	struct rdmap_terminate t;
};

static const struct vector_terminate vector_terminates[] = {
	{ "RDMAP local catastrophic, any code: no headers, siw",
	  "00ff0000", true,
	  { .reason = 0x00ff } },
	{ "MPA, CRC: no headers (figure 10)",
	  "20020000", true,
	  { .reason = TERM_MPA_CRC } },
	{ "MPA, no matching RTR (RFC 6581 §8)",
	  "20070000", true,
	  { .reason = TERM_MPA_RTR } },
	{ "DDP, untagged, MSN range: D and M",
	  "1203c0000092414300000000000000000000000200000000", true,
	  { .reason = TERM_DDP_UNTAGGED_MSN, .has_segment_len = true, .has_ddp = true, .segment_len = 0x92, .headers_len = 18 } },
	{ "DDP, tagged, bounds: D and M",
	  "1101c000100ec14012345678000000000000abcd", true,
	  { .reason = TERM_DDP_TAGGED_BOUNDS, .has_segment_len = true, .has_ddp = true, .segment_len = 0x100e, .headers_len = 14 } },
	{ "RDMAP, access rights of a Read: M, D and R",
	  "0102e000002e41410000000000000001000000010000000003eb3c0000007f65505120000000100036f1ca3effff88800839c000", true,
	  { .reason = TERM_RDMAP_ACCESS, .has_segment_len = true, .has_ddp = true, .has_rdmap = true, .segment_len = 0x2e, .headers_len = 46 } },
	{ "RDMAP, opcode: D and M",
	  "0206c0000016414f00000000000000000000000200000000", true,
	  { .reason = TERM_RDMAP_OPCODE, .has_segment_len = true, .has_ddp = true, .segment_len = 0x16, .headers_len = 18 } },
	{ "siw: nibbles swapped, MSN range",
	  "210303000084414300000000000000000000000200000000", false,
	  { .reason = TERM_DDP_UNTAGGED_MSN, .swapped = true } },
	{ "siw: nibbles swapped, no buffer",
	  "2102030023ac414300000000000000000000000200000000", false,
	  { .reason = TERM_DDP_UNTAGGED_NO_BUFFER, .swapped = true } },
	{ "siw: nibbles swapped, CRC",
	  "02020000", false,
	  { .reason = TERM_MPA_CRC, .swapped = true } },
	{ "siw: the same either way, invalid STag",
	  "110003001000c14012345678000000000000abcd", false,
	  { .reason = TERM_DDP_TAGGED_INVALID_STAG } },
};

#undef REQ
#undef REP
/* clang-format on */

#endif
