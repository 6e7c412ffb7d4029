/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.c: the command line of tgtadm(8): its letters, long names, words, what
 * goes with which mode and operation, and its errors with their exit statuses.
 * getopt_long reads it, as in tgtadm, so that abbreviations and errors are the
 * same.
 */
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tools/tgtadm/tgtadm.h"

#ifndef OPENISER_VERSION
# define OPENISER_VERSION "unknown"
#endif

static const char letters[] =
	"dhVFOL:o:m:t:s:c:l:n:v:b:E:f:S:y:T:I:Q:u:p:H:P:B:Y:C:";

static const struct option long_options[] = {
	{ "debug", no_argument, NULL, 'd' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ "force", no_argument, NULL, 'F' },
	{ "outgoing", no_argument, NULL, 'O' },
	{ "control-port", required_argument, NULL, 'C' },
	{ "lld", required_argument, NULL, 'L' },
	{ "op", required_argument, NULL, 'o' },
	{ "mode", required_argument, NULL, 'm' },
	{ "tid", required_argument, NULL, 't' },
	{ "sid", required_argument, NULL, 's' },
	{ "cid", required_argument, NULL, 'c' },
	{ "lun", required_argument, NULL, 'l' },
	{ "targetname", required_argument, NULL, 'T' },
	{ "name", required_argument, NULL, 'n' },
	{ "value", required_argument, NULL, 'v' },
	{ "params", required_argument, NULL, 'P' },
	{ "backing-store", required_argument, NULL, 'b' },
	{ "bstype", required_argument, NULL, 'E' },
	{ "bsoflags", required_argument, NULL, 'f' },
	{ "bsopts", required_argument, NULL, 'S' },
	{ "blocksize", required_argument, NULL, 'y' },
	{ "device-type", required_argument, NULL, 'Y' },
	{ "initiator-address", required_argument, NULL, 'I' },
	{ "initiator-name", required_argument, NULL, 'Q' },
	{ "user", required_argument, NULL, 'u' },
	{ "password", required_argument, NULL, 'p' },
	{ "host", required_argument, NULL, 'H' },
	{ "bus", required_argument, NULL, 'B' },
	{ NULL, 0, NULL, 0 },
};

struct word {
	const char *text;
	int value;
};

static const struct word ops[] = {
	{ "new", TGTADM_NEW },
	{ "delete", TGTADM_DELETE },
	{ "show", TGTADM_SHOW },
	{ "bind", TGTADM_BIND },
	{ "unbind", TGTADM_UNBIND },
	{ "update", TGTADM_UPDATE },
	{ "start", TGTADM_START },
	{ "stat", TGTADM_STAT },
	{ NULL, 0 },
};

/* The first text of a value is its name in messages. */
static const struct word modes[] = {
	{ "system", TGTADM_SYS },
	{ "sys", TGTADM_SYS },
	{ "target", TGTADM_TARGET },
	{ "tgt", TGTADM_TARGET },
	{ "logicalunit", TGTADM_LUN },
	{ "lu", TGTADM_LUN },
	{ "portal", TGTADM_PORTAL },
	{ "pt", TGTADM_PORTAL },
	{ "session", TGTADM_SESSION },
	{ "sess", TGTADM_SESSION },
	{ "connection", TGTADM_CONN },
	{ "conn", TGTADM_CONN },
	{ "account", TGTADM_ACCOUNT },
	{ "lld", TGTADM_LLD },
	{ NULL, 0 },
};

/* The letters that go with a mode and an operation; NULL: not an operation of the
 * mode. Of the modes without a row, any letter is accepted. */
static const char *const allowed[TGTADM_MODES][TGTADM_OPS] = {
	[TGTADM_SYS] = { [TGTADM_UPDATE] = "LmonvC",
			 [TGTADM_SHOW] = "",
			 [TGTADM_STAT] = "",
			 [TGTADM_DELETE] = "" },
	[TGTADM_TARGET] = { [TGTADM_NEW] = "LmotTC",
			    [TGTADM_DELETE] = "LmotCF",
			    [TGTADM_SHOW] = "LmotC",
			    [TGTADM_STAT] = "LmotC",
			    [TGTADM_BIND] = "LmotIQBHC",
			    [TGTADM_UNBIND] = "LmotIQBHC",
			    [TGTADM_UPDATE] = "LmotnvC" },
	[TGTADM_LUN] = { [TGTADM_NEW] = "LmofytlbEYCS",
			 [TGTADM_DELETE] = "LmotlC",
			 [TGTADM_STAT] = "LmotlC",
			 [TGTADM_UPDATE] = "LmofytlPC" },
	[TGTADM_PORTAL] = { [TGTADM_NEW] = "LmoCP",
			    [TGTADM_DELETE] = "LmoCP",
			    [TGTADM_SHOW] = "LmoC" },
	[TGTADM_ACCOUNT] = { [TGTADM_NEW] = "LmoupfC",
			     [TGTADM_SHOW] = "LmoC",
			     [TGTADM_DELETE] = "LmouC",
			     [TGTADM_BIND] = "LmotuOC",
			     [TGTADM_UNBIND] = "LmotuOC" },
};

