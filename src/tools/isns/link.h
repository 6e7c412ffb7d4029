/* SPDX-License-Identifier: BSD-2-Clause */
/* link.h: the TCP connections between this process and its iSNS server: its addresses, and
 * messages in and out. */
#ifndef TOOLS_ISNS_LINK_H
#define TOOLS_ISNS_LINK_H

#include "tools/isns/message.h"

/* The server and the addresses that its name had last. */
struct isns_peer {
	const char *name; /* "HOST" or "HOST:PORT" (3205) */
	struct in6_addr ips[16];
	unsigned nips;
	char why[160]; /* the last connection failed */
};

/* isns_peer_connect looks the server up, connects to it within 15 seconds, and returns
 * the socket; or -1, and the reason is in p->why. */
int isns_peer_connect(struct isns_peer *p);
/* isns_peer_route looks the server up and writes the address of this machine from which
 * packets go to the server. False: none. */
bool isns_peer_route(struct isns_peer *p, struct in6_addr *ip);
/* isns_peer_has returns whether the server has this address. */
bool isns_peer_has(const struct isns_peer *p, const struct in6_addr *ip);

/* isns_address_ip returns the address in a socket address, IPv4 as ::ffff:a.b.c.d. */
struct in6_addr isns_address_ip(const struct sockaddr_storage *ss);

/* A message that is being received; starts as zeroes, except fd and limit. */
struct isns_inbox {
	int fd;	      /* borrowed */
	size_t limit; /* bytes of the payload that are permitted */
	struct isns_header header;
	struct isns_payload payload;
	uint8_t head[ISNS_HEADER_LEN];
	size_t nhead, left; /* of the header; of this PDU's payload */
	uint16_t seq;	    /* of the next PDU */
};

enum isns_arrival {
	ISNS_WAIT, /* the message is not complete; no byte is there */
	ISNS_COMPLETE,
	ISNS_BROKEN, /* closed, or not a message of iSNS */
};

/* isns_inbox_read takes what has arrived, without waiting. After ISNS_COMPLETE the
 * message is in header and payload until isns_inbox_next makes room for another one. */
enum isns_arrival isns_inbox_read(struct isns_inbox *in);
void isns_inbox_next(struct isns_inbox *in);

/* isns_link_send sends a message, in several PDUs if one is too small for the payload,
 * within ms milliseconds. False: the connection has failed, or the payload is not
 * complete. */
bool isns_link_send(int fd, uint16_t function, uint16_t xid,
		    const struct isns_payload *p, int ms);

#endif
