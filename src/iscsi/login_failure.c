/* SPDX-License-Identifier: BSD-2-Clause */
/* login_failure.c: how a login fails, and the standard's words for it. */
#include <stdarg.h>
#include <stdio.h>

#include "iscsi/login_engine.h"

const char *iscsi_login_status_str(uint16_t status)
{
	switch ((enum iscsi_login_status)status) {
	case ISCSI_LOGIN_SUCCESS:
		return "Success";
	case ISCSI_LOGIN_MOVED_TEMPORARILY:
		return "Target moved temporarily";
	case ISCSI_LOGIN_MOVED_PERMANENTLY:
		return "Target moved permanently";
	case ISCSI_LOGIN_INITIATOR_ERROR:
		return "Initiator error";
	case ISCSI_LOGIN_AUTH_FAILURE:
		return "Authentication failure";
	case ISCSI_LOGIN_FORBIDDEN:
		return "Authorization failure";
	case ISCSI_LOGIN_NOT_FOUND:
		return "Not found";
	case ISCSI_LOGIN_REMOVED:
		return "Target removed";
	case ISCSI_LOGIN_BAD_VERSION:
		return "Unsupported version";
	case ISCSI_LOGIN_TOO_MANY_CONNECTIONS:
		return "Too many connections";
	case ISCSI_LOGIN_MISSING_PARAMETER:
		return "Missing parameter";
	case ISCSI_LOGIN_CANT_INCLUDE:
		return "Can't include in session";
	case ISCSI_LOGIN_BAD_SESSION_TYPE:
		return "Session type not supported";
	case ISCSI_LOGIN_NO_SESSION:
		return "Session does not exist";
	case ISCSI_LOGIN_INVALID_DURING_LOGIN:
		return "Invalid during login";
	case ISCSI_LOGIN_TARGET_ERROR:
		return "Target error";
	case ISCSI_LOGIN_UNAVAILABLE:
		return "Service unavailable";
	case ISCSI_LOGIN_NO_RESOURCES:
		return "Out of resources";
	}
	return "unknown login status";
}

int login_fail(struct iscsi_login_engine *e, int err, uint16_t status,
	       const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->failure.text, sizeof(e->failure.text), fmt, ap);
	va_end(ap);
	/* an initiator has no status to send, and the target has sent none */
	e->failure.status = e->cfg->role == ISCSI_TARGET ? status : 0;
	e->state = LOGIN_FAILED;
	return err;
}
