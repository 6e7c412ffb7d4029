/* SPDX-License-Identifier: BSD-2-Clause */
/* ports.c: the target ports of the server (ports.h). */
#include "device/unit/ports.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"

#define MAX_PORTS 65535u

static struct dev_port *load_port(struct dev_port *const *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static struct dev_ports *load_ports(struct dev_ports *const *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* ---- reading: any worker ---- */

/* Returns the ports of the target whose name has len bytes, or NULL. */
static struct dev_ports *find(const struct dev_server *s, const char *name,
			      size_t len)
{
	const uint32_t crc = crc32c_update(CRC32C_SEED, name, len);
	struct dev_ports *d = load_ports(&s->ports);

	while (d && (d->crc != crc || strncmp(d->name, name, len) != 0 ||
		     d->name[len]))
		d = load_ports(&d->next);
	return d;
}

const struct dev_ports *dev_ports_of(const struct dev_nexus *n)
{
	const char *name = n->cfg.target_name;

	return n->ports ? n->ports : find(n->server, name, strlen(name));
}

const struct dev_port *dev_port_next(const struct dev_port *port)
{
	return load_port(&port->next);
}

unsigned dev_ports_count(const struct dev_ports *ports)
{
	const struct dev_port *p = ports ? ports->first : NULL;
	unsigned n = 0;

	for (; p; p = dev_port_next(p))
		n++;
	return n;
}

const struct dev_port *dev_ports_at(const struct dev_ports *ports, unsigned i)
{
	const struct dev_port *p = ports ? ports->first : NULL;

	while (p && i--)
		p = dev_port_next(p);
	return p;
}

bool dev_ports_have(const struct dev_ports *ports, uint16_t rtpi)
{
	const struct dev_port *p = ports ? ports->first : NULL;

	while (p && p->rtpi != rtpi)
		p = dev_port_next(p);
	return p;
}

bool dev_port_is_own(const struct dev_server *s, uint16_t rtpi)
{
	const uint32_t *p = &s->own_ports[rtpi / 32];

	return __atomic_load_n(p, __ATOMIC_ACQUIRE) >> rtpi % 32 & 1;
}

/* ---- adding: the home worker ---- */

/* SPC-4 §7.8.6: the name of a port is the name of its device, a separator and the
 * portal group tag. Returns the length of the first. */
static size_t device_len(const char *port)
{
	const char *end = strstr(port, ",t,0x");

	return end ? (size_t)(end - port) : strlen(port);
}

static struct dev_port *new_port(const char *name, uint16_t rtpi)
{
	size_t len = strlen(name) + 1;
	struct dev_port *p = malloc(sizeof(*p) + len);

	if (!p)
		return NULL;
	p->next = NULL;
	p->rtpi = rtpi;
	memcpy(p->name, name, len);
	return p;
}

/* False: no memory. */
static bool add_device(struct dev_server *s, struct dev_port *port)
{
	size_t len = device_len(port->name);
	struct dev_ports *d = malloc(sizeof(*d) + len + 1), **p = &s->ports;

	if (!d)
		return false;
	memcpy(d->name, port->name, len);
	d->name[len] = '\0';
	d->crc = crc32c_update(CRC32C_SEED, d->name, len);
	d->first = port;
	d->next = *p;
	__atomic_store_n(p, d, __ATOMIC_RELEASE);
	return true;
}

static void append(struct dev_ports *d, struct dev_port *port)
{
	struct dev_port **p = &d->first;

	while (*p)
		p = &(*p)->next;
	__atomic_store_n(p, port, __ATOMIC_RELEASE);
}

static void set_own(struct dev_server *s, uint16_t rtpi)
{
	uint32_t *p = &s->own_ports[rtpi / 32];

	__atomic_store_n(p, *p | BIT(rtpi % 32), __ATOMIC_RELEASE);
}

static int add(struct dev_server *s, struct dev_ports *d, const char *name,
	       uint16_t rtpi)
{
	struct dev_port *port = new_port(name, rtpi);

	if (!port)
		return ERR_NOMEM;
	if (!d && !add_device(s, port)) {
		free(port);
		return ERR_NOMEM;
	}
	if (d)
		append(d, port);
	set_own(s, rtpi);
	return 0;
}

/* ---- identifiers ---- */

static struct dev_port *remembered(const struct dev_server *s, const char *name,
				   uint16_t rtpi)
{
	struct dev_port *p = s->known_ports;

	while (p && p->rtpi != rtpi && strcmp(p->name, name) != 0)
		p = p->next;
	return p;
}

int dev_port_remember(struct dev_server *s, const char *name, uint16_t rtpi)
{
	struct dev_port *p = remembered(s, name, rtpi);

	if (rtpi == 0)
		return ERR_RANGE;
	if (strlen(name) >= DEV_PORT_NAME)
		return ERR_TOO_LONG;
	if (p)
		return p->rtpi == rtpi && !strcmp(p->name, name) ? 0 : ERR_BUSY;
	p = new_port(name, rtpi);
	if (!p)
		return ERR_NOMEM;
	p->next = s->known_ports;
	s->known_ports = p;
	s->next_port = MAX(s->next_port, (uint32_t)rtpi + 1);
	return 0;
}

/* Returns the identifier that the port has got before, or a new one, which is then
 * remembered. 0: err has the reason. */
static uint16_t identifier(struct dev_server *s, const char *name, int *err)
{
	const struct dev_port *p = remembered(s, name, 0);

	if (p)
		return p->rtpi;
	*err = s->next_port > MAX_PORTS
		       ? ERR_LIMIT
		       : dev_port_remember(s, name, (uint16_t)s->next_port);
	return *err ? 0 : s->known_ports->rtpi;
}

void dev_ports_each(const struct dev_server *s,
		    void (*fn)(void *arg, const char *name, uint16_t rtpi),
		    void *arg)
{
	for (const struct dev_port *p = s->known_ports; p; p = p->next)
		fn(arg, p->name, p->rtpi);
}

int dev_port_add(struct dev_server *s, const char *name, uint16_t *rtpi)
{
	struct dev_ports *d = find(s, name, device_len(name));
	int err = 0;

	if (strlen(name) >= DEV_PORT_NAME)
		return ERR_TOO_LONG;
	for (const struct dev_port *p = d ? d->first : NULL; p; p = p->next) {
		if (strcmp(p->name, name) != 0)
			continue;
		*rtpi = p->rtpi;
		return 0;
	}
	*rtpi = identifier(s, name, &err);
	return *rtpi ? add(s, d, name, *rtpi) : err;
}

void dev_server_first_port(struct dev_server *s, uint16_t rtpi)
{
	s->next_port = MAX(s->next_port, (uint32_t)rtpi);
}

static void free_ports(struct dev_port *p)
{
	while (p) {
		struct dev_port *next = p->next;

		free(p);
		p = next;
	}
}

void dev_ports_fini(struct dev_server *s)
{
	struct dev_ports *d;

	while ((d = s->ports)) {
		free_ports(d->first);
		s->ports = d->next;
		free(d);
	}
	free_ports(s->known_ports);
}
