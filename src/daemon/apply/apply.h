/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apply.h: changes of the configuration while iserd serves. A change is all or
 * nothing: new backstores and listeners are opened and the new directory is made
 * before anything that is in force changes. Sessions that the change does not
 * concern notice nothing. On worker 0.
 */
#ifndef DAEMON_APPLY_APPLY_H
#define DAEMON_APPLY_APPLY_H

#include "daemon/config/model.h"

struct daemon;
struct tgt_apply_events;
struct unit;

/* apply_model brings the configuration m into force, which belongs to the daemon
 * then, also after an error. done is called later, when m is in force on each
 * worker; false: iserd ends. Returns false if m is refused: e has the reasons, nothing
 * has changed, and done is not called. */
bool apply_model(struct daemon *d, struct cfg_model *m, struct cfg_errors *e,
		 void (*done)(void *arg, bool good), void *arg);
/* apply_check returns whether apply_model could bring m into force, as far as that can
 * be said without opening backstores and addresses. warnings, unless NULL: also whether
 * they are there (look.h), and gets what would be lost (look_identity.h). False: e has the
 * reasons. */
bool apply_check(const struct daemon *d, const struct cfg_model *m,
		 struct cfg_errors *e, struct cfg_errors *warnings);
/* apply_check_units decides which units stay: units[i] becomes NULL if backstore i of m
 * has to be opened, and changed[i] true if the unit in use gets other fields. changed
 * NULL: only checks. */
void apply_check_units(const struct daemon *d, const struct cfg_model *m,
		       struct unit **units, bool *changed,
		       struct cfg_errors *e);
/* apply_directory brings a new directory of the model in force into force, with the
 * secrets that the files have now. False: e has the reason, and events are not called. */
bool apply_directory(struct daemon *d, struct cfg_errors *e,
		     const struct tgt_apply_events *events);
/* apply_save replaces the file at path by the configuration in force, in one step
 * that survives a power loss. Returns 0 or -Exxx; -EMEDIUMTYPE: the path is that of a
 * device, a pipe or a socket, which stays. */
int apply_save(const struct daemon *d, const char *path);
/* apply_reload reads the secrets of CHAP again, for the logins from then on, or
 * applies the configuration file (SIGHUP). A bad file changes nothing, after a
 * message. The service manager gets the begin of the reload now, and its end when
 * each worker has the change, or when it was refused. */
void apply_reload(struct daemon *d);
/* apply_log logs the names of the first fields in which m differs from the
 * configuration in force, without their values. */
void apply_log(struct daemon *d, const struct cfg_model *m);
/* apply_end ends the change in progress; after workers_stop. */
void apply_end(struct daemon *d);

#endif