/* ---- words and numbers ---- */

static int find_word(const struct word *all, const char *text)
{
	for (; all->text; all++)
		if (!strcmp(all->text, text))
			return all->value;
	return -1;
}

int tgtadm_number(const char *text, uint64_t max, uint64_t *out)
{
	char *end;

	if (!strchr("0123456789", *text) || !*text)
		return EINVAL;
	errno = 0;
	*out = strtoull(text, &end, 0);
	if (*end)
		return EINVAL;
	return errno || *out > max ? ERANGE : 0;
}

bool tgtadm_param(char **next, struct tgtadm_param *p)
{
	char *text = *next, *comma, *eq;

	/* tgtadm skips empty parts: OCF agents begin and end with a comma */
	text += text ? strspn(text, ",") : 0;
	if (!text || !*text)
		return false;
	comma = strchr(text, ',');
	*next = comma ? comma + 1 : NULL;
	if (comma)
		*comma = '\0';
	eq = strchr(text, '=');
	if (eq)
		*eq = '\0';
	*p = (struct tgtadm_param){ text, eq ? eq + 1 : NULL };
	return true;
}

static int hint(void)
{
	fprintf(stderr, "Try `%s --help' for more information.\n",
		tgtadm_name_of_program());
	return TGTADM_REFUSED;
}

/* Reads the number of an option. Returns 0, or the exit status after a message. */
static int take_number(int letter, const char *text, uint64_t max,
		       uint64_t *out)
{
	int err = tgtadm_number(text, max, out);

	if (!err)
		return 0;
	if (max >= UINT64_MAX - 1) /* as tgtadm says */
		err = EINVAL;
	fprintf(stderr, "-%c argument value '%.200s' %s\n", letter, text,
		err == ERANGE ? "out of range" : "invalid");
	return hint();
}

/* ---- the letters ---- */

#define AT(member) offsetof(struct tgtadm_request, member)
/* Where an option with a text is stored. */
static const struct {
	char letter;
	size_t at;
} texts[] = {
	{ 'L', AT(lld) },      { 'n', AT(name) },    { 'v', AT(value) },
	{ 'P', AT(params) },   { 'b', AT(path) },    { 'E', AT(bstype) },
	{ 'f', AT(bsoflags) }, { 'S', AT(bsopts) },  { 'y', AT(blocksize) },
	{ 'T', AT(target) },   { 'I', AT(address) }, { 'Q', AT(initiator) },
	{ 'u', AT(user) },
};

static const char **text_of(struct tgtadm_request *r, int letter)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i].letter == letter)
			return (void *)((char *)r + texts[i].at);
	return NULL;
}

static int take_word(struct tgtadm_request *r, int letter, const char *text)
{
	bool is_op = letter == 'o';
	int *out = is_op ? &r->op : &r->mode;

	*out = find_word(is_op ? ops : modes, text);
	if (*out >= 0)
		return 0;
	tgtadm_say("unknown %s: %.200s", is_op ? "operation" : "mode", text);
	return TGTADM_UNKNOWN_WORD;
}

static int take_device(struct tgtadm_request *r, const char *text)
{
	static const char *const types[] = { "disk", "tape", "cd", "changer",
					     "osd",  "ssc",  "pt" };

	r->device = text;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (!strcmp(types[i], text))
			return 0;
	return tgtadm_refuse("unknown target type: %.200s", text);
}

/* The secret is on the command line, which every user of the machine may read:
 * shows "-" there from now on. */
static int take_password(struct tgtadm_request *r, char *text)
{
	size_t len = strlen(text);

	free(r->password);
	r->password = strdup(text);
	if (len)
		memset(text, '-', len);
	return r->password ? 0 : tgtadm_refuse("out of memory");
}

static int take_numbers(struct tgtadm_request *r, int letter, const char *text)
{
	uint64_t v = 0;
	int code;

	switch (letter) {
	case 't':
		code = take_number(letter, text, TGTADM_TID_MAX, &v);
		r->tid = (int)v;
		return code;
	case 's':
		return take_number(letter, text, UINT64_MAX, &r->sid);
	case 'l':
		code = take_number(letter, text, UINT64_MAX - 1, &r->lun);
		return code;
	case 'c':
		code = take_number(letter, text, UINT_MAX, &v);
		r->cid = (unsigned)v;
		return code;
	case 'H':
		r->has_host = true;
		code = take_number(letter, text, UINT_MAX, &v);
		r->host = (unsigned)v;
		return code;
	default: /* 'C' */
		code = take_number(letter, text, USHRT_MAX, &v);
		r->control_port = (unsigned)v;
		return code;
	}
}

