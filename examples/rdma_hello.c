/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_hello.c: both ends of an RDMA connection over software iWARP. The client sends where its
 * memory is; the server writes a text there by RDMA Write and says so by a Send.
 *   cc rdma_hello.c $(pkg-config --cflags --libs libiser)
 */
#include <iser/rdma.h>
#include <stdio.h>
#include <stdlib.h>

static char text[32], notice[8], hello[] = "hello by RDMA Write";
static struct iser_rdma_mr mr;	  /* the client's */
static struct iser_rdma_mr asked; /* as the server received it */
static struct iovec text_iov = { text, sizeof(text) };
static struct iovec mr_iov = { &mr, sizeof(mr) };
static struct iovec hello_iov = { hello, sizeof(hello) };
static struct iovec notice_iov = { notice, 1 };
static struct iser_rdma_wr ask, put, tell;
static struct iser_rdma_recv asked_recv, told_recv;
static struct iser_rdma *server;
static int ended;

static void nothing(struct iser_rdma_wr *wr)
{
	(void)wr;
}

static void established(void *arg, struct iser_rdma *c,
			const struct iser_rdma_peer *peer)
{
	(void)arg, (void)c, (void)peer;
}

static void closed(void *arg, struct iser_rdma *c, int err)
{
	(void)arg, (void)c;
	if (err)
		ended = -1;
}

static const struct iser_rdma_callbacks callbacks = { .established =
							      established,
						      .closed = closed };

/* Server: the client has sent its region. */
static void was_asked(struct iser_rdma_recv *r)
{
	struct iser_rdma_wr *const both[] = { &put, &tell };

	if (r->err || r->len != sizeof(asked) || asked.len < sizeof(hello))
		return;
	put = (struct iser_rdma_wr){ .op = ISER_RDMA_WRITE,
				     .iov = &hello_iov,
				     .niov = 1,
				     .stag = asked.stag,
				     .to = asked.base,
				     .done = nothing };
	tell = (struct iser_rdma_wr){ .op = ISER_RDMA_SEND,
				      .iov = &notice_iov,
				      .niov = 1,
				      .done = nothing };
	iser_rdma_post(server, both, 2);
}

static void requested(void *arg, struct iser_rdma *c,
		      const struct iser_rdma_peer *peer)
{
	(void)arg, (void)peer;
	server = c;
	iser_rdma_set_callbacks(c, &callbacks, NULL);
	asked_recv = (struct iser_rdma_recv){ .buf = &asked,
					      .size = sizeof(asked),
					      .done = was_asked };
	iser_rdma_post_recv(c, &asked_recv);
	iser_rdma_accept(c, NULL, 0);
}

/* Client: the Write is complete, since the Send came after it. */
static void was_told(struct iser_rdma_recv *r)
{
	ended = r->err ? -1 : 1;
}

int main(void)
{
	struct iser_context *ctx = iser_context_new(NULL);
	struct iser_rdma_wr *const first = &ask;
	struct iser_rdma_listener *l;
	struct iser_rdma *c = NULL;
	int port, err;

	l = iser_rdma_listen(ctx, "127.0.0.1:0", 0, NULL, requested, NULL,
			     &err);
	if (l &&
	    sscanf(iser_rdma_listener_address(l), "127.0.0.1:%d", &port) == 1)
		c = iser_rdma_connect_start(ctx, "127.0.0.1", (uint16_t)port,
					    NULL, NULL, 0, &callbacks, NULL,
					    &err);
	told_recv = (struct iser_rdma_recv){ .buf = notice,
					     .size = 8,
					     .done = was_told };
	ask = (struct iser_rdma_wr){
		.op = ISER_RDMA_SEND, .iov = &mr_iov, .niov = 1, .done = nothing
	};
	if (!c || iser_rdma_post_recv(c, &told_recv) || iser_rdma_wait(c) ||
	    iser_rdma_register(c, &text_iov, 1, 0, ISER_RDMA_REMOTE_WRITE,
			       &mr) ||
	    iser_rdma_post(c, &first, 1)) {
		fprintf(stderr, "%s\n", iser_message(ctx));
		return 1;
	}
	while (!ended && !iser_service(ctx, -1))
		;
	printf("%s\n", text);
	iser_rdma_free(c);
	iser_rdma_free(server);
	iser_rdma_listener_free(l);
	iser_context_free(ctx);
	return ended == 1 ? 0 : 1;
}
