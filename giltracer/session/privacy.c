/* SPDX-License-Identifier: MIT */
/* Hides paths, arguments, names of persons and hosts, and secrets. */
#include "session/privacy.h"

#include <ctype.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "base/vec.h"

/**
 * @roots: folders from which the program imports its modules, ending in '/'
 * @script: the file that the program is, NULL: none
 * @words: a tree of the names of user and host, and of arguments, which can be many: a node by its parent and a
 * character; @by: of each node, what replaces the word that ends there; NULL: none does
 */
struct privacy {
	struct hash_seed seed;
	VEC(char *) roots;
	char *script;
	struct idmap words;
	VEC(const char *) by;
};

struct privacy *privacy_new(void)
{
	struct privacy *p = xcalloc(1, sizeof(*p));

	p->seed = hash_seed();
	*vec_push(&p->by) = NULL;
	return p;
}

void privacy_free(struct privacy *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->roots.n; i++)
		free(p->roots.v[i]);
	vec_done(&p->roots);
	vec_done(&p->by);
	idmap_done(&p->words);
	free(p->script);
	free(p);
}

/* ---- characters */

/* Bytes beyond ASCII are parts of letters. */
static bool is_letter(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static bool is_word(char c)
{
	return is_letter(c) || c == '_';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The end of the characters that a relative path may have. A slash after "-" begins an absolute one. */
static const char *token_end(const char *at, const char *end)
{
	for (char before = 'x'; at < end && !is_blank(*at) && !strchr("\"'`()<>,;:|=[]{}", *at) &&
	                        (*at != '/' || is_word(before) || strchr(".~", before));
	     at++)
		before = *at;
	return at;
}

/* ---- paths */

/* Letters, because threads whose names differ in digits only are a group. For the same reason, a short
 * number at the end stays. */
static void add_hidden(const struct privacy *p, const char *text, size_t len, struct str *out)
{
	size_t name = len;
	uint64_t hash;

	while (name && isdigit((unsigned char)text[name - 1]))
		name--;
	if (len - name > 3)
		name = len;
	hash = hash_text(p->seed, text, name) >> 32;
	str_adds(out, "hidden-");
	for (unsigned i = 0; i < 8; i++, hash >>= 4)
		str_addc(out, (char)('a' + (hash & 15)));
	if (name < len) {
		str_addc(out, '-');
		str_addn(out, text + name, len - name);
	}
}

/* Whether it is what add_hidden appends. */
static bool is_hidden(const char *text, size_t len)
{
	static const char before[] = "hidden-";
	size_t letters = sizeof(before) - 1;

	if (len < letters + 8 || memcmp(text, before, letters) != 0)
		return false;
	for (size_t i = letters; i < letters + 8; i++)
		if (text[i] < 'a' || text[i] > 'p')
			return false;
	for (size_t i = letters + 8; i < len; i++)
		if (text[i] != '-' && !isdigit((unsigned char)text[i]))
			return false;
	return true;
}

static const char *base_of(const char *path, size_t len)
{
	const char *slash = memrchr(path, '/', len);

	return slash ? slash + 1 : path;
}

static bool is_at(const char *text, size_t len, const char *what)
{
	return len >= strlen(what) && !memcmp(text, what, strlen(what));
}

static bool ends_in(const char *text, size_t len, const char *what)
{
	return len >= strlen(what) && is_at(text + len - strlen(what), strlen(what), what);
}

/* Whether the path is that of a module or an interpreter, whose names stay. */
static bool is_code(const struct privacy *p, const char *path, size_t len)
{
	static const char *const ends[] = { ".py", ".pyc", ".pyw", ".pyx", ".so" };
	const char *base = base_of(path, len);
	size_t base_len = (size_t)(path + len - base);

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (ends_in(base, base_len, ends[i]))
			return true;
	if (is_at(base, base_len, "python"))
		return strspn(base + strlen("python"), "0123456789.") >=
		       base_len - strlen("python");
	return memmem(base, base_len, ".so.", 4) ||
	       (p->script && strlen(p->script) == len && !memcmp(p->script, path, len));
}

/* Where "/lib/python3.N/" begins; NULL: nowhere. */
static const char *library_in(const char *path, size_t len)
{
	static const char lib[] = "/lib/python3";

	for (const char *at = path;
	     (at = memmem(at, (size_t)(path + len - at), lib, sizeof(lib) - 1)); at++) {
		const char *end = at + sizeof(lib) - 1;

		while (end < path + len && (isdigit((unsigned char)*end) || strchr(".t", *end)))
			end++;
		if (end < path + len && *end == '/')
			return at;
	}
	return NULL;
}

/* The part of the path that begins with a folder of packages; NULL: none. */
static const char *package_in(const char *path, size_t len)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/" };
	const char *last = NULL;

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		for (const char *at = path;
		     (at = memmem(at, (size_t)(path + len - at), folders[i], strlen(folders[i])));
		     at++)
			last = !last || at > last ? at : last;
	return last ? last : library_in(path, len);
}

/* The path below the innermost of the program's own folders that it is in; NULL: in none. */
static const char *below_root(const struct privacy *p, const char *path, size_t len)
{
	size_t longest = 0;

	for (size_t i = 0; i < p->roots.n; i++)
		if (is_at(path, len, p->roots.v[i]) && strlen(p->roots.v[i]) > longest)
			longest = strlen(p->roots.v[i]);
	return longest ? path + longest : NULL;
}

static bool goes_up(const char *path, size_t len)
{
	return is_at(path, len, "../") || memmem(path, len, "/../", 4);
}

static void add_path(const struct privacy *p, const char *path, size_t len, struct str *out)
{
	const char *base = base_of(path, len), *end = path + len, *from = NULL;

	if (!is_code(p, path, len)) {
		add_hidden(p, path, len, out);
		return;
	}
	if (!goes_up(path, len)) {
		from = package_in(path, len);
		if (from)
			str_adds(out, "...");
		else
			from = below_root(p, path, len);
		if (!from && *path != '/' && token_end(path, end) == end)
			from = path;
	}
	if (!from) {
		add_hidden(p, path, (size_t)(base - path), out);
		from = base - 1;
	}
	str_addn(out, from, (size_t)(end - from));
}

/* ---- texts */

/* What ends a text that c begins; 0: it begins none. */
static char closing(char c)
{
	static const char opens[] = "\"'`([{<", closes[] = "\"'`)]}>";
	const char *at = strchr(opens, c);

	return at && *at ? closes[at - opens] : 0;
}

/* TEXT_NAME: all of it is one name, with a path to its end. TEXT_SENTENCE: text may follow a path.
 * TEXT_CODE: a source line, in which a slash may divide. */
enum text_kind { TEXT_NAME, TEXT_SENTENCE, TEXT_CODE };

/* Whether a path in a sentence ends here. */
static bool ends_path(const char *at, const char *end)
{
	bool last = at + 1 >= end || is_blank(at[1]);

	switch (*at) {
	case '"':
	case '\'':
	case '`':
	case '\n':
		return true;
	case ':':
		return last || isdigit((unsigned char)at[1]);
	case ',':
	case ';':
	case '.':
		return last;
	case ' ':
		return at + 1 < end && at[1] == '(';
	default:
		return false;
	}
}

static const char *path_end(const char *at, const char *end, char before, enum text_kind kind)
{
	char close = closing(before);
	const char *ret = NULL;

	if (close)
		ret = kind == TEXT_NAME ? memrchr(at, close, (size_t)(end - at))
		                        : memchr(at, close, (size_t)(end - at));
	if (!ret && kind == TEXT_NAME)
		ret = end;
	for (; !ret; at++)
		if (at >= end || ends_path(at, end))
			ret = at;
	while (is_blank(ret[-1]))
		ret--;
	return ret;
}

/* Whether it is a path without a slash at its beginning: with an extension, or of more than two parts, or
 * in a home folder. */
static bool is_relative_path(const char *at, const char *end, bool dots)
{
	size_t len = (size_t)(end - at);
	const char *slash = memchr(at, '/', len), *last, *dot;

	if (!slash)
		return false;
	if (*at == '~' || is_at(at, len, "./") || is_at(at, len, "../"))
		return true;
	last = memrchr(at, '/', len);
	dot = memrchr(last, '.', (size_t)(end - last));
	return slash != last || (dots && dot && dot + 1 < end && isalpha((unsigned char)dot[1]));
}

/* Whether the slash does not divide, as it does in "a / b", "a // b" and "a /= b". */
static bool begins_path(const char *at, const char *end)
{
	while (at < end && *at == '/')
		at++;
	return at < end && !is_blank(*at) && !strchr("\"'`)]}>,;:=*", *at);
}

static void add_text(const struct privacy *p, const char *text, size_t len, enum text_kind kind,
                     struct str *out)
{
	const char *at = text, *end = text + len, *to, *slash;
	char before = ' ', quote = 0;

	for (; at < end; before = at[-1]) {
		size_t rest = (size_t)(end - at);

		if (is_at(at, rest, "://")) {
			for (to = at + 3; to < end && !is_blank(*to) && !strchr("\"'`<>)", *to);)
				to++;
			str_adds(out, "://");
			if (is_hidden(at + 3, (size_t)(to - at - 3)))
				str_addn(out, at + 3, (size_t)(to - at - 3));
			else if (to > at + 3)
				add_hidden(p, at + 3, (size_t)(to - at - 3), out);
			at = to;
			continue;
		}
		if (*at == '/' && !is_word(before) && begins_path(at, end)) {
			to = path_end(at, end, before, kind);
			add_path(p, at, (size_t)(to - at), out);
			at = to;
			continue;
		}
		to = is_word(before) || strchr("/.~-", before) ? at : token_end(at, end);
		if (to > at && is_relative_path(at, to, kind != TEXT_CODE || quote)) {
			add_path(p, at, (size_t)(to - at), out);
			at = to;
			continue;
		}
		/* At once, because each part of a long token would be looked at to its end. */
		slash = to > at ? memchr(at, '/', (size_t)(to - at)) : NULL;
		to = slash ? slash : to;
		if (to > at) {
			str_addn(out, at, (size_t)(to - at));
			at = to;
			continue;
		}
		if (*at == quote)
			quote = 0;
		else if (!quote && strchr("\"'#", *at))
			quote = *at;
		str_addc(out, *at++);
	}
}

/* Where the longest hidden word ends that begins here; NULL: none does. */
static const char *word_end(const struct privacy *p, const char *at, const char *end,
                            const char **ret_by)
{
	const char *ret = NULL;
	uint32_t node = 0;

	while (at < end) {
		node = idmap_get(&p->words, idmap_pair(node, (unsigned char)*at++));
		if (node == IDMAP_NONE)
			break;
		if (!p->by.v[node] || (at < end && is_letter(*at)))
			continue;
		ret = at;
		*ret_by = p->by.v[node];
	}
	return ret;
}

static void add_without_words(const struct privacy *p, const char *text, size_t len,
                              struct str *out)
{
	const char *at = text, *end = text + len, *by = "", *to;

	while (at < end) {
		to = at > text && is_letter(at[-1]) ? NULL : word_end(p, at, end, &by);
		if (to) {
			str_adds(out, by);
			at = to;
		} else {
			str_addc(out, *at++);
		}
	}
}

/* "NAME (PATH:LINE)": where the path begins and ends. */
static bool find_place(const char *text, size_t len, const char **ret_from, const char **ret_to)
{
	const char *open = memmem(text, len, " (", 2), *at = text + len;

	if (!open || at[-1] != ')')
		return false;
	for (at--; at > open && isdigit((unsigned char)at[-1]);)
		at--;
	if (at[-1] != ':' || at - 1 <= open + 2)
		return false;
	*ret_from = open + 2;
	*ret_to = at - 1;
	return memchr(*ret_from, '/', (size_t)(*ret_to - *ret_from)) != NULL;
}

static bool hide(const struct privacy *p, const char *text, size_t len, enum text_kind kind,
                 struct str *ret)
{
	CLEANUP(str_done) struct str out = { 0 }, hidden = { 0 };
	const char *from, *to;

	if (!memchr(text, '/', len)) {
		str_addn(&out, text, len);
	} else if (kind == TEXT_NAME && find_place(text, len, &from, &to)) {
		add_text(p, text, (size_t)(from - text), kind, &out);
		add_path(p, from, (size_t)(to - from), &out);
		str_addn(&out, to, (size_t)(text + len - to));
	} else {
		add_text(p, text, len, kind, &out);
	}
	add_without_words(p, str_get(&out), out.len, &hidden);
	if (hidden.len == len && !memcmp(str_get(&hidden), text, len))
		return false;
	str_addn(ret, str_get(&hidden), hidden.len);
	return true;
}

bool privacy_of_name(const struct privacy *p, const char *text, size_t len, struct str *ret)
{
	return hide(p, text, len, TEXT_NAME, ret);
}

static void hide_in(const struct privacy *p, char **text, enum text_kind kind)
{
	struct str out = { 0 };

	if (!*text || !hide(p, *text, strlen(*text), kind, &out))
		return;
	free(*text);
	*text = str_take(&out);
}

void privacy_of_sentence(const struct privacy *p, char **text)
{
	if (p)
		hide_in(p, text, TEXT_SENTENCE);
}

/* ---- the document */

static void add_word(struct privacy *p, const char *text, size_t len, const char *by)
{
	/* Names of accounts that say nothing of a person, but occur in other meanings. */
	static const char *const general[] = {
		"app",  "debian", "docker", "host",   "localhost", "main",   "nobody",  "python",
		"root", "runner", "user",   "ubuntu", "container", "worker", "www-data"
	};
	uint32_t node = 0;

	for (size_t i = 0; i < sizeof(general) / sizeof(*general); i++)
		if (strlen(general[i]) == len && !memcmp(general[i], text, len))
			return;
	for (size_t i = 0; i < len; i++) {
		uint32_t parent = node;

		if (idmap_add(&p->words, idmap_pair(parent, (unsigned char)text[i]),
		              (uint32_t)p->by.n, &node))
			*vec_push(&p->by) = NULL;
	}
	if (len && !p->by.v[node])
		p->by.v[node] = by;
}

/* The owner of a home folder. */
static void learn_user(struct privacy *p, const char *path)
{
	static const char *const homes[] = { "/home/", "/Users/" };

	for (size_t i = 0; path && i < sizeof(homes) / sizeof(*homes); i++) {
		const char *at = strstr(path, homes[i]);

		if (at && strcspn(at + strlen(homes[i]), "/:") > 1)
			add_word(p, at + strlen(homes[i]), strcspn(at + strlen(homes[i]), "/:"),
			         "user");
	}
}

static void learn_here(struct privacy *p)
{
	const struct passwd *user = getpwuid(getuid());
	const char *names[] = { user ? user->pw_name : NULL, getenv("SUDO_USER") };
	char host[256] = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i] && names[i][0] && names[i][1])
			add_word(p, names[i], strlen(names[i]), "user");
	if (gethostname(host, sizeof(host) - 1) < 0 || strcspn(host, ".") < 2)
		return;
	add_word(p, host, strlen(host), "host");
	add_word(p, host, strcspn(host, "."), "host");
}

