/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sane.h: the check that the members of an object agree with its state. The
 * setters of the state machines call it at each transition, several times for
 * each command, so builds for users leave it out. Builds with sanitizers and for
 * fuzzing have it, and so does `meson setup -Dsanity=true`.
 */
#ifndef BASE_SANE_H
#define BASE_SANE_H

#include <assert.h>

#ifndef OPENISER_SANITY
# define OPENISER_SANITY 0
#endif

/* The compiler sees cond in each build. */
#define ASSERT_SANE(cond) assert(!OPENISER_SANITY || (cond))

#endif
