/* SPDX-License-Identifier: BSD-2-Clause */
/* options.c: the command line of iserd. */
#include "daemon/options.h"

#include <ctype.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "datamover/iser/dmiser.h"

static const char usage_text[] =
	"usage: iserd serve [OPTION]... LUN...\n"
	"\n"
	"Serves each LUN (numbered from 0) as a disk (or a CD/DVD drive, or what\n"
	"it is) over iSCSI, in the foreground, until SIGTERM or SIGINT. Once ready\n"
	"it prints one URL for each LUN on standard output; messages go to\n"
	"standard error.\n"
	"\n"
	"LUN is one of\n"
	"  PATH              a file or a block device\n"
	"  cd:PATH           an ISO image, as a CD/DVD drive with it inside;\n"
	"                    without PATH the drive is empty (iserctl insert)\n"
	"  scsi:DEVICE       a SCSI device of this machine, as it is: /dev/sgN,\n"
	"                    /dev/bsg/H:C:T:L, /dev/sdX, /dev/srN\n"
	"  ram:SIZE          memory, lost at the end\n"
	"  null:SIZE         reads give zeros, writes are dropped\n"
	"  LUN,key=FILE      the same, encrypted (AES-256-XTS) with the key in FILE,\n"
	"                    which is made if the medium is new\n"
	"  LUN,new-key=FILE  with a new key, whatever the medium holds\n"
	"  LUN,pi=FILE       with the protection information of a file or block\n"
	"                    device in FILE (before ,key=)\n"
	"SIZE is in bytes or has a suffix K, M, G, T (powers of 1024).\n"
	"\n"
	"  -l, --listen ADDR[:PORT]  where to listen, may be given again\n"
	"                            (127.0.0.1:3260; port 0: any free one;\n"
	"                            IPv6 as [::1]:3260)\n"
	"  -n, --name IQN            the target's name\n"
	"  -r, --read-only           refuse writes\n"
	"      --removable           the medium can be ejected\n"
	"      --sanitize-rate SIZE  bytes per second that SANITIZE OVERWRITE\n"
	"                            write at most (no limit)\n"
	"      --scsi-timeout SECONDS  until a command of a scsi: LUN is given up\n"
	"                            (60; two hours for what may last long)\n"
	"  -b, --block-size 512|4096 logical block size (512, or the device's)\n"
	"      --protection 1|2|3    protection information of that type; of a file\n"
	"                            it is kept in PATH.pi, or by ,pi=FILE\n"
	"      --buffered            files through the page cache (no O_DIRECT)\n"
	"      --sendfile            ram: reads by sendfile (slower on loopback)\n"
	"      --io auto|uring|epoll how to wait for work (auto)\n"
	"  -w, --workers N           threads (1)\n"
	"      --pin                 bind each thread to a CPU\n"
	"      --spin US             poll this long before sleeping (0)\n"
	"      --digests none|prefer pick CRC32C where the initiator offers\n"
	"                            both (none)\n"
	"      --chap-user NAME      initiators must log in with this name and\n"
	"      --chap-secret-file F  the secret in F (12 to 128 bytes)\n"
	"      --chap-mutual-user N  the target proves itself with this name\n"
	"      --chap-mutual-secret-file F  and the secret in F to initiators\n"
	"                            that ask for it\n"
	"      --discovery-auth      CHAP for discovery sessions, too\n"
	"      --transport LIST      what may come in, of tcp (iSCSI), iser (RDMA\n"
	"                            from the start) and switch (iSER after a\n"
	"                            login over TCP) (tcp,iser,switch)\n"
	"      --verbs auto|off|on   RDMA devices, too: if there are any, never, or\n"
	"                            refuse to start without (auto)\n"
	"      --verbs-listen ADDR[:PORT]  an address for RDMA devices alone, may\n"
	"                            be given again\n"
	"      --compat linux|strict iSER from the start, and WRITE SAME with UNMAP,\n"
	"                            as the world has it, or by the letter (linux);\n"
	"                            help lists what differs over iSER\n"
	"      --control PATH        Unix socket for iserctl\n"
	"      --state DIR           where persistent reservations and saved mode\n"
	"                            pages are kept\n"
	"      --allow-lost-reservations  start where they can't be read, too: the\n"
	"                            LUN waits for REPLACE LOST RESERVATION\n"
	"      --alua ID:STATE:PORT[,PORT][:preferred]  a target port group, ours\n"
	"                            or of another iserd on the same LUNs; STATE is\n"
	"                            optimized, non-optimized, standby, unavailable\n"
	"                            or transitioning\n"
	"      --shared              another iserd with --shared may serve the same\n"
	"                            files; one at a time, by --alua\n"
	"      --port-id N           the relative target port identifier (1)\n"
	"      --user NAME           become this user once all is open\n"
	"      --log LEVEL           error, warning, notice, info or debug\n"
	"                            (notice)\n"
	"  -h, --help                this text\n"
	"  -V, --version             version\n"
	"\n"
	"exit status: 0 ended in order, 1 failure, 2 bad command line,\n"
	"3 a LUN can't be opened, 4 an address can't be used\n"
	"\n"
	"example: iserd serve --listen 0.0.0.0 disk.img ram:1G\n";