/* Arguments that cannot be mistaken for the name of a function. */
static void learn_argument(struct privacy *p, const char *arg)
{
	const char *equals = strchr(arg, '=');
	bool is_name = true;

	for (const char *c = arg; *c; c++)
		is_name &= is_word(*c) && !isdigit((unsigned char)*c);
	if (!is_name && strlen(arg) >= 6)
		add_word(p, arg, strlen(arg), "argument");
	if (equals && strlen(equals + 1) >= 6)
		add_word(p, equals + 1, strlen(equals + 1), "argument");
}

static void add_root(struct privacy *p, const char *path, size_t len)
{
	while (len && path[len - 1] == '/')
		len--;
	if (len)
		*vec_push(&p->roots) = xasprintf("%.*s/", (int)len, path);
}

static void learn_script(struct privacy *p, const char *script, const char *cwd)
{
	CLEANUP(free)
	char *path = *script == '/' ? xstrdup(script) : xasprintf("%s/%s", cwd ? cwd : "", script);
	size_t len = (size_t)(base_of(path, strlen(path)) - path);

	p->script = xstrdup(path);
	if (!ends_in(path, len, "/bin/"))
		add_root(p, path, len);
	else if (cwd)
		add_root(p, cwd, strlen(cwd));
	if (*script != '/' && strchr(script, '/')) /* as CPython names it up to 3.8 */
		add_root(p, script, (size_t)(base_of(script, strlen(script)) - script));
}

