/* SPDX-License-Identifier: BSD-2-Clause */
/* say.c: messages, in the form and, for the errors that tgtadm has, in the words of
 * tgtadm. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "tools/tgtadm/tgtadm.h"

const char tgtadm_no_target[] = "can't find the target";
const char tgtadm_target_exists[] = "this target already exists";
const char tgtadm_no_lun[] = "can't find the logical unit";
const char tgtadm_lun_exists[] = "this logical unit number already exists";
const char tgtadm_rule_exists[] = "this access control rule already exists";
const char tgtadm_no_rule[] = "this access control rule does not exist";
const char tgtadm_user_exists[] = "this account already exists";
const char tgtadm_no_user[] = "can't find the account";
const char tgtadm_has_outgoing[] =
	"this target already has an outgoing account";
const char tgtadm_no_session[] = "can't find the session";
const char tgtadm_no_connection[] = "can't find the connection";
const char tgtadm_target_active[] = "this target is still active";
const char tgtadm_no_driver[] = "can't find the driver";
const char tgtadm_invalid[] = "invalid request";

static const char *program = "iser-tgtadm";

void tgtadm_program(const char *argv0)
{
	const char *slash = argv0 ? strrchr(argv0, '/') : NULL;

	if (argv0 && *argv0)
		program = slash && slash[1] ? slash + 1 : argv0;
}

static void say(const char *fmt, va_list ap)
{
	char text[2048], shown[TEXT_ESCAPED_SIZE(sizeof(text))];

	vsnprintf(text, sizeof(text), fmt, ap);
	fprintf(stderr, "%s: %s\n", program,
		text_escape_str(shown, sizeof(shown), text));
}

void tgtadm_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

int tgtadm_refuse(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	return TGTADM_REFUSED;
}

void tgtadm_note(struct tgtadm *t, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!t->notes)
		t->notes = json_array();
	json_array_append_new(t->notes, json_string(text));
}

const char *tgtadm_name_of_program(void)
{
	return program;
}