void say(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "iserd: %s\n", text);
}

bool size_parse(const char *text, uint64_t *size)
{
	static const char suffixes[] = "KMGTP";
	uint64_t n = 0, factor = 1;
	const char *p = text, *found;

	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(n, 10u, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return false;
	if (*p) {
		found = strchr(suffixes, toupper((unsigned char)*p));
		if (!found)
			return false;
		factor <<= 10 * (found - suffixes + 1);
		p++;
		if (*p == 'i') /* 64MiB */
			p++;
		if (*p == 'B' || *p == 'b')
			p++;
		if (*p)
			return false;
	}
	return !__builtin_mul_overflow(n, factor, size) && *size <= INT64_MAX;
}

static bool number(const char *option, const char *text, unsigned min,
		   unsigned max, unsigned *n)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || v < min || v > max) {
		say("--%s %s: must be a number from %u to %u", option, text,
		    min, max);
		return false;
	}
	*n = (unsigned)v;
	return true;
}

/* One of a list of words; its index, or -1 after a message. */
static int word(const char *option, const char *text, const char *const *words,
		unsigned n)
{
	char all[128] = "";

	for (unsigned i = 0; i < n; i++) {
		if (!strcmp(text, words[i]))
			return (int)i;
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 i ? ", " : "", words[i]);
	}
	say("--%s %s: must be one of %s", option, text, all);
	return -1;
}

enum {
	OPT_BUFFERED = 256,
	OPT_SENDFILE,
	OPT_PROTECTION,
	OPT_REMOVABLE,
	OPT_SANITIZE_RATE,
	OPT_SCSI_TIMEOUT,
	OPT_IO,
	OPT_PIN,
	OPT_SPIN,
	OPT_DIGESTS,
	OPT_TRANSPORT,
	OPT_COMPAT,
	OPT_VERBS,
	OPT_VERBS_LISTEN,
	OPT_CHAP_USER,
	OPT_CHAP_SECRET,
	OPT_MUTUAL_USER,
	OPT_MUTUAL_SECRET,
	OPT_DISCOVERY_AUTH,
	OPT_CONTROL,
	OPT_STATE,
	OPT_ALLOW_LOST,
	OPT_ALUA,
	OPT_PORT_ID,
	OPT_SHARED,
	OPT_USER,
	OPT_LOG,
};