static bool is_interpreter(const char *arg)
{
	return str_has_prefix(base_of(arg, strlen(arg)), "python");
}

/* The first of an interpreter's options in the word that takes a value, which may be the rest of the word; "":
 * none does. */
static const char *valued_option(const char *word)
{
	return *word == '-' && word[1] != '-' ? word + strcspn(word, "cmWX") : "";
}

/* The number of words that say which program it is: all but its arguments. */
static size_t count_program(char *const *command)
{
	size_t n = command[0] && is_interpreter(command[0]) && command[1];

	for (; n && command[n] && *command[n] == '-' && command[n][1]; n++) {
		const char *option = valued_option(command[n]);

		if (*option == 'c' || *option == 'm')
			break;
		if (*option && !option[1] && command[n + 1])
			n++;
	}
	if (!command[n])
		return n;
	return n + 1 + (!strcmp(valued_option(command[n]), "m") && command[n + 1]);
}

static void learn_command(struct privacy *p, const struct session *session)
{
	char *const *command = session->command;
	size_t n = count_program(command);
	const char *program = n ? command[n - 1] : "-";
	bool module = n > 1 && !strcmp(valued_option(command[n - 2]), "m");

	if (module || *program == '-')
		add_root(p, session->cwd ? session->cwd : "",
		         session->cwd ? strlen(session->cwd) : 0);
	else
		learn_script(p, program, session->cwd);
	for (char *const *arg = command + n; *arg; arg++)
		learn_argument(p, *arg);
}

