/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsv_model.h: a small model of a unit with reservations, written from SPC-4
 * §5.13 and SPC-2 §5.5.1. The model has one entry for each initiator, where the
 * device has lists, snapshots and messages. Its state is `m`, which a test can
 * copy and restore.
 */
#ifndef TESTS_DEVICE_RSV_MODEL_H
#define TESTS_DEVICE_RSV_MODEL_H

#include "three.h"

enum {
	ATTENTION_POWER_ON,
	ATTENTION_RESET,
	ATTENTION_PREEMPTED, /* RESERVATIONS PREEMPTED */
	ATTENTION_RELEASED,
	ATTENTION_REGISTRATIONS,
	ATTENTION_KINDS,
};

static const uint16_t attention_asc[] = { 0x2900, 0x2903, 0x2a03, 0x2a04,
					  0x2a05 };

static struct model {
	bool registered[INITIATORS];
	uint64_t key[INITIATORS];
	unsigned type; /* 0: no reservation */
	int holder;    /* of types 1, 3, 5, 6 */
	int reserved;  /* by RESERVE; -1: none */
	uint32_t generation;
	unsigned attentions[INITIATORS];
	unsigned faulted; /* 1 + the faulted initiator; 0: no ACA */
	bool tmf_only;
} m;

struct result {
	int status;
	uint8_t key;
	uint16_t asc;
};

static const struct result good = { SCSI_GOOD, 0, 0 };
static const struct result conflict = { SCSI_RESERVATION_CONFLICT, 0, 0 };

static inline struct result check(uint8_t key, uint16_t asc)
{
	return (struct result){ SCSI_CHECK_CONDITION, key, asc };
}

/* ---- the rules of SPC-4 §5.13 for each initiator ---- */

static inline bool registrants_only(void)
{
	return m.type == 5 || m.type == 6;
}

static inline bool all_registrants(void)
{
	return m.type == 7 || m.type == 8;
}

static inline bool exclusive_access(void)
{
	return m.type == 3 || m.type == 6 || m.type == 8;
}

static inline bool holds(unsigned who)
{
	if (!m.type)
		return false;
	return all_registrants() ? m.registered[who] : m.holder == (int)who;
}

static inline void attention_for_registrants(unsigned but, unsigned what)
{
	for (unsigned i = 0; i < INITIATORS; i++)
		if (i != but && m.registered[i])
			m.attentions[i] |= 1u << what;
}

static inline unsigned nregistered(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < INITIATORS; i++)
		n += m.registered[i];
	return n;
}

static inline struct result model_access(unsigned who, bool write)
{
	if (m.reserved >= 0)
		return m.reserved == (int)who ? good : conflict;
	if (!m.type || holds(who) || (registrants_only() && m.registered[who]))
		return good;
	return write || exclusive_access() ? conflict : good;
}

static inline struct result model_old_kind(unsigned who)
{
	bool part = holds(who) || (registrants_only() && m.registered[who]);

	return m.type && part ? good : conflict;
}

static inline struct result model_reserve_6(unsigned who)
{
	if (nregistered())
		return model_old_kind(who);
	if (m.reserved >= 0 && m.reserved != (int)who)
		return conflict;
	m.reserved = (int)who;
	return good;
}

static inline struct result model_release_6(unsigned who)
{
	if (nregistered())
		return model_old_kind(who);
	if (m.reserved == (int)who)
		m.reserved = -1;
	return good;
}

static inline void unregister(unsigned who)
{
	m.registered[who] = false;
	if (!m.type)
		return;
	if (all_registrants() ? nregistered() == 0 : m.holder == (int)who) {
		if (registrants_only())
			attention_for_registrants(who, ATTENTION_RELEASED);
		m.type = 0;
	}
}

static inline struct result model_register(unsigned who, uint64_t key,
					   uint64_t to, bool ignore)
{
	if (!ignore && key != (m.registered[who] ? m.key[who] : 0))
		return conflict;
	if (!m.registered[who] && to == 0)
		return good;
	m.generation++;
	if (to == 0) {
		unregister(who);
	} else {
		m.registered[who] = true;
		m.key[who] = to;
	}
	return good;
}

static inline struct result model_reserve(unsigned who, unsigned type)
{
	if (m.type)
		return holds(who) && m.type == type ? good : conflict;
	m.type = type;
	m.holder = (int)who;
	return good;
}

static inline struct result model_release(unsigned who, unsigned type)
{
	if (!holds(who))
		return good;
	if (m.type != type)
		return check(SENSE_ILLEGAL_REQUEST, 0x2604);
	if (m.type >= 5)
		attention_for_registrants(who, ATTENTION_RELEASED);
	m.type = 0;
	return good;
}

static inline struct result model_clear(unsigned who)
{
	attention_for_registrants(who, ATTENTION_PREEMPTED);
	memset(m.registered, 0, sizeof(m.registered));
	m.type = 0;
	m.generation++;
	return good;
}

static inline void preempted(unsigned who, unsigned victim)
{
	m.registered[victim] = false;
	if (victim != who)
		m.attentions[victim] |= 1u << ATTENTION_REGISTRATIONS;
}

static inline struct result model_preempt(unsigned who, unsigned type,
					  uint64_t key)
{
	bool takes = m.type &&
		     (all_registrants() ? key == 0 : m.key[m.holder] == key);
	unsigned was = m.type, n = 0;

	if (key == 0 && !(m.type && all_registrants()))
		return check(SENSE_ILLEGAL_REQUEST, 0x2600);
	for (unsigned i = 0; i < INITIATORS; i++) {
		bool hit = m.registered[i] &&
			   (key == 0 ? i != who : m.key[i] == key);

		if (!hit || (takes && i == who))
			continue;
		preempted(who, i);
		n++;
	}
	if (!takes && n == 0)
		return conflict;
	m.generation++;
	if (takes) {
		if (was != type)
			attention_for_registrants(who, ATTENTION_RELEASED);
		m.type = type;
		m.holder = (int)who;
	} else if (all_registrants() && nregistered() == 0) {
		m.type = 0;
	}
	return good;
}

static inline struct result model_move(unsigned who, unsigned to, uint64_t key,
				       bool unreg)
{
	if (!m.type)
		return check(SENSE_ILLEGAL_REQUEST, 0x2400);
	if (all_registrants() || m.holder != (int)who)
		return conflict;
	if (key == 0 || to == who)
		return check(SENSE_ILLEGAL_REQUEST, 0x2600);
	m.generation++;
	m.registered[to] = true;
	m.key[to] = key;
	m.holder = (int)to;
	if (unreg)
		m.registered[who] = false;
	return good;
}

struct pr_out {
	uint8_t action, type;
	uint64_t key, sa_key;
	unsigned to;
	bool unreg;
};

static inline struct result model_out(unsigned who, const struct pr_out *o)
{
	bool anyone = o->action == 0 || o->action == 6;

	if (m.reserved >= 0)
		return conflict;
	if (!anyone && (!m.registered[who] || m.key[who] != o->key))
		return conflict;
	switch (o->action) {
	case 0:
	case 6:
		return model_register(who, o->key, o->sa_key, o->action == 6);
	case 1:
		return model_reserve(who, o->type);
	case 2:
		return model_release(who, o->type);
	case 3:
		return model_clear(who);
	case 7:
		return model_move(who, o->to, o->sa_key, o->unreg);
	default:
		return model_preempt(who, o->type, o->sa_key);
	}
}

#endif
