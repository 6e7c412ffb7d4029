/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list.h: an intrusive doubly linked list. A node that is on no list points
 * to itself: list_del leaves such a node unchanged, and list_linked returns
 * false for it.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/bytes.h"

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

/* list_linked returns whether node n is on a list. */
static inline bool list_linked(const struct list *n)
{
	return n->next != n;
}

static inline void list_insert_between(struct list *n, struct list *prev,
				       struct list *next)
{
	n->prev = prev;
	n->next = next;
	prev->next = n;
	next->prev = n;
}

static inline void list_push_back(struct list *head, struct list *n)
{
	list_insert_between(n, head->prev, head);
}

static inline void list_push_front(struct list *head, struct list *n)
{
	list_insert_between(n, head, head->next);
}

static inline void list_del(struct list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

/* list_pop_front removes the first node and returns it; NULL if the list is
 * empty. */
static inline struct list *list_pop_front(struct list *head)
{
	struct list *n = head->next;

	if (n == head)
		return NULL;
	list_del(n);
	return n;
}

#define list_entry(node, type, member) container_of(node, type, member)

#define list_for_each(it, head) \
 for (struct list *it = (head)->next; it != (head); it = it->next)

/* The body may remove `it` from the list, and no other node. */
#define list_for_each_safe(it, head)                                       \
 for (struct list *it = (head)->next, *it##_next = it->next; it != (head); \
      it = it##_next, it##_next = it->next)

#endif
