/* SPDX-License-Identifier: BSD-2-Clause */
/* err.c: texts and classes of the error codes. */
#include "base/err.h"

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
