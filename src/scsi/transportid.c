/* SPDX-License-Identifier: BSD-2-Clause */
/* transportid.c: iSCSI TransportIDs, SPC-4 §7.6.4.6. */
#include "scsi/transportid.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"

#define PROTOCOL_ISCSI 0x5
#define FORMAT_DEVICE  0x00 /* TPID FORMAT 00b: name */
#define FORMAT_PORT    0x40 /* TPID FORMAT 01b: name, separator, ISID */
#define ADDITIONAL_MIN 20
#define ISID_DIGITS    12
#define NAME_MAX_BYTES 223 /* RFC 7143 §4.2.7.2 */

static const char separator[] = ",i,0x";

static char lower_hex(char c)
{
	if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))
		return c;
	if (c >= 'A' && c <= 'F')
		return (char)(c - 'A' + 'a');
	return 0;
}

/* iSCSI names are compared after folding to lower case (RFC 3722 §4). */
static void fold_name(char *name)
{
	for (; *name; name++)
		if (*name >= 'A' && *name <= 'Z')
			*name = (char)(*name - 'A' + 'a');
}

/* put_isid writes digits to out as 12 lower-case hexadecimal digits and adds
 * the leading zeros that are missing. */
static int put_isid(char *out, const char *digits)
{
	size_t n = strlen(digits);

	if (n == 0 || n > ISID_DIGITS)
		return ERR_FORMAT;
	memset(out, '0', ISID_DIGITS - n);
	for (size_t i = 0; i < n; i++) {
		char c = lower_hex(digits[i]);

		if (!c)
			return ERR_FORMAT;
		out[ISID_DIGITS - n + i] = c;
	}
	out[ISID_DIGITS] = '\0';
	return 0;
}

#define TEXT_MAX (SCSI_PORT_NAME_MAX + 8)

/* get_text checks the header of a TransportID of this format, copies its
 * string to text and stores the length of the TransportID in *used. */
static int get_text(const uint8_t *p, size_t len, uint8_t format,
		    char text[TEXT_MAX], size_t *used)
{
	size_t n, at;

	if (len < 4)
		return ERR_TRUNCATED;
	if ((p[0] & 0x0f) != PROTOCOL_ISCSI || (p[0] & 0xc0) != format)
		return ERR_UNSUPPORTED;
	n = get_be16(p + 2);
	if (n > len - 4)
		return ERR_TRUNCATED;
	if (n < ADDITIONAL_MIN || n % 4 || (p[0] & 0x30) || p[1] ||
	    !memchr(p + 4, 0, n))
		return ERR_FORMAT;
	at = strlen((const char *)p + 4);
	if (at >= TEXT_MAX)
		return ERR_FORMAT;
	memcpy(text, p + 4, at + 1);
	*used = 4 + n;
	return 0;
}

bool scsi_name_is_device(const char *name)
{
	return !strstr(name, separator);
}

bool scsi_port_is_of(const char *port, const char *device)
{
	size_t n = strlen(device);

	return !strncmp(port, device, n) &&
	       !strncmp(port + n, separator, strlen(separator));
}

void scsi_port_device(const char *port, char device[SCSI_DEVICE_NAME_MAX + 1])
{
	const char *end = strstr(port, separator);
	size_t n = end ? (size_t)(end - port) : strlen(port);

	n = n < SCSI_DEVICE_NAME_MAX ? n : SCSI_DEVICE_NAME_MAX;
	memcpy(device, port, n);
	device[n] = '\0';
}

int scsi_transportid_get_device(const uint8_t *p, size_t len,
				char name[SCSI_PORT_NAME_MAX + 1], size_t *used)
{
	char text[TEXT_MAX];
	int err = get_text(p, len, FORMAT_DEVICE, text, used);

	if (err)
		return err;
	if (!text[0] || strlen(text) > NAME_MAX_BYTES || strchr(text, ','))
		return ERR_FORMAT;
	fold_name(text);
	memcpy(name, text, strlen(text) + 1);
	return 0;
}

int scsi_transportid_get(const uint8_t *p, size_t len,
			 char name[SCSI_PORT_NAME_MAX + 1], size_t *used)
{
	char text[TEXT_MAX];
	int err = get_text(p, len, FORMAT_PORT, text, used);
	size_t at;
	char *end;

	if (err)
		return err;
	end = strstr(text, separator);
	/* RFC 3722 allows no comma in a name: after folding to lower case a
	 * second one could form another separator */
	if (!end || end == text || end - text > NAME_MAX_BYTES ||
	    strchr(text, ',') != end)
		return ERR_FORMAT;
	at = (size_t)(end - text) + strlen(separator);
	memcpy(name, text, at);
	name[at] = '\0';
	fold_name(name);
	return put_isid(name + at, text + at);
}

size_t scsi_transportid_put(const char *name, uint8_t *p)
{
	size_t n = strlen(name) + 1;
	size_t padded = MAX(round_up4(n), (size_t)ADDITIONAL_MIN);

	memset(p, 0, 4 + padded);
	p[0] = FORMAT_PORT | PROTOCOL_ISCSI;
	put_be16(p + 2, (uint16_t)padded);
	memcpy(p + 4, name, n);
	return 4 + padded;
}
