#ifndef TOOLS_BENCH_STRUCTURES_LIST_H
#define TOOLS_BENCH_STRUCTURES_LIST_H

/*
 * The doubly linked list of the structures that embed a node in the object. A head is one pointer. A node points to the
 * pointer that points to it, and can leave the list without knowing which one it is in.
 */

#include <stddef.h>
#include <stdint.h>

#include "tools/bench/structure.h"

struct list_node {
	struct list_node *next;
	struct list_node **pprev; /* NULL: idle */
	uint64_t deadline;
};

_Static_assert(sizeof(struct list_node) <= OBJECT_SIZE, "a node is embedded in the object");

static inline struct list_node *node_of(struct object *object)
{
	return (struct list_node *)(void *)object;
}

static inline struct object *node_object(struct list_node *node)
{
	return (struct object *)(void *)node;
}

static inline void list_push(struct list_node **head, struct list_node *node)
{
	node->next = *head;
	node->pprev = head;
	if (node->next)
		node->next->pprev = &node->next;
	*head = node;
}

static inline void list_remove(struct list_node *node)
{
	*node->pprev = node->next;
	if (node->next)
		node->next->pprev = node->pprev;
	node->pprev = NULL;
}

/* Empty the list, and return its first node. */
static inline struct list_node *list_take(struct list_node **head)
{
	struct list_node *node = *head;

	*head = NULL;
	return node;
}

/* The operation `cancel` of all these structures. */
static inline void list_cancel(void *state, struct object *object)
{
	(void)state;
	list_remove(node_of(object));
}

/* Empty the list and report everything in it as expired. */
static inline void list_expire(struct list_node **head, struct sink *sink)
{
	for (struct list_node *node = list_take(head), *next; node; node = next) {
		next = node->next;
		node->pprev = NULL;
		sink_report(sink, node_object(node));
	}
}

#endif