static const struct option long_options[] = {
	{ "listen", required_argument, NULL, 'l' },
	{ "name", required_argument, NULL, 'n' },
	{ "read-only", no_argument, NULL, 'r' },
	{ "removable", no_argument, NULL, OPT_REMOVABLE },
	{ "sanitize-rate", required_argument, NULL, OPT_SANITIZE_RATE },
	{ "scsi-timeout", required_argument, NULL, OPT_SCSI_TIMEOUT },
	{ "block-size", required_argument, NULL, 'b' },
	{ "protection", required_argument, NULL, OPT_PROTECTION },
	{ "buffered", no_argument, NULL, OPT_BUFFERED },
	{ "sendfile", no_argument, NULL, OPT_SENDFILE },
	{ "io", required_argument, NULL, OPT_IO },
	{ "workers", required_argument, NULL, 'w' },
	{ "pin", no_argument, NULL, OPT_PIN },
	{ "spin", required_argument, NULL, OPT_SPIN },
	{ "transport", required_argument, NULL, OPT_TRANSPORT },
	{ "verbs", required_argument, NULL, OPT_VERBS },
	{ "verbs-listen", required_argument, NULL, OPT_VERBS_LISTEN },
	{ "compat", required_argument, NULL, OPT_COMPAT },
	{ "digests", required_argument, NULL, OPT_DIGESTS },
	{ "chap-user", required_argument, NULL, OPT_CHAP_USER },
	{ "chap-secret-file", required_argument, NULL, OPT_CHAP_SECRET },
	{ "chap-mutual-user", required_argument, NULL, OPT_MUTUAL_USER },
	{ "chap-mutual-secret-file", required_argument, NULL,
	  OPT_MUTUAL_SECRET },
	{ "discovery-auth", no_argument, NULL, OPT_DISCOVERY_AUTH },
	{ "control", required_argument, NULL, OPT_CONTROL },
	{ "state", required_argument, NULL, OPT_STATE },
	{ "allow-lost-reservations", no_argument, NULL, OPT_ALLOW_LOST },
	{ "alua", required_argument, NULL, OPT_ALUA },
	{ "port-id", required_argument, NULL, OPT_PORT_ID },
	{ "shared", no_argument, NULL, OPT_SHARED },
	{ "user", required_argument, NULL, OPT_USER },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static bool set_listen(struct options *o, const char *arg)
{
	if (o->nlisten == LISTEN_MAX) {
		say("--listen: at most %d addresses", LISTEN_MAX);
		return false;
	}
	o->listen[o->nlisten++] = arg;
	return true;
}

static bool set_group(struct options *o, const char *arg)
{
	if (o->ngroups == GROUPS_MAX) {
		say("--alua: at most %d groups", GROUPS_MAX);
		return false;
	}
	o->groups[o->ngroups++] = arg;
	return true;
}

static bool set_name(struct options *o, const char *arg)
{
	if (strlen(arg) >= sizeof(o->name)) {
		say("--name: an iSCSI name has at most %zu bytes (RFC 7143 "
		    "§4.2.7.2)",
		    sizeof(o->name) - 1);
		return false;
	}
	memcpy(o->name, arg, strlen(arg) + 1);
	return true;
}

static bool set_word(struct options *o, int opt, const char *arg)
{
	static const char *const ios[] = { "auto", "uring", "epoll" };
	static const char *const verbs[] = { "auto", "off", "on" };
	static const char *const compats[] = { "linux", "strict" };
	static const char *const digests[] = { "none", "prefer" };
	static const char *const levels[] = { "error", "warning", "notice",
					      "info", "debug" };
	int i;

	switch (opt) {
	case OPT_IO:
		i = word("io", arg, ios, ARRAY_LEN(ios));
		o->io = i > 0 ? (enum io_backend)i : IO_AUTO;
		break;
	case OPT_DIGESTS:
		i = word("digests", arg, digests, ARRAY_LEN(digests));
		o->prefer_digests = i == 1;
		break;
	case OPT_VERBS:
		i = word("verbs", arg, verbs, ARRAY_LEN(verbs));
		o->verbs = i > 0 ? (enum verbs_wish)i : VERBS_AUTO;
		break;
	case OPT_COMPAT:
		i = word("compat", arg, compats, ARRAY_LEN(compats));
		o->strict = i == 1;
		break;
	default:
		i = word("log", arg, levels, ARRAY_LEN(levels));
		o->log = i > 0 ? (enum trace_level)i : TRACE_LEVEL_ERROR;
		break;
	}
	return i >= 0;
}

static bool set_block_size(struct options *o, const char *arg)
{
	o->block_size = !strcmp(arg, "512")    ? 512
			: !strcmp(arg, "4096") ? 4096
					       : 0;
	if (!o->block_size)
		say("--block-size %s: must be 512 or 4096", arg);
	return o->block_size != 0;
}

static bool set_protection(struct options *o, const char *arg)
{
	unsigned type;

	if (!number("protection", arg, 1, 3, &type))
		return false;
	o->protection = (uint8_t)type;
	return true;
}

static bool set_rate(struct options *o, const char *arg)
{
	if (size_parse(arg, &o->sanitize_rate))
		return true;
	say("--sanitize-rate %s: no size; write bytes per second, or a number "
	    "with K, M or G, as in 100M",
	    arg);
	return false;
}

static bool set_verbs_listen(struct options *o, const char *arg)
{
	if (o->nverbs_listen == LISTEN_MAX) {
		say("--verbs-listen: at most %d times", LISTEN_MAX);
		return false;
	}
	o->verbs_listen[o->nverbs_listen++] = arg;
	return true;
}

static bool set_transports(struct options *o, const char *arg)
{
	static const char *const words[] = { "tcp", "iser", "switch" };
	static const unsigned bits[] = { NET_ALLOW_TCP, NET_ALLOW_RDMA,
					 NET_ALLOW_SWITCH };
	char one[16];

	o->transports = 0;
	for (const char *p = arg, *end; *p; p = *end ? end + 1 : end) {
		int i;

		end = strchrnul(p, ',');
		snprintf(one, sizeof(one), "%.*s", (int)MIN(end - p, 15), p);
		i = word("transport", one, words, ARRAY_LEN(words));
		if (i < 0)
			return false;
		o->transports |= bits[i];
	}
	if (!o->transports)
		say("--transport: names none");
	return o->transports != 0;
}

static void set_chap(struct options *o, int opt, const char *arg)
{
	if (opt == OPT_CHAP_USER)
		o->chap_user = arg;
	else if (opt == OPT_CHAP_SECRET)
		o->chap_secret_file = arg;
	else if (opt == OPT_MUTUAL_USER)
		o->chap_mutual_user = arg;
	else
		o->chap_mutual_secret_file = arg;
}

/* Options without an argument; NULL: it is none of them. */
static bool *flag_of(struct options *o, int opt)
{
	switch (opt) {
	case 'r':
		return &o->read_only;
	case OPT_REMOVABLE:
		return &o->removable;
	case OPT_SENDFILE:
		return &o->sendfile;
	case OPT_BUFFERED:
		return &o->buffered;
	case OPT_PIN:
		return &o->pin;
	case OPT_DISCOVERY_AUTH:
		return &o->discovery_auth;
	case OPT_SHARED:
		return &o->shared;
	case OPT_ALLOW_LOST:
		return &o->allow_lost;
	default:
		return NULL;
	}
}

/* Options whose argument is taken as it is; NULL: it is none of them. */
static const char **text_of(struct options *o, int opt)
{
	switch (opt) {
	case OPT_CONTROL:
		return &o->control;
	case OPT_STATE:
		return &o->state;
	case OPT_USER:
		return &o->user;
	default:
		return NULL;
	}
}

static bool set_checked(struct options *o, int opt, const char *arg)
{
	switch (opt) {
	case 'l':
		return set_listen(o, arg);
	case 'n':
		return set_name(o, arg);
	case 'b':
		return set_block_size(o, arg);
	case 'w':
		return number("workers", arg, 1, 64, &o->workers);
	case OPT_SPIN:
		return number("spin", arg, 0, 10000, &o->spin_us);
	case OPT_PROTECTION:
		return set_protection(o, arg);
	case OPT_SANITIZE_RATE:
		return set_rate(o, arg);
	case OPT_TRANSPORT:
		return set_transports(o, arg);
	case OPT_VERBS_LISTEN:
		return set_verbs_listen(o, arg);
	case OPT_CHAP_USER:
	case OPT_CHAP_SECRET:
	case OPT_MUTUAL_USER:
	case OPT_MUTUAL_SECRET:
		set_chap(o, opt, arg);
		return true;
	case OPT_ALUA:
		return set_group(o, arg);
	case OPT_SCSI_TIMEOUT:
		return number("scsi-timeout", arg, 1, 86400, &o->scsi_timeout);
	case OPT_PORT_ID:
		return number("port-id", arg, 1, 65535, &o->port_id);
	case OPT_IO:
	case OPT_DIGESTS:
	case OPT_COMPAT:
	case OPT_VERBS:
	case OPT_LOG:
		return set_word(o, opt, arg);
	default:
		return false;
	}
}

/* Returns whether the option was good. */
static bool set_option(struct options *o, int opt, const char *arg)
{
	bool *flag = flag_of(o, opt);
	const char **text = text_of(o, opt);

	if (flag)
		*flag = true;
	else if (text)
		*text = arg;
	else
		return set_checked(o, opt, arg);
	return true;
}

/* A name of this machine's own, unless --name gives one. */
static void default_name(struct options *o)
{
	char host[64] = "";

	gethostname(host, sizeof(host) - 1);
	for (char *p = host; *p; p++) {
		*p = (char)tolower((unsigned char)*p);
		if (!isalnum((unsigned char)*p) && *p != '-' && *p != '.')
			*p = '-';
	}
	snprintf(o->name, sizeof(o->name), "iqn.2026-01.org.openiser:%s",
		 host[0] ? host : "disk");
}

static bool check_chap(const struct options *o)
{
	if (!o->chap_user != !o->chap_secret_file) {
		say("--chap-user and --chap-secret-file go together");
		return false;
	}
	if (!o->chap_mutual_user != !o->chap_mutual_secret_file) {
		say("--chap-mutual-user and --chap-mutual-secret-file go "
		    "together");
		return false;
	}
	if (!o->chap_user && (o->chap_mutual_user || o->discovery_auth)) {
		say("%s needs --chap-user: the initiator proves itself first",
		    o->chap_mutual_user ? "--chap-mutual-user"
					: "--discovery-auth");
		return false;
	}
	return true;
}

static bool check(const struct options *o)
{
	if (o->nluns == 0) {
		say("serve: no LUN given; try \"iserd serve disk.img\" or "
		    "\"iserd serve ram:1G\"");
		return false;
	}
	return check_chap(o);
}

static bool take_luns(struct options *o, int argc, char **argv)
{
	if (argc - optind > LUNS_MAX) {
		say("serve: at most %d LUNs", LUNS_MAX);
		return false;
	}
	for (int i = optind; i < argc; i++)
		o->luns[o->nluns++] = argv[i];
	if (!o->nlisten)
		o->listen[o->nlisten++] = "127.0.0.1:3260";
	if (!o->name[0])
		default_name(o);
	return check(o);
}

/* Where --compat linux is not what RFC 7145 says over iSER. */
static void print_rules(void)
{
	for (unsigned i = 0; dmiser_rule_name(i); i++)
		printf("%-15s %s\n", dmiser_rule_name(i), dmiser_rule_text(i));
}

/* What is answered, in place of serving. */
static bool is_question(int opt, const char *arg)
{
	if (opt == 'h')
		fputs(usage_text, stdout);
	else if (opt == 'V')
		fputs("iserd " OPENISER_VERSION "\n", stdout);
	else if (opt == OPT_COMPAT && !strcmp(arg, "help"))
		print_rules();
	else
		return false;
	return true;
}

static bool parse_serve(struct options *o, int argc, char **argv, int *code)
{
	int opt;

	*code = EXIT_USAGE;
	optind = 1;
	while ((opt = getopt_long(argc, argv, "l:n:rb:w:hV", long_options,
				  NULL)) != -1) {
		if (is_question(opt, optarg)) {
			*code = EXIT_OK;
			return false;
		}
		if (opt == '?') { /* getopt said what */
			fputs("iserd: try \"iserd --help\"\n", stderr);
			return false;
		}
		if (!set_option(o, opt, optarg))
			return false;
	}
	return take_luns(o, argc, argv);
}

bool options_parse(struct options *o, int argc, char **argv, int *code)
{
	const char *command = argc > 1 ? argv[1] : "";

	*o = (struct options){
		.io = IO_AUTO,
		.workers = 1,
		.scsi_timeout = 60,
		.transports = NET_ALLOW_ALL,
		.log = TRACE_LEVEL_NOTICE,
	};
	*code = EXIT_OK;
	if (!strcmp(command, "--help") || !strcmp(command, "-h")) {
		fputs(usage_text, stdout);
		return false;
	}
	if (!strcmp(command, "--version") || !strcmp(command, "-V")) {
		fputs("iserd " OPENISER_VERSION "\n", stdout);
		return false;
	}
	if (strcmp(command, "serve") != 0) {
		*code = EXIT_USAGE;
		if (!*command)
			fputs(usage_text, stderr);
		else
			say("%s: unknown command; try \"iserd --help\"",
			    command);
		return false;
	}
	argv[1] = argv[0]; /* so that getopt names the program */
	return parse_serve(o, argc - 1, argv + 1, code);
}
