/* SPDX-License-Identifier: BSD-2-Clause */
/* err.c: texts and classes of the error codes. */
#include "base/err.h"

#include <stdio.h>

const char *err_str(int err)
{
	switch (err) {
	case 0:
		return "no error";
#define ERR_TEXT(name, value, cls, text) \
 case value:                             \
  return text;
		ERR_TABLE(ERR_TEXT)
#undef ERR_TEXT
	default:
		return "unknown error";
	}
}

enum err_class err_class_of(int err)
{
	switch (err) {
	case 0:
		return ERR_CLASS_NONE;
#define ERR_CLS(name, value, cls, text) \
 case value:                            \
  return ERR_CLASS_##cls;
		ERR_TABLE(ERR_CLS)
#undef ERR_CLS
	default:
		return ERR_CLASS_FATAL;
	}
}

void err_why(char *why, size_t size, const char *what, const char *format,
	     va_list args)
{
	int at = snprintf(why, size, "%s: ", what);

	if (at > 0 && (size_t)at < size)
		vsnprintf(why + at, size - (size_t)at, format, args);
}
