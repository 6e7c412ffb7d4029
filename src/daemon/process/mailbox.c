/* SPDX-License-Identifier: BSD-2-Clause */
/* mailbox.c: one post to the loop delivers all pending messages. */
#include "daemon/process/mailbox.h"

#include "base/bytes.h"

static struct dev_msg *take_messages(struct mailbox *m)
{
	struct dev_msg *all;

	pthread_mutex_lock(&m->lock);
	all = m->first;
	m->first = NULL;
	m->last = &m->first;
	m->posted = false;
	pthread_mutex_unlock(&m->lock);
	return all;
}

static void deliver_messages(struct io_post *p)
{
	struct dev_msg *msg =
		take_messages(container_of(p, struct mailbox, post));

	while (msg) {
		struct dev_msg *next = msg->next;

		msg->run(msg); /* may free it or post it again */
		msg = next;
	}
}

void mailbox_init(struct mailbox *m, struct io_loop *loop)
{
	m->loop = loop;
	m->post.run = deliver_messages;
	m->first = NULL;
	m->last = &m->first;
	m->posted = false;
	pthread_mutex_init(&m->lock, NULL);
}

void mailbox_fini(struct mailbox *m)
{
	pthread_mutex_destroy(&m->lock);
}

void mailbox_put(struct mailbox *m, struct dev_msg *msg)
{
	bool wake;

	pthread_mutex_lock(&m->lock);
	msg->next = NULL;
	*m->last = msg;
	m->last = &msg->next;
	wake = !m->posted;
	m->posted = true;
	pthread_mutex_unlock(&m->lock);
	if (wake)
		io_loop_post(m->loop, &m->post);
}
