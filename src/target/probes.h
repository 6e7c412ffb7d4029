/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes.h: static probes of SCSI commands for bpftrace and SystemTap
 * (docs/bpftrace). A probe is one instruction without effect until it is
 * traced. Without <sys/sdt.h> at build there are none.
 */
#ifndef TARGET_PROBES_H
#define TARGET_PROBES_H

#ifdef OPENISER_PROBES
# include <sys/sdt.h>
#else
# define DTRACE_PROBE4(provider, name, a, b, c, d) \
  ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

/* A command arrived: its task, which identifies it until its end; its operation
 * code; its initiator's name; the wire form of its LUN. */
#define PROBE_COMMAND_BEGIN(task, opcode, initiator, lun) \
 DTRACE_PROBE4(iserd, command__begin, task, opcode, initiator, lun)
/* Its response is queued: operation code, status, bytes in both directions. */
#define PROBE_COMMAND_END(task, opcode, status, bytes) \
 DTRACE_PROBE4(iserd, command__end, task, opcode, status, bytes)

#endif
