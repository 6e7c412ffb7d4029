/* SPDX-License-Identifier: BSD-2-Clause */
/* dir_store_test.c: the directory store: what every store must do, and hostile files
 * and messages. */
#include "store_cases.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/cluster/dir_store.h"

static char folder[256];
static const uint8_t uuid[16] = { 0x12, 0x34 };
static int data_fd = -1; /* of the stores that are opened */
#define UNIT "12340000000000000000000000000000"

static struct cluster_store *open_dir(struct io_loop *l, const char *id,
				      const struct cluster_store_events *ev)
{
	struct cluster_store *s;
	char why[512];

	s = dir_store_open(l, folder, uuid, data_fd, id, ev, geteuid(),
			   getegid(), why, sizeof(why));
	if (!s)
		print_error("%s\n", why);
	return s;
}

static void shut_dir(struct cluster_store *s)
{
	s->ops->close(s);
}

static void path_of(char path[512], const char *name)
{
	snprintf(path, 512, "%s/%s", folder, name);
}

static int write_data(struct io_loop *l, struct cluster_store *s, char byte)
{
	char path[512], data[4096];
	int fd, err;

	(void)l;
	(void)s;
	path_of(path, "data");
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	memset(data, byte, sizeof(data));
	err = pwrite(fd, data, sizeof(data), 0) == 4096 ? 0 : ERR_MEDIUM;
	close(fd);
	return err;
}

static char read_data(struct io_loop *l, struct cluster_store *s)
{
	char path[512], byte = 0;
	int fd;

	(void)l;
	(void)s;
	path_of(path, "data");
	fd = open(path, O_RDONLY);
	if (pread(fd, &byte, 1, 0) != 1)
		byte = 0;
	close(fd);
	return byte;
}

static const struct store_kit kit = {
	.open = open_dir,
	.shut = shut_dir,
	.write = write_data,
	.read = read_data,
	.ends_process = true,
};

static void put_file(const char *name, const void *data, size_t len)
{
	char path[512];
	int fd;

	path_of(path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

static struct io_loop *new_loop(void)
{
	int err;

	return io_loop_new(IO_AUTO, &err);
}

static int read_record(struct store_end *e)
{
	struct cluster_request r = { .version = 0 };

	return store_end_do(e, e->s->ops->read, &r);
}

static void remove_file(const char *name)
{
	char path[512];

	path_of(path, name);
	unlink(path);
}

/* A record that is cut off, changed, too long, a link, or of a stranger. */
static void test_damaged_record(void **state)
{
	struct io_loop *l = new_loop();
	struct cluster_request r = { .data = (const uint8_t *)"text",
				     .len = 4 };
	char path[512], whole[64];
	struct store_end e;
	ssize_t len;
	int fd;

	(void)state;
	store_end_open(&e, l, "a");
	remove_file(UNIT "/record");
	assert_int_equal(store_end_do(&e, e.s->ops->swap, &r), 0);
	path_of(path, UNIT "/record");
	fd = open(path, O_RDONLY);
	len = read(fd, whole, sizeof(whole));
	close(fd);
	assert_int_equal(len, 28);
	for (ssize_t cut = 0; cut < len; cut++) {
		put_file(UNIT "/record", whole, (size_t)cut);
		assert_int_equal(read_record(&e), ERR_FORMAT);
		assert_non_null(strstr(e.said, "damaged"));
	}
	for (ssize_t bit = 0; bit < len * 8; bit++) {
		whole[bit / 8] ^= (char)(1 << bit % 8);
		put_file(UNIT "/record", whole, (size_t)len);
		assert_int_equal(read_record(&e), ERR_FORMAT);
		r.version = 1;
		assert_int_equal(store_end_do(&e, e.s->ops->swap, &r),
				 ERR_FORMAT);
		whole[bit / 8] ^= (char)(1 << bit % 8);
	}
	put_file(UNIT "/record", whole, (size_t)len);
	assert_int_equal(read_record(&e), 0);
	assert_int_equal(truncate(path, 1 << 20), 0);
	assert_int_equal(read_record(&e), ERR_FORMAT);
	assert_non_null(strstr(e.said, "too long"));
	put_file(UNIT "/record", whole, (size_t)len);
	chmod(path, 0644);
	assert_int_equal(read_record(&e), ERR_FORMAT);
	remove_file(UNIT "/record");
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(read_record(&e), ERR_FORMAT);
	assert_non_null(strstr(e.said, "symbolic link"));
	remove_file(UNIT "/record");
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(read_record(&e), ERR_FORMAT);
	remove_file(UNIT "/record");
	kit.shut(e.s);
	io_loop_free(l);
}

/* A file left by a gateway that ended while it saved. */
static void test_left_over(void **state)
{
	struct io_loop *l = new_loop();
	struct cluster_request r = { .data = (const uint8_t *)"text",
				     .len = 4 };
	struct store_end e;

	(void)state;
	put_file(UNIT "/new", "half a rec", 10);
	store_end_open(&e, l, "a");
	assert_int_equal(store_end_do(&e, e.s->ops->swap, &r), 0);
	assert_int_equal(r.version, 1);
	kit.shut(e.s);
	/* the socket of a process that was killed */
	put_file(UNIT "/g.a", "", 0);
	store_end_open(&e, l, "a");
	assert_int_equal(read_record(&e), 0);
	kit.shut(e.s);
	remove_file(UNIT "/record");
	io_loop_free(l);
}

static int send_bytes(const char *to, const void *data, size_t len)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), err;
	char path[512];

	path_of(path, to);
	snprintf(a.sun_path, sizeof(a.sun_path), "%.100s", path);
	err = sendto(fd, data, len, MSG_DONTWAIT, (const void *)&a, sizeof(a)) <
			      0
		      ? errno
		      : 0;
	close(fd);
	return err;
}