/* Takes one option. Returns 0 or the exit status after a message. */
static int take_option(struct tgtadm_request *r, int letter, char *arg)
{
	const char **text = text_of(r, letter);

	if (text) {
		*text = arg;
		return 0;
	}
	switch (letter) {
	case 'o':
	case 'm':
		return take_word(r, letter, arg);
	case 't':
	case 's':
	case 'l':
	case 'c':
	case 'H':
	case 'C':
		return take_numbers(r, letter, arg);
	case 'Y':
		return take_device(r, arg);
	case 'p':
		return take_password(r, arg);
	case 'B':
		return tgtadm_refuse("can't find bus: %.*s",
				     (int)strcspn(arg, ","), arg);
	case 'F':
		r->force = true;
		return 0;
	case 'O':
		r->outgoing = true;
		return 0;
	case 'd':
		r->debug = true;
		return 0;
	default:
		return hint();
	}
}

/* ---- what goes with what ---- */

/* Returns the first letter that does not go with mode and operation, or 0. */
static int find_stranger(int argc, char **argv, const char *known)
{
	int letter;

	optind = 0;
	opterr = 0;
	while ((letter = getopt_long(argc, argv, letters, long_options,
				     NULL)) >= 0)
		if (letter != 'd' && !strchr(known, letter))
			return letter;
	return 0;
}

static const char *name_of(const struct word *all, int value)
{
	while (all->value != value)
		all++;
	return all->text;
}

static int check_letters(const struct tgtadm_request *r, int argc, char **argv)
{
	const char *known = allowed[r->mode][r->op];
	const char *mode = name_of(modes, r->mode);
	int letter;

	if (r->mode == TGTADM_SESSION || r->mode == TGTADM_CONN ||
	    r->mode == TGTADM_LLD)
		return 0;
	if (!known)
		return tgtadm_refuse("operation %s not supported in %s mode",
				     name_of(ops, r->op), mode);
	letter = *known ? find_stranger(argc, argv, known) : 0;
	if (!letter)
		return 0;
	if ((r->mode == TGTADM_LUN && r->op == TGTADM_UPDATE) ||
	    (r->mode == TGTADM_PORTAL && r->op == TGTADM_SHOW))
		return tgtadm_refuse("option '-%c' not supported in %s mode",
				     letter, mode);
	return tgtadm_refuse("%s mode: option '-%c' is not allowed/supported",
			     mode, letter);
}

/* Checks what has to be there before the letters are checked. */
static int check_numbers(const struct tgtadm_request *r)
{
	bool is_lun = r->mode == TGTADM_LUN;

	if (!is_lun && (r->mode != TGTADM_TARGET || r->op == TGTADM_SHOW))
		return 0;
	if (r->tid < 0)
		return tgtadm_refuse("'tid' option is necessary");
	if (r->tid == 0)
		return tgtadm_refuse("'tid' cannot be 0");
	if (is_lun && r->lun == TGTADM_NO_LUN)
		return tgtadm_refuse("'lun' option is necessary");
	return 0;
}

static int check_target(const struct tgtadm_request *r)
{
	if (r->op == TGTADM_NEW && !r->target)
		return tgtadm_refuse("creating new target requires a name, use "
				     "--targetname");
	if ((r->op == TGTADM_BIND || r->op == TGTADM_UNBIND) && !r->address &&
	    !r->initiator && !r->has_host)
		return tgtadm_refuse("%s operation requires initiator-address, "
				     "initiator-nameor bus",
				     r->op == TGTADM_BIND ? "bind" : "unbind");
	return 0;
}

/* Returns 0 or the exit status after a message. */
static int check_needs(struct tgtadm_request *r)
{
	int code = 0;

	if (r->op == TGTADM_UPDATE &&
	    (r->mode == TGTADM_TARGET || r->mode == TGTADM_SYS) &&
	    (!r->name || !r->value))
		return tgtadm_refuse("update operation requires 'name' and "
				     "'value' options");
	if (r->mode == TGTADM_TARGET)
		return check_target(r);
	if (r->mode == TGTADM_PORTAL && r->op != TGTADM_SHOW && !r->params)
		return tgtadm_refuse("you must specify --param "
				     "portal=<portal>");
	if (r->mode != TGTADM_ACCOUNT || r->op == TGTADM_SHOW)
		return 0;
	if (r->op == TGTADM_NEW)
		code = tgtadm_secret_read(r);
	if (code)
		return code;
	if (r->op == TGTADM_NEW && (!r->user || !r->password))
		return tgtadm_refuse("'user' and 'password' options are "
				     "required");
	if (!r->user)
		return tgtadm_refuse("'user' option is necessary");
	return 0;
}

