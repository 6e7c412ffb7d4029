/* SPDX-License-Identifier: BSD-2-Clause */
/* send.c: sends pieces of memory: small ones gathered in one sendmsg, large
 * ones that are in a mapped file with sendfile. */
#include <errno.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include "net/backed.h"

/* MSG_NOSIGNAL: see ignore_sigpipe in backed.c for sendfile. */
static int64_t send_gathered(struct net_send *s, struct iovec *iov, unsigned n,
			     int more)
{
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t sent;

	s->calls++;
	do
		sent = sendmsg(s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT | more);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

/* send_by_file sends one piece from its file. -EOPNOTSUPP: sendfile is not
 * possible here. */
static int64_t send_by_file(struct net_send *s, const struct iovec *piece)
{
	int64_t off, sent;
	off_t at;
	int fd;

	if (!net_backed_find(piece, &fd, &off))
		return -EOPNOTSUPP;
	at = off;
	s->calls++;
	do
		sent = sendfile(s->fd, fd, &at, piece->iov_len);
	while (sent < 0 && errno == EINTR);
	if (sent > 0)
		return sent;
	if (sent == 0 || errno == EINVAL || errno == ENOSYS)
		return -EOPNOTSUPP;
	return -errno;
}

static bool is_large_and_backed(const struct net_send *s,
				const struct iovec *piece)
{
	int64_t off;
	int fd;

	return piece->iov_len >= NET_SENDFILE_MIN && !s->no_sendfile &&
	       net_backed_find(piece, &fd, &off);
}

/* run_of returns how many pieces of iov go in one call: a run of small ones, or
 * one large one. */
static unsigned run_of(const struct net_send *s, const struct iovec *iov,
		       unsigned n, bool *by_file, size_t *len)
{
	unsigned k = 0;

	*len = 0;
	*by_file = is_large_and_backed(s, &iov[0]);
	do
		*len += iov[k++].iov_len;
	while (!*by_file && k < n && !is_large_and_backed(s, &iov[k]));
	return k;
}

int64_t net_send_pieces(struct net_send *s, struct iovec *iov, unsigned n)
{
	int64_t total = 0;

	for (unsigned i = 0, k; i < n; i += k) {
		bool by_file;
		size_t len;
		int64_t sent;

		k = run_of(s, iov + i, n - i, &by_file, &len);
		sent = by_file ? send_by_file(s, &iov[i])
			       : send_gathered(s, iov + i, k,
					       i + k < n ? MSG_MORE : 0);
		if (sent == -EOPNOTSUPP && by_file) {
			s->no_sendfile = true; /* send the rest with sendmsg */
			k = 0;
			continue;
		}
		if (sent < 0)
			return total || sent == -EAGAIN ? total : sent;
		total += sent;
		if ((size_t)sent < len)
			break;
	}
	return total;
}