static void turn(struct io_loop *l, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_true(io_loop_turn(l, XTIME_MS) >= 0);
}

/* Messages of every length, with each byte of the head changed, from senders without a
 * socket. */
static void test_hostile_messages(void **state)
{
	struct io_loop *l = new_loop();
	uint8_t message[2048] = "OISRCLN1\0\0\0\1\0\0\0\4";
	struct store_end e;

	(void)state;
	message[31] = 1; /* its number */
	memcpy(message + 32, "stranger", 8);
	memcpy(message + 96, "text", 4);
	store_end_open(&e, l, "a");
	e.acks = true; /* to a sender that does not exist */
	for (size_t len = 0; len < sizeof(message); len += len < 128 ? 1 : 61) {
		if (len == 100)
			continue;
		assert_int_equal(send_bytes(UNIT "/g.a", message, len), 0);
		turn(l, 1);
		assert_int_equal(e.noted, 0);
	}
	for (unsigned i = 0; i < 96; i++) {
		uint8_t before = message[i];
		bool counts = (i >= 16 && i < 40) || i == 40;

		message[i] = 0xff;
		assert_int_equal(send_bytes(UNIT "/g.a", message, 100), 0);
		turn(l, 1);
		if (!counts)
			assert_int_equal(e.noted, 0);
		e.noted = 0;
		message[i] = before;
	}
	message[11] = 2; /* an acknowledgement of nothing */
	assert_int_equal(send_bytes(UNIT "/g.a", message, 100), 0);
	message[11] = 1;
	memset(message + 32, 0, 64);
	memcpy(message + 32, "../data", 7);
	assert_int_equal(send_bytes(UNIT "/g.a", message, 100), 0);
	turn(l, 2);
	assert_int_equal(e.noted, 0);
	memset(message + 32, 0, 64);
	memcpy(message + 32, "peer", 4);
	assert_int_equal(send_bytes(UNIT "/g.a", message, 100), 0);
	turn(l, 2);
	assert_int_equal(e.noted, 1);
	assert_string_equal(e.text, "text");
	e.missed = 0;
	message[31] = 3; /* number 2 did not arrive */
	assert_int_equal(send_bytes(UNIT "/g.a", message, 100), 0);
	turn(l, 2);
	assert_int_equal(e.missed, 1);
	message[31] = 2; /* an old one */
	assert_int_equal(send_bytes(UNIT "/g.a", message, 100), 0);
	turn(l, 2);
	assert_int_equal(e.noted, 2);
	kit.shut(e.s);
	io_loop_free(l);
}