/* Only the program stays, and how many arguments it has. */
static void hide_command(const struct privacy *p, struct session *session)
{
	size_t program = count_program(session->command), n = 0;

	for (size_t i = 0; session->command[i]; i++) {
		const char *option = valued_option(session->command[i]);

		if (i < program && *option == 'c') /* without code in the same word */
			session->command[i][option + 1 - session->command[i]] = '\0';
		if (i < program)
			hide_in(p, &session->command[i], TEXT_NAME);
		else
			free(session->command[i]);
		n++;
	}
	session->command = xreallocarray(session->command, program + 2, sizeof(*session->command));
	session->command[program] = NULL;
	session->command[program + 1] = NULL;
	if (n > program)
		session->command[program] = xasprintf("(%zu argument%s hidden)", n - program,
		                                      n - program == 1 ? "" : "s");
}

void privacy_of_session(struct privacy *p, struct session *session)
{
	learn_here(p);
	learn_user(p, session->cwd);
	learn_user(p, session->root);
	learn_user(p, session->executable);
	for (char *const *arg = session->command; arg && *arg; arg++)
		learn_user(p, *arg);
	if (session->command) {
		learn_command(p, session);
		hide_command(p, session);
	}
	hide_in(p, &session->executable, TEXT_NAME);
	for (size_t i = 0; i < session->pass_count; i++)
		privacy_of_sentence(p, &session->passes[i].python_trace_note);
	for (size_t i = 0; i < session->note_count; i++)
		privacy_of_sentence(p, &session->notes[i].text);
	/* What follows the version may name who has built the kernel. */
	if (session->kernel)
		session->kernel[strspn(session->kernel, "0123456789.")] = '\0';
}

