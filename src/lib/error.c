/* SPDX-License-Identifier: BSD-2-Clause */
/* error.c: error codes, messages, and the version. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/escape.h"
#include "lib/internal.h"

const char *iser_version(void)
{
	return OPENISER_VERSION;
}

const char *iser_strerror(int err)
{
	switch ((enum iser_error)err) {
	case ISER_OK:
		return "no error";
	case ISER_E_NOMEM:
		return "out of memory";
	case ISER_E_INVALID:
		return "invalid argument";
	case ISER_E_CONNECT:
		return "could not connect";
	case ISER_E_LOGIN:
		return "login refused";
	case ISER_E_AUTH:
		return "authentication failed";
	case ISER_E_NOT_FOUND:
		return "not found";
	case ISER_E_TIMEOUT:
		return "timed out";
	case ISER_E_CLOSED:
		return "connection lost";
	case ISER_E_SCSI:
		return "the command failed";
	case ISER_E_PROTOCOL:
		return "protocol error";
	case ISER_E_UNSUPPORTED:
		return "not supported";
	case ISER_E_SYSTEM:
		return "system error";
	case ISER_E_ABORTED:
		return "the target dropped the command";
	case ISER_E_SHORT:
		return "short transfer";
	case ISER_E_MISCOMPARE:
		return "the data differ";
	case ISER_E_NO_PATH:
		return "no path to the unit carries commands";
	case ISER_E_CHANGED:
		return "the LUN leads to another unit, or its size has changed";
	}
	return "unknown error";
}

int lib_error(int err)
{
	switch (err) {
	case 0:
		return ISER_OK;
	case ERR_NOMEM:
	case -ENOMEM:
		return ISER_E_NOMEM;
	case ERR_TIMEOUT:
	case -ETIMEDOUT:
		return ISER_E_TIMEOUT;
	case ERR_CLOSED:
	case ERR_RESET:
	case -ECONNRESET:
	case -EPIPE:
		return ISER_E_CLOSED;
	case ERR_ABORTED:
		return ISER_E_ABORTED;
	case ERR_SHORT:
		return ISER_E_SHORT;
	case ERR_AUTH:
		return ISER_E_AUTH;
	case ERR_LOGIN:
	case ERR_DENIED:
		return ISER_E_LOGIN;
	case ERR_UNSUPPORTED:
		return ISER_E_UNSUPPORTED;
	case ERR_NOT_FOUND:
		return ISER_E_NOT_FOUND;
	default:
		return err > -1000 ? ISER_E_SYSTEM : ISER_E_PROTOCOL;
	}
}

bool lib_is_loss(int err)
{
	return err > -1000 || err == ERR_DATA_DIGEST ||
	       err_class_of(err) == ERR_CLASS_CONNECTION;
}

int lib_rdma_error(int err)
{
	switch (err) {
	case ERR_DENIED:
		return ISER_E_CONNECT;
	case ERR_ABORTED:
	case ERR_WRONG_STATE:
		return ISER_E_CLOSED;
	case ERR_RANGE:
	case ERR_TOO_LONG:
		return ISER_E_INVALID;
	case ERR_BUSY:
		return ISER_E_NOMEM;
	default:
		return lib_error(err);
	}
}

bool lib_url_unused(const struct iser_url *url)
{
	uint8_t set = 0;

	for (size_t i = 0; i < sizeof(url->reserved_bytes); i++)
		set |= url->reserved_bytes[i];
	return LIB_UNUSED(url) && !set;
}

int lib_fail(struct iser_context *ctx, int err, const char *fmt, ...)
{
	char text[sizeof(ctx->message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_escape_str(ctx->message, sizeof(ctx->message), text);
	return err;
}

const char *iser_message(const struct iser_context *ctx)
{
	return ctx->message;
}