/* The lock names no process, another one, or one of another machine. */
static void test_hostile_lock(void **state)
{
	static const char *const texts[] = {
		"",
		"gateway b\npid 1\nstart 1\nnamespace 1\nboot 1\n",
		"gateway b\npid -5\nstart 1\nnamespace 1\nboot 1\n",
		"gateway ../b\npid 2\nstart 1\nnamespace 1\nboot 1\n",
		"gateway b\npid 99999999999999999999\nstart 1\n",
		"gateway bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
		"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
	};
	static const char far[] =
		"gateway b\npid 2\nstart 1\nnamespace 1\nboot abc\n";
	struct io_loop *l = new_loop();
	struct cluster_request r = { .whom = "b" };
	struct store_end e;
	char path[512];
	int fd;

	(void)state;
	store_end_open(&e, l, "a");
	path_of(path, UNIT "/lock");
	fd = open(path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put_file(UNIT "/lock", texts[i], strlen(texts[i]));
		assert_int_equal(store_end_do(&e, e.s->ops->fence, &r),
				 ERR_DENIED);
		assert_non_null(strstr(e.said, "does not name the process"));
	}
	put_file(UNIT "/lock", far, strlen(far));
	assert_int_equal(store_end_do(&e, e.s->ops->fence, &r), ERR_DENIED);
	assert_non_null(strstr(e.said, "another machine"));
	close(fd);
	assert_int_equal(store_end_do(&e, e.s->ops->fence, &r), ERR_NOT_FOUND);
	kit.shut(e.s);
	io_loop_free(l);
}

/* The lock's process is ended only if Linux names it as the holder, too. */
static void test_wrong_process(void **state)
{
	struct io_loop *l = new_loop();
	struct cluster_request r = { .whom = "b" };
	struct store_end a, b;

	(void)state;
	store_end_open(&a, l, "a");
	store_end_open(&b, l, "b");
	assert_int_equal(store_end_do(&b, b.s->ops->lock, &r), 0);
	assert_int_equal(store_end_do(&a, a.s->ops->fence, &r), ERR_DENIED);
	assert_non_null(strstr(a.said, "this process"));
	kit.shut(a.s);
	kit.shut(b.s);
	io_loop_free(l);
}

/* ---- I/O in progress of the previous owner ---- */

struct late_write {
	int fd;
	bool ended; /* atomic */
};

static void *end_late_write(void *arg)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	struct late_write *w = arg;

	nanosleep(&pause, NULL);
	__atomic_store_n(&w->ended, true, __ATOMIC_SEQ_CST);
	close(w->fd);
	return NULL;
}

static bool is_data_free(const char *path)
{
	int fd = open(path, O_RDWR);
	bool is_free = flock(fd, LOCK_EX | LOCK_NB) == 0;

	close(fd);
	return is_free;
}

/* A request in progress keeps the open file, also when its process has ended: so does
 * the thread here. */