/* ---- source lines */

#define HIDDEN_LINE "(hidden: it may contain a secret)"

static bool has_any(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcasestr(text, *words))
			return true;
	return false;
}

/* Whether one of the names, a whole part of an identifier, is assigned to. */
static bool assigns_to(const char *text, const char *const *names)
{
	for (; *names; names++)
		for (const char *at = text; (at = strcasestr(at, *names)); at++) {
			const char *to = at + strlen(*names);

			if ((at > text && is_letter(at[-1])) || is_letter(*to))
				continue;
			while (is_word(*to))
				to++;
			to += strspn(to, "\"')] ");
			if ((*to == '=' && to[1] != '=') || *to == ':')
				return true;
		}
	return false;
}

/* Whether anything stands there that may be a value: a string, or a number of four digits. */
static bool has_value(const char *text)
{
	for (; *text; text++)
		if (*text == '"' || *text == '\'' || strspn(text, "0123456789") >= 4)
			return true;
	return false;
}

static unsigned count_different(const char *text, size_t len)
{
	bool seen[256] = { false };
	unsigned n = 0;

	for (size_t i = 0; i < len; i++) {
		n += !seen[(unsigned char)text[i]];
		seen[(unsigned char)text[i]] = true;
	}
	return n;
}

#define KEY_LENGTH        20
#define HEX_KEY_LENGTH    32
#define KEY_DIFFERENT     12 /* characters: 3.6 bits each, if they were equally frequent */
#define HEX_KEY_DIFFERENT 9