/* ---- all ---- */

static void print_help(void)
{
	fputs("usage: iser-tgtadm [-C N] [-L iscsi|iser] -m MODE -o OP "
	      "[OPTION]...\n"
	      "\n"
	      "Controls iserd by the command line of tgtadm(8) of tgt.\n"
	      "\n"
	      "  -m target -o new     -t TID -T NAME\n"
	      "  -m target -o delete  -t TID [-F]\n"
	      "  -m target -o show    [-t TID]\n"
	      "  -m target -o stat    -t TID\n"
	      "  -m target -o update  -t TID -n state -v ready|offline\n"
	      "  -m target -o update  -t TID -n KEY -v VALUE\n"
	      "  -m target -o bind    -t TID -I ADDRESS[/BITS]|ALL\n"
	      "  -m target -o bind    -t TID -Q INITIATOR\n"
	      "  -m target -o unbind  -t TID -I ADDRESS[/BITS]|ALL\n"
	      "  -m target -o unbind  -t TID -Q INITIATOR\n"
	      "  -m lu -o new         -t TID -l LUN -b PATH "
	      "[-E rdwr|aio|null|sg|rbd]\n"
	      "                       [-Y disk|cd|pt] [-f sync|direct] "
	      "[-y 512|4096]\n"
	      "  -m lu -o delete      -t TID -l LUN\n"
	      "  -m lu -o update      -t TID -l LUN -P NAME=VALUE[,...]\n"
	      "  -m account -o new    -u USER [-p SECRET|-p -]\n"
	      "  -m account -o delete -u USER\n"
	      "  -m account -o show\n"
	      "  -m account -o bind   -u USER [-t TID] [-O]\n"
	      "  -m account -o unbind -u USER [-t TID] [-O]\n"
	      "  -m lu -o stat        -t TID -l LUN\n"
	      "  -m conn -o show      -t TID\n"
	      "  -m conn -o stat      -t TID -s SID\n"
	      "  -m conn -o delete    -t TID -s SID -c CID\n"
	      "  -m portal -o new     -P portal=ADDRESS[:PORT]\n"
	      "  -m portal -o delete  -P portal=ADDRESS[:PORT]\n"
	      "  -m portal -o show\n"
	      "  -m sys -o show | stat\n"
	      "  -m sys -o update     -n debug -v on|off\n"
	      "  -m sys -o delete\n"
	      "\n"
	      "A secret is better not on the command line: -p - reads it from "
	      "standard input,\n"
	      "and without -p the file $ISER_TGTADM_PASSWORD_FILE has it. The "
	      "control socket\n"
	      "is $ISER_TGTADM_SOCKET, or /run/iserd/control; with -C N, N "
	      "not 0, that name\n"
	      "with .N at its end.\n"
	      "\n"
	      "exit status: 0 done, 22 refused, 1 unknown mode or operation, "
	      "107 no iserd there\n",
	      stdout);
}

/* Reads the letters. Returns 0, or the exit status in *code with true in *ends. */
static int take_letters(struct tgtadm_request *r, int argc, char **argv,
			bool *ends)
{
	int letter, code = 0;

	while (!code && (letter = getopt_long(argc, argv, letters, long_options,
					      NULL)) >= 0) {
		*ends = letter == 'h' || letter == 'V';
		if (letter == 'h')
			print_help();
		else if (letter == 'V')
			puts(OPENISER_VERSION);
		else
			code = take_option(r, letter, optarg);
		if (*ends)
			return 0;
	}
	return code;
}

static int check_request(struct tgtadm_request *r, int argc, char **argv)
{
	int code;

	if (r->op < 0)
		return tgtadm_refuse("specify the operation type");
	if (r->mode < 0)
		return tgtadm_refuse("specify the mode");
	code = check_numbers(r);
	if (!code)
		code = check_letters(r, argc, argv);
	return code ? code : check_needs(r);
}

bool tgtadm_options(struct tgtadm_request *r, int argc, char **argv, int *code)
{
	bool ends = false;

	*r = (struct tgtadm_request){
		.op = -1,
		.mode = -1,
		.tid = -1,
		.lun = TGTADM_NO_LUN,
		.agent_user = getenv("OCF_RESKEY_incoming_username"),
	};
	if (r->agent_user && !*r->agent_user)
		r->agent_user = NULL;
	optind = 0; /* glibc: begins anew */
	opterr = 1;
	*code = take_letters(r, argc, argv, &ends);
	if (*code || ends)
		return false;
	if (optind < argc) {
		tgtadm_say("unrecognized option '%.200s'", argv[optind]);
		*code = hint();
		return false;
	}
	*code = check_request(r, argc, argv);
	return !*code;
}