static void test_late_write(void **state)
{
	struct io_loop *l = new_loop();
	struct cluster_request r = { .version = 0 };
	struct late_write w = { .fd = -1 };
	struct store_end e;
	pthread_t thread;
	char path[512];

	(void)state;
	put_file("image", "data", 4);
	path_of(path, "image");
	w.fd = open(path, O_RDWR);
	data_fd = open(path, O_RDWR);
	store_end_open(&e, l, "a");
	assert_int_equal(flock(w.fd, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(pthread_create(&thread, NULL, end_late_write, &w), 0);
	assert_int_equal(store_end_do(&e, e.s->ops->lock, &r), 0);
	assert_true(__atomic_load_n(&w.ended, __ATOMIC_SEQ_CST));
	pthread_join(thread, NULL);
	assert_false(is_data_free(path));
	assert_int_equal(store_end_do(&e, e.s->ops->unlock, &r), 0);
	assert_true(is_data_free(path));
	assert_int_equal(store_end_do(&e, e.s->ops->lock, &r), 0);
	kit.shut(e.s);
	assert_false(is_data_free(path));
	close(data_fd);
	data_fd = -1;
	assert_true(is_data_free(path));
	io_loop_free(l);
}

static void expect_refusal(const char *id, const char *text)
{
	struct io_loop *l = new_loop();
	char why[512] = "";

	assert_null(dir_store_open(l, folder, uuid, -1, id, NULL, geteuid(),
				   getegid(), why, sizeof(why)));
	if (!strstr(why, text))
		fail_msg("%s", why);
	io_loop_free(l);
}

static int make_data(const char *name)
{
	char path[512];

	path_of(path, name);
	return open(path, O_RDWR | O_CREAT, 0600);
}

/* Two gateways with different data of one identity, a disk and its copy, would overwrite
 * each other's record. */
static void test_other_data(void **state)
{
	struct io_loop *l = new_loop();
	struct store_end a, b;
	char path[512], link_path[512], why[512] = "";
	int fd[2] = { make_data("disk"), make_data("copy") };

	(void)state;
	data_fd = fd[0];
	store_end_open(&a, l, "a");
	assert_null(dir_store_open(l, folder, uuid, fd[1], "b", NULL, geteuid(),
				   getegid(), why, sizeof(why)));
	assert_non_null(strstr(why, "another gateway serves other data"));
	why[0] = '\0';
	assert_null(dir_store_open(l, folder, uuid, -1, "b", NULL, geteuid(),
				   getegid(), why, sizeof(why)));
	assert_non_null(strstr(why, "another gateway serves other data"));
	/* another path to the same file */
	path_of(path, "disk");
	path_of(link_path, "link");
	assert_int_equal(link(path, link_path), 0);
	data_fd = make_data("link");
	store_end_open(&b, l, "b");
	kit.shut(a.s);
	close(data_fd);
	data_fd = fd[1]; /* b still serves the disk */
	assert_null(dir_store_open(l, folder, uuid, fd[1], "a", NULL, geteuid(),
				   getegid(), why, sizeof(why)));
	kit.shut(b.s);
	store_end_open(&a, l, "a"); /* moved to the copy */
	kit.shut(a.s);
	close(fd[0]);
	close(fd[1]);
	data_fd = -1;
	io_loop_free(l);
}

static void test_refusals(void **state)
{
	struct io_loop *l = new_loop();
	struct cluster_request r = { .version = 0 };
	char path[512], moved[512];
	struct store_end e;

	(void)state;
	expect_refusal("", "not a name of a gateway");
	expect_refusal("a/b", "not a name of a gateway");
	expect_refusal("0123456789012345678901234567890123456789012345678901234"
		       "567890123",
		       "not a name of a gateway");
	store_end_open(&e, l, "a");
	expect_refusal("a", "another iserd is gateway a");
	/* an administrator removes the files of a gateway that runs */
	path_of(path, UNIT);
	path_of(moved, "moved");
	remove_file(UNIT "/lock");
	remove_file(UNIT "/change");
	assert_int_equal(store_end_do(&e, e.s->ops->lock, &r), ERR_DENIED);
	assert_non_null(strstr(e.said, "removed or replaced"));
	assert_int_equal(store_end_do(&e, e.s->ops->swap, &r), ERR_DENIED);
	kit.shut(e.s);
	chmod(path, 0770);
	expect_refusal("a", "others may write there");
	chmod(path, 0700);
	chmod(folder, 0777);
	expect_refusal("a", "others may write there");
	chmod(folder, 0700);
	assert_int_equal(rename(path, moved), 0);
	put_file(UNIT, "", 0);
	expect_refusal("a", "Not a directory");
	remove_file(UNIT);
	assert_int_equal(rename(moved, path), 0);
	io_loop_free(l);
}

static int remove_folder(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damaged_record),
		cmocka_unit_test(test_left_over),
		cmocka_unit_test(test_hostile_messages),
		cmocka_unit_test(test_hostile_lock),
		cmocka_unit_test(test_wrong_process),
		cmocka_unit_test(test_late_write),
		cmocka_unit_test(test_other_data),
		cmocka_unit_test(test_refusals),
	};
	char *args[] = { argv[0], folder, NULL };
	int failed;

	if (argc == 3) {
		snprintf(folder, sizeof(folder), "%s", argv[1]);
		return store_cases_fenced(&kit);
	}
	snprintf(folder, sizeof(folder), "/tmp/openiser-dir-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	failed = store_cases_run(&kit, args);
	failed += cmocka_run_group_tests(tests, NULL, NULL);
	return remove_folder() || failed;
}
