/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store_cases.h: what every store of cluster/store.h must do. A program gives a kit,
 * which opens stores of one unit, and runs the cases; it starts itself again for the
 * gateway that is fenced.
 */
#ifndef TESTS_STORE_CASES_H
#define TESTS_STORE_CASES_H

#include "cmocka_all.h"

#include <stdbool.h>

#include "cluster/store.h"
#include "io/io.h"

struct store_kit {
	/* Opens the unit's data and its store for the gateway id. */
	struct cluster_store *(*open)(struct io_loop *l, const char *id,
				      const struct cluster_store_events *ev);
	/* Closes the store, then the data. */
	void (*shut)(struct cluster_store *s);
	/* Writes 4096 times `byte` at offset 0 of the data. 0 or the error. */
	int (*write)(struct io_loop *l, struct cluster_store *s, char byte);
	char (*read)(struct io_loop *l, struct cluster_store *s);
	bool ends_process; /* a fence ends the process */
};

/* store_cases_run runs all cases with kit; returns the status of the program. args: the
 * program and its arguments, the last one NULL; with "fenced" as the last argument the
 * program calls store_cases_fenced. */
int store_cases_run(const struct store_kit *kit, char *const *args);
int store_cases_fenced(const struct store_kit *kit);

/* for cases of one kind of store: store_cases_use sets the kit without running cases */
void store_cases_use(const struct store_kit *kit);

struct store_end { /* one gateway */
	struct io_loop *loop;
	struct cluster_store *s;
	bool acks; /* acknowledges notifications */
	unsigned noted, missed, fenced;
	uint64_t cookie; /* of the newest notification */
	char from[CLUSTER_ID_SIZE], text[CLUSTER_NOTE_MAX + 1], said[600];
};

void store_end_open(struct store_end *e, struct io_loop *l, const char *id);
/* store_end_do does an operation, and returns its result. */
int store_end_do(struct store_end *e,
		 void (*op)(struct cluster_store *s, struct cluster_request *r),
		 struct cluster_request *r);
/* store_end_until turns the loop until *flag is not 0; fails after a minute. */
void store_end_until(struct io_loop *l, const unsigned *flag);

#endif
