/* SPDX-License-Identifier: BSD-2-Clause */
/* rpc_link_test.c: lines of a control socket, whole and in pieces, and its failures. */
#include "tools/rpc_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmocka_all.h"

struct pair {
	struct rpc_link link;
	int far;
};

static int open_pair(void **state)
{
	static struct pair p;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	p.link = RPC_LINK_NONE;
	p.link.fd = fds[0];
	p.far = fds[1];
	*state = &p;
	return 0;
}

static int close_pair(void **state)
{
	struct pair *p = *state;

	rpc_link_close(&p->link);
	assert_int_equal(p->link.fd, -1);
	if (p->far >= 0)
		close(p->far);
	return 0;
}

static void put(struct pair *p, const char *text)
{
	assert_int_equal(write(p->far, text, strlen(text)), strlen(text));
}

static void expect_number(struct pair *p, int number)
{
	json_t *v = NULL;

	assert_int_equal(rpc_link_read(&p->link, 1, &v), 0);
	assert_int_equal(json_integer_value(json_object_get(v, "n")), number);
	json_decref(v);
}

/* Lines that arrive together are returned one by one; the rest of a line waits. */
static void test_lines(void **state)
{
	struct pair *p = *state;
	json_t *v = NULL;

	put(p, "{\"n\": 1}\n{\"n\": 2}\n{\"n\"");
	expect_number(p, 1);
	expect_number(p, 2);
	assert_int_equal(rpc_link_read(&p->link, 1, &v), -ETIMEDOUT);
	put(p, ": 3}\n");
	expect_number(p, 3);
}

static void test_long_line(void **state)
{
	struct pair *p = *state;
	size_t len = 150000;
	char *text = malloc(len + 1);
	json_t *v = NULL;

	memset(text, ' ', len);
	memcpy(text, "{\"n\": 4", 7);
	memcpy(text + len - 2, "}\n", 3);
	put(p, text);
	expect_number(p, 4);
	put(p, "not JSON\n{\"n\": 5}\n");
	assert_int_equal(rpc_link_read(&p->link, 1, &v), -EPROTO);
	expect_number(p, 5);
	free(text);
}

static void test_closed(void **state)
{
	struct pair *p = *state;
	json_t *v = NULL;

	put(p, "{\"n\": 6}\n{\"n\"");
	close(p->far);
	p->far = -1;
	/* the request is lost; what came before is there */
	assert_int_equal(rpc_link_call(&p->link, "m", NULL, 1, &v), 0);
	json_decref(v);
	v = NULL;
	assert_int_equal(rpc_link_read(&p->link, 0, &v), -ECONNRESET);
	assert_null(v);
}

static void test_call(void **state)
{
	struct pair *p = *state;
	char got[200];
	json_t *v = NULL;
	ssize_t n;

	put(p, "{\"n\": 7}\n");
	assert_int_equal(rpc_link_call(&p->link, "target.set",
				       json_pack("{s:s}", "name", "x"), 1, &v),
			 0);
	json_decref(v);
	n = read(p->far, got, sizeof(got) - 1);
	assert_true(n > 0);
	got[n] = '\0';
	assert_string_equal(got, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
				 "\"target.set\",\"params\":{\"name\":\"x\"}}"
				 "\n");
	assert_int_equal(rpc_link_call(&p->link, "\xff", NULL, 1, &v), -EILSEQ);
}

static void test_open(void **state)
{
	struct rpc_link l = RPC_LINK_NONE;
	char path[200];

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(rpc_link_open(&l, path, 1), -ENAMETOOLONG);
	assert_int_equal(rpc_link_open(&l, "/nowhere/control", 1), -ENOENT);
	assert_int_equal(l.fd, -1);
	rpc_link_close(&l);
}

#define TP(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TP(test_lines), TP(test_long_line),	     TP(test_closed),
		TP(test_call),	cmocka_unit_test(test_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
