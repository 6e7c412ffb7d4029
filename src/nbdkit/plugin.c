/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin.c: nbdkit iser URL: serves a logical unit to NBD clients.
 *
 * Each NBD connection has a session of its own, and a thread that runs the loop of
 * its context. The threads of nbdkit, several for each connection, pass requests
 * to that thread by iser_call and wait for their end.
 */
#define NBDKIT_API_VERSION 2
#include <errno.h>
#include <iser/unit.h>
#include <nbdkit-plugin.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define RANGES	     128 /* of one EXTENTS request */
#define PAUSE_US     100000

/* ---- configuration ---- */

/* The parameters of the command line; NULL: not given. */
static struct {
	char *url, *user, *password, *target_user, *target_password;
} config;

static void wipe(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

static void plugin_unload(void)
{
	wipe(config.url); /* it may have a password */
	free(config.user);
	wipe(config.password);
	free(config.target_user);
	wipe(config.target_password);
}

static int set_text(char **to, const char *key, const char *value)
{
	if (*to) {
		nbdkit_error("%s: given twice", key);
		return -1;
	}
	*to = strdup(value);
	if (!*to)
		nbdkit_error("out of memory");
	return *to ? 0 : -1;
}

/* Several URLs are paths to one unit. */
static int add_url(const char *value)
{
	char *both = NULL;

	if (!config.url)
		return set_text(&config.url, "url", value);
	if (asprintf(&both, "%s %s", config.url, value) < 0) {
		nbdkit_error("out of memory");
		return -1;
	}
	wipe(config.url);
	config.url = both;
	return 0;
}

static int plugin_config(const char *key, const char *value)
{
	if (!strcmp(key, "url"))
		return add_url(value);
	if (!strcmp(key, "user"))
		return set_text(&config.user, key, value);
	if (!strcmp(key, "target-user"))
		return set_text(&config.target_user, key, value);
	if (!strcmp(key, "password"))
		return nbdkit_read_password(value, &config.password);
	if (!strcmp(key, "target-password"))
		return nbdkit_read_password(value, &config.target_password);
	nbdkit_error("unknown parameter '%s'; expected url, user, password, "
		     "target-user or target-password",
		     key);
	return -1;
}

static int override_member(char *to, size_t size, const char *value,
			   const char *key)
{
	if (!value)
		return 0;
	if (strlen(value) >= size) {
		nbdkit_error("%s: longer than %zu characters", key, size - 1);
		return -1;
	}
	strcpy(to, value);
	return 0;
}

/* Reads the URLs; the parameters take the place of what they have. Returns their
 * number, or -1. */
static int make_urls(struct iser_url *urls)
{
	char why[256];
	int n = iser_paths_parse(urls, ISER_PATHS_MAX, config.url, why,
				 sizeof(why));

	if (n < 0) {
		nbdkit_error("%s", why);
		return -1;
	}
	for (int i = 0; i < n; i++) {
		struct iser_url *u = &urls[i];

		if (override_member(u->user, sizeof(u->user), config.user,
				    "user") ||
		    override_member(u->password, sizeof(u->password),
				    config.password, "password") ||
		    override_member(u->target_user, sizeof(u->target_user),
				    config.target_user, "target-user") ||
		    override_member(u->target_password,
				    sizeof(u->target_password),
				    config.target_password, "target-password"))
			return -1;
	}
	return n;
}

static int plugin_config_complete(void)
{
	struct iser_url urls[ISER_PATHS_MAX];
	int n;

	if (!config.url) {
		nbdkit_error("no URL: nbdkit iser "
			     "iscsi://HOST[:PORT]/TARGET/LUN");
		return -1;
	}
	n = make_urls(urls);
	explicit_bzero(urls, sizeof(urls));
	return n < 0 ? -1 : 0;
}

#define CONFIG_HELP                                                                 \
 "[url=]URL              (required) iscsi://HOST[:PORT]/TARGET/LUN or iser://...\n" \
 "                       url=URL again: another path to the same unit\n"            \
 "user=NAME              CHAP: name of the initiator\n"                             \
 "password=SECRET        its secret, +FILE to read it from a file, - to ask\n"      \
 "target-user=NAME       mutual CHAP: name of the target\n"                         \
 "target-password=SECRET its secret"

static void plugin_dump(void)
{
	printf("iser_version=%s\n", iser_version());
}

/* ---- connections ---- */

struct handle {
	struct iser_context *ctx;
	struct iser_session *session;
	struct iser_unit *unit;
	struct iser_unit_info info;
	pthread_t thread;
	bool leaving; /* of the thread */
	char description[80];
};

/* One request of a thread of nbdkit. */
struct work {
	struct iser_call call;
	struct iser_request request;
	struct handle *handle;
	sem_t ended;
};

static void *run_loop(void *arg)
{
	struct handle *h = arg;

	/* after a failure of the loop, which lasts as long as a lack of memory,
	 * requests still wait for their end */
	while (!h->leaving)
		if (iser_service(h->ctx, -1))
			usleep(PAUSE_US);
	return NULL;
}

static void on_request_end(struct iser_request *r)
{
	struct work *w = r->arg;

	sem_post(&w->ended);
}

static void begin_work(struct iser_call *c)
{
	struct work *w = c->arg;

	iser_unit_submit(w->handle->unit, &w->request);
}

/* Executes w->request and waits for its end. Returns 0, or -1 with the error
 * reported to nbdkit. */
static int execute(struct handle *h, struct work *w)
{
	char text[240];
	int err;

	w->handle = h;
	w->call.run = begin_work;
	w->call.arg = w;
	w->request.done = on_request_end;
	w->request.arg = w;
	sem_init(&w->ended, 0, 0);
	iser_call(h->ctx, &w->call);
	while (sem_wait(&w->ended))
		; /* EINTR */
	sem_destroy(&w->ended);
	err = iser_request_errno(&w->request);
	if (!err)
		return 0;
	/* a client expects EOPNOTSUPP for a fast zero */
	if (err != EOPNOTSUPP) {
		iser_request_describe(&w->request, text, sizeof(text));
		nbdkit_error("%s", text);
	}
	/* nbdkit would turn errors that NBD does not have into EINVAL */
	if (err == ENOMEDIUM || err == EBUSY || err == EILSEQ ||
	    err == ETIMEDOUT)
		err = EIO;
	nbdkit_set_error(err);
	return -1;
}

static void stop_loop(struct iser_call *c)
{
	struct handle *h = c->arg;

	h->leaving = true;
}

static void free_handle(struct handle *h)
{
	if (!h)
		return;
	iser_unit_close(h->unit);
	iser_disconnect(h->session);
	iser_context_free(h->ctx);
	free(h);
}

static void plugin_close(void *handle)
{
	struct handle *h = handle;
	struct iser_call stop = { .run = stop_loop, .arg = h };

	iser_call(h->ctx, &stop);
	pthread_join(h->thread, NULL);
	free_handle(h);
}

static int log_in(struct handle *h)
{
	struct iser_url urls[ISER_PATHS_MAX];
	int n = make_urls(urls), err;

	if (n < 0)
		return -1;
	h->session = iser_connect_paths(h->ctx, urls, (unsigned)n, &err);
	if (h->session)
		h->unit = iser_unit_open(h->session, urls[0].lun, &err);
	if (h->unit) {
		iser_unit_get_info(h->unit, &h->info);
		snprintf(h->description, sizeof(h->description),
			 "%s %s, LUN %d", h->info.vendor, h->info.product,
			 urls[0].lun);
	} else {
		nbdkit_error("%s", iser_message(h->ctx));
	}
	explicit_bzero(urls, sizeof(urls));
	return h->unit ? 0 : -1;
}

static void *plugin_open(int readonly)
{
	struct handle *h = calloc(1, sizeof(*h));

	(void)readonly; /* nbdkit refuses the writes */
	if (h)
		h->ctx = iser_context_new(NULL);
	if (!h || !h->ctx) {
		nbdkit_error("out of memory or file descriptors");
	} else if (!log_in(h)) {
		int err = pthread_create(&h->thread, NULL, run_loop, h);

		if (!err)
			return h;
		nbdkit_error("cannot create a thread: %s", strerror(err));
	}
	free_handle(h);
	return NULL;
}

/* ---- properties ---- */

static int64_t plugin_get_size(void *handle)
{
	return (int64_t)((struct handle *)handle)->info.bytes;
}

static const char *plugin_description(void *handle)
{
	return ((struct handle *)handle)->description;
}

static int plugin_block_size(void *handle, uint32_t *minimum,
			     uint32_t *preferred, uint32_t *maximum)
{
	const struct iser_unit_info *i = &((struct handle *)handle)->info;

	*minimum = i->block_size;
	*preferred = i->physical_block_size < 4096 ? 4096
		     : i->physical_block_size > 1 << 25
			     ? 1 << 25
			     : i->physical_block_size;
	*maximum = UINT32_MAX;
	return 0;
}

static int plugin_can_write(void *handle)
{
	return !((struct handle *)handle)->info.read_only;
}

static int plugin_can_flush(void *handle)
{
	(void)handle;
	return 1;
}

static int plugin_can_trim(void *handle)
{
	return ((struct handle *)handle)->info.can_trim;
}

static int plugin_can_zero(void *handle)
{
	(void)handle;
	return 1;
}

static int plugin_can_fua(void *handle)
{
	(void)handle;
	return NBDKIT_FUA_NATIVE;
}

static int plugin_can_extents(void *handle)
{
	return ((struct handle *)handle)->info.thin;
}

/* SYNCHRONIZE CACHE concerns the data of all sessions. Without COMPARE AND WRITE,
 * two connections that write parts of one block could lose bytes. */
static int plugin_can_multi_conn(void *handle)
{
	return ((struct handle *)handle)->info.atomic_partial;
}

/* ---- requests ---- */

static int plugin_pread(void *handle, void *buf, uint32_t count,
			uint64_t offset, uint32_t flags)
{
	struct iovec iov = { buf, count };
	struct work w = { .request = { .op = ISER_OP_READ,
				       .offset = offset,
				       .length = count,
				       .iov = &iov,
				       .niov = 1 } };

	(void)flags;
	return execute(handle, &w);
}

static int plugin_pwrite(void *handle, const void *buf, uint32_t count,
			 uint64_t offset, uint32_t flags)
{
	struct iovec iov = { (void *)(uintptr_t)buf, count };
	struct work w = { .request = { .op = ISER_OP_WRITE,
				       .offset = offset,
				       .length = count,
				       .iov = &iov,
				       .niov = 1 } };

	if (flags & NBDKIT_FLAG_FUA)
		w.request.flags = ISER_OP_FUA;
	return execute(handle, &w);
}

static int plugin_flush(void *handle, uint32_t flags)
{
	struct work w = { .request = { .op = ISER_OP_FLUSH } };

	(void)flags;
	return execute(handle, &w);
}

static int plugin_trim(void *handle, uint32_t count, uint64_t offset,
		       uint32_t flags)
{
	struct work w = { .request = { .op = ISER_OP_TRIM,
				       .offset = offset,
				       .length = count } };

	if (flags & NBDKIT_FLAG_FUA)
		w.request.flags = ISER_OP_FUA;
	return execute(handle, &w);
}

static int plugin_zero(void *handle, uint32_t count, uint64_t offset,
		       uint32_t flags)
{
	struct work w = { .request = { .op = ISER_OP_ZERO,
				       .offset = offset,
				       .length = count } };

	if (flags & NBDKIT_FLAG_FUA)
		w.request.flags |= ISER_OP_FUA;
	if (flags & NBDKIT_FLAG_MAY_TRIM)
		w.request.flags |= ISER_OP_MAY_UNMAP;
	if (flags & NBDKIT_FLAG_FAST_ZERO)
		w.request.flags |= ISER_OP_FAST;
	return execute(handle, &w);
}

static int plugin_extents(void *handle, uint32_t count, uint64_t offset,
			  uint32_t flags, struct nbdkit_extents *extents)
{
	struct iser_range ranges[RANGES];
	struct work w = { .request = { .op = ISER_OP_EXTENTS,
				       .offset = offset,
				       .length = count,
				       .ranges = ranges } };

	w.request.max_ranges = flags & NBDKIT_FLAG_REQ_ONE ? 1 : RANGES;
	if (execute(handle, &w))
		return -1;
	for (unsigned i = 0; i < w.request.nranges; i++) {
		uint32_t type = ranges[i].mapped  ? 0
				: ranges[i].zeros ? NBDKIT_EXTENT_HOLE |
							    NBDKIT_EXTENT_ZERO
						  : NBDKIT_EXTENT_HOLE;

		if (nbdkit_add_extent(extents, ranges[i].offset,
				      ranges[i].length, type))
			return -1;
	}
	return 0;
}

static struct nbdkit_plugin plugin = {
	.name = "iser",
	.longname = "openiser iSCSI and iSER plugin",
	.description = "serves a logical unit of an iSCSI or iSER target",
	.version = OPENISER_VERSION,
	.unload = plugin_unload,
	.config = plugin_config,
	.config_complete = plugin_config_complete,
	.config_help = CONFIG_HELP,
	.magic_config_key = "url",
	.dump_plugin = plugin_dump,
	.open = plugin_open,
	.close = plugin_close,
	.get_size = plugin_get_size,
	.export_description = plugin_description,
	.block_size = plugin_block_size,
	.can_write = plugin_can_write,
	.can_flush = plugin_can_flush,
	.can_trim = plugin_can_trim,
	.can_zero = plugin_can_zero,
	.can_fast_zero = plugin_can_zero,
	.can_fua = plugin_can_fua,
	.can_extents = plugin_can_extents,
	.can_multi_conn = plugin_can_multi_conn,
	.pread = plugin_pread,
	.pwrite = plugin_pwrite,
	.flush = plugin_flush,
	.trim = plugin_trim,
	.zero = plugin_zero,
	.extents = plugin_extents,
	.errno_is_preserved = 0,
};

struct nbdkit_plugin *plugin_init(void); /* of the macro, for clang */

NBDKIT_REGISTER_PLUGIN(plugin)