/* Keys and tokens: long, with digits among letters, and without repetitions. */
static bool is_random(const char *text, size_t len)
{
	bool digit = false, lower = false, upper = false, hex = true, name = false;

	for (size_t i = 0; i < len; i++) {
		digit |= isdigit((unsigned char)text[i]) != 0;
		lower |= islower((unsigned char)text[i]) != 0;
		upper |= isupper((unsigned char)text[i]) != 0;
		hex &= isxdigit((unsigned char)text[i]) || text[i] == '-';
		name |= text[i] == '_';
	}
	if (!digit || len < KEY_LENGTH)
		return false;
	if (hex && len >= HEX_KEY_LENGTH)
		return count_different(text, len) >= HEX_KEY_DIFFERENT;
	return lower && (upper || !name) && count_different(text, len) >= KEY_DIFFERENT;
}

static bool has_random(const char *text)
{
	static const char key[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_=-";

	while (*text) {
		size_t len = strspn(text, key);

		if (len && is_random(text, len))
			return true;
		text += len ? len : 1;
	}
	return false;
}

/* A string without what is done with it: an item of a list, or the second line of an assignment. */
static bool is_string_only(const char *text)
{
	const char *at = text + strspn(text, "bBfFrRuU"), *end = text + strlen(text);
	char quote = *at;

	if (quote != '"' && quote != '\'')
		return false;
	while (end > at + 1 && strchr(",)]}\\ ", end[-1]))
		end--;
	return end > at + 1 && end[-1] == quote && !memchr(at + 1, quote, (size_t)(end - at - 2));
}

static const char *const secrets[] = { "passw",      "passphrase",    "secret",     "token",
	                               "api_key",    "apikey",        "api-key",    "credential",
	                               "privatekey", "private_key",   "access_key", "accesskey",
	                               "bearer",     "authorization", "begin rsa",  "-----begin",
	                               NULL };
static const char *const maybe_secrets[] = { "key",  "pwd",    "pass", "auth", "pin",
	                                     "salt", "cookie", "dsn",  NULL };

static bool is_secret(const char *text)
{
	return ((has_any(text, secrets) || assigns_to(text, maybe_secrets)) && has_value(text)) ||
	       strstr(text, "-----BEGIN") || has_random(text) || is_string_only(text);
}

/* Whether the statement goes on in the next line. */
static bool goes_on(const char *text)
{
	size_t len = strlen(text);

	return len && strchr("([{=\\,", text[len - 1]);
}

void privacy_of_sources(const struct privacy *p, struct sources *sources)
{
	const struct source_line *begin = NULL; /* of a secret of several lines */

	for (size_t i = 0; i < sources->n; i++) {
		struct source_line *s = &sources->v[i], *before = i ? s - 1 : NULL;
		bool follows = before && before->line + 1 == s->line &&
		               !strcmp(before->file, s->file);
		bool names = has_any(s->text, secrets) || assigns_to(s->text, maybe_secrets);
		bool on = goes_on(s->text), inside;

		if (!follows || (begin && s->indent <= begin->indent))
			begin = NULL;
		inside = begin != NULL;
		if (!begin && names && on)
			begin = s;
		hide_in(p, &s->lock, TEXT_CODE);
		if (!inside && !is_secret(s->text)) {
			hide_in(p, &s->text, TEXT_CODE);
			continue;
		}
		free(s->text);
		free(s->lock);
		s->text = xstrdup(HIDDEN_LINE);
		s->lock = NULL;
	}
	/* Only now, because the lines of a file are compared above. */
	for (size_t i = 0; i < sources->n; i++)
		hide_in(p, &sources->v[i].file, TEXT_NAME);
}
