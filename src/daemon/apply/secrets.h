/* SPDX-License-Identifier: BSD-2-Clause */
/* secrets.h: the secrets of CHAP, in files that only iserd can read. */
#ifndef DAEMON_APPLY_SECRETS_H
#define DAEMON_APPLY_SECRETS_H

#include "daemon/config/model.h"
#include "iscsi/login.h"

/* chap_secret_read reads the name and the secret of an account into *s, which the
 * caller wipes. False: why (size bytes) has the reason. */
bool chap_secret_read(struct iscsi_chap_secret *s, const char *user,
		      const char *path, char *why, size_t size);

/* chap_secrets_check reads all secrets of a model and forgets them. False: e has an
 * error for each file that cannot be used. in_service: false leaves out groups
 * with credentials, where the process has none. */
bool chap_secrets_check(const struct cfg_model *m, struct cfg_errors *e,
			bool in_service);

#endif
