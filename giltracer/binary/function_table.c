/* SPDX-License-Identifier: MIT */
/* The symbols that libdwfl finds, by address. */
#include "binary/function_table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "binary/fdetab.h"

/* rank: of several symbols at one address, the one with the highest rank is used. sized: the symbol
 * has a size; otherwise its end is a guess. */
struct candidate {
	struct function_symbol function;
	uint32_t rank;
	bool sized;
};

/* highest: a tree over all, as an array. highest[leaves + i] is the end of symbol i, and highest[k]
 * the higher of highest[2 * k] and highest[2 * k + 1]. leaves is a power of two that exceeds the
 * number of symbols. */
struct function_table {
	VEC(struct candidate) all;
	uint64_t *highest;
	size_t leaves;
};

void function_table_free(struct function_table *table)
{
	if (!table)
		return;
	vec_done(&table->all);
	free(table->highest);
	free(table);
}

static uint32_t rank_of(const char *name, const GElf_Sym *sym)
{
	size_t underscores = strspn(name, "_"), len = strlen(name);
	uint32_t rank = sym->st_size != 0;

	rank = rank << 1 | (GELF_ST_BIND(sym->st_info) != STB_WEAK);
	rank = rank << 1 | (GELF_ST_BIND(sym->st_info) == STB_GLOBAL);
	rank = rank << 8 | (255 - (underscores < 255 ? underscores : 255));
	return rank << 16 | (len < UINT16_MAX ? len : UINT16_MAX);
}

static bool in_code(Elf *elf, GElf_Word shndx)
{
	Elf_Scn *scn = elf_getscn(elf, shndx);
	GElf_Shdr shdr;

	return scn && gelf_getshdr(scn, &shdr) && shdr.sh_flags & SHF_EXECINSTR;
}

static bool is_code(const GElf_Sym *sym, GElf_Word shndx, Elf *elf, const char *name)
{
	int type = GELF_ST_TYPE(sym->st_info);

	if (!name || !name[0] || shndx == SHN_UNDEF)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && elf && shndx < SHN_LORESERVE && in_code(elf, shndx);
}

static int by_start(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->function.start != y->function.start)
		return x->function.start < y->function.start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(y->function.name, x->function.name);
}

/* Keeps the best symbol of each start. A symbol without a size ends at the next start. */
static void choose_names(struct function_table *table)
{
	size_t n = 0;

	vec_sort(&table->all, by_start);
	for (size_t i = 0; i < table->all.n; i++)
		if (i + 1 == table->all.n ||
		    table->all.v[i].function.start != table->all.v[i + 1].function.start)
			table->all.v[n++] = table->all.v[i];
	table->all.n = n;
	for (size_t i = 0; i < n; i++) {
		struct function_symbol *s = &table->all.v[i].function;

		if (s->end == s->start)
			s->end = i + 1 < n ? table->all.v[i + 1].function.start : s->start + 1;
	}
}

static void make_highest(struct function_table *table)
{
	uint64_t *highest;

	for (table->leaves = 1; table->leaves <= table->all.n;)
		table->leaves *= 2;
	table->highest = highest = xcalloc(2 * table->leaves, sizeof(*highest));
	for (size_t i = 0; i < table->all.n; i++)
		highest[table->leaves + i] = table->all.v[i].function.end;
	for (size_t k = table->leaves; k-- > 1;)
		highest[k] = highest[2 * k] > highest[2 * k + 1] ? highest[2 * k]
		                                                 : highest[2 * k + 1];
}

/* The last of the first n symbols that ends above vaddr, or n. */
static size_t last_above(const struct function_table *table, size_t n, uint64_t vaddr)
{
	for (size_t k = table->leaves + n; k > 1; k /= 2) {
		/* The left sibling of an odd node covers symbols before n only. */
		if (k % 2 == 0 || table->highest[k - 1] <= vaddr)
			continue;
		for (k--; k < table->leaves;)
			k = 2 * k + (table->highest[2 * k + 1] > vaddr);
		return k - table->leaves;
	}
	return n;
}

struct function_table *function_table_new(Dwfl_Module *file)
{
	struct function_table *table = xcalloc(1, sizeof(*table));
	int n = dwfl_module_getsymtab(file);

	for (int i = 0; i < n; i++) {
		GElf_Word shndx;
		GElf_Sym sym;
		GElf_Addr addr;
		Elf *elf = NULL;
		const char *name = dwfl_module_getsym_info(file, i, &sym, &addr, &shndx, &elf,
		                                           NULL);

		if (!is_code(&sym, shndx, elf, name))
			continue;
		addr = sym.st_value;
		*vec_push(&table->all) = (struct candidate){
			.function = { addr, addr + sym.st_size, name },
			.rank = rank_of(name, &sym),
			.sized = sym.st_size != 0,
		};
	}
	choose_names(table);
	make_highest(table);
	return table;
}

/* Whether a symbol includes vaddr. A symbol without a size must not cover a function that has no
 * symbol. */
static bool reaches(const struct candidate *c, const struct fdetab *starts, uint64_t vaddr)
{
	uint64_t start, end;

	if (c->function.end <= vaddr)
		return false;
	return c->sized || !fdetab_find(starts, vaddr, &start, &end) || start <= c->function.start;
}

const struct function_symbol *function_table_at(const struct function_table *table,
                                                const struct fdetab *starts, uint64_t vaddr)
{
	size_t n = SEARCH(table->all.n, k, table->all.v[k].function.start <= vaddr);
	size_t at = last_above(table, n, vaddr);

	/* Symbols may be nested: use the last one that starts before vaddr and includes it. A
	 * symbol without a size ends at the next, so only the last can fail to include vaddr. */
	if (at < n && !reaches(&table->all.v[at], starts, vaddr)) {
		n = at;
		at = last_above(table, n, vaddr);
	}
	return at < n ? &table->all.v[at].function : NULL;
}

const struct function_symbol *function_table_find(const struct function_table *table,
                                                  const char *name)
{
	for (size_t i = 0; i < table->all.n; i++)
		if (!strcmp(table->all.v[i].function.name, name))
			return &table->all.v[i].function;
	return NULL;
}

/* ---- mangled names */

#define PARTS_MAX 32
#define PART_MAX  1000
#define RUST_HASH 17 /* "h" and 16 digits */

/* The identifiers of a path, in the mangled name. */
struct parts {
	struct part {
		const char *at;
		size_t len;
	} v[PARTS_MAX];
	unsigned n;
};

/* Takes a length and as many characters, which Rust may separate. NULL: there is no identifier. */
static const char *take_part(const char *s, struct parts *parts, bool rust)
{
	char *end;
	unsigned long len;

	if (!isdigit((unsigned char)*s) || parts->n == PARTS_MAX)
		return NULL;
	len = strtoul(s, &end, 10);
	s = end + (rust && *end == '_');
	if (len > PART_MAX || strnlen(s, len) < len || (!len && !rust))
		return NULL;
	parts->v[parts->n++] = len ? (struct part){ s, len } : (struct part){ "{closure}", 9 };
	return s + len;
}

/* After "_Z", or after "_ZN" if it is nested. */
static bool is_cxx_path(const char *s, struct parts *parts, bool nested)
{
	s += nested ? strspn(s, "rVKRO") : 0;
	if (str_has_prefix(s, "St")) {
		parts->v[parts->n++] = (struct part){ "std", 3 };
		s += 2;
	}
	do {
		s = take_part(s + (*s == 'L'), parts, false);
	} while (s && nested && *s != 'E' && *s != 'C');
	if (s && *s == 'C' && isdigit((unsigned char)s[1]) && parts->n < PARTS_MAX) {
		parts->v[parts->n] = parts->v[parts->n - 1]; /* a constructor */
		parts->n++;
		s += 2;
	}
	return s && (nested ? *s == 'E' : *s != 'I');
}

/* After "_R": a path that begins with a library, "C". */
static bool is_rust_path(const char *s, struct parts *parts)
{
	unsigned depth = 0;

	for (; *s == 'N' && isalpha((unsigned char)s[1]) && depth < PARTS_MAX; depth++)
		s += 2;
	if (*s++ != 'C')
		return false;
	for (unsigned i = 0; s && i <= depth; i++) {
		if (*s == 's') /* tells parts with the same name apart */
			s += strcspn(s, "_") + (strchr(s, '_') != NULL);
		s = take_part(s, parts, true);
	}
	return s;
}

/* Before version 0 of its names, Rust's were those of C++, with a hash at the end. */
static bool has_hash(const struct parts *parts)
{
	const struct part *last = &parts->v[parts->n - 1];

	return parts->n > 1 && last->len == RUST_HASH && *last->at == 'h' &&
	       strspn(last->at + 1, "0123456789abcdef") >= RUST_HASH - 1;
}

static void add_part(struct str *out, const struct part *part, bool rust)
{
	static const char *const escapes[][2] = {
		{ "$LT$", "<" },  { "$GT$", ">" },  { "$RF$", "&" },
		{ "$BP$", "*" },  { "$C$", "," },   { "..", "::" },
		{ "$u20$", " " }, { "$u7b$", "{" }, { "$u7d$", "}" },
	};
	const char *s = part->at, *end = s + part->len;

	if (!rust && str_has_prefix(s, "_GLOBAL__N_1")) {
		str_adds(out, "(anonymous namespace)");
		return;
	}
	s += rust && str_has_prefix(s, "_$");
	while (s < end) {
		size_t i = 0, n = sizeof(escapes) / sizeof(escapes[0]);

		while (rust && i < n && !str_has_prefix(s, escapes[i][0]))
			i++;
		if (rust && i < n) {
			str_adds(out, escapes[i][1]);
			s += strlen(escapes[i][0]);
		} else {
			str_addc(out, *s++);
		}
	}
}

bool function_path(struct str *out, const char *mangled)
{
	struct parts parts = { .n = 0 };
	bool is_path, hash = false;

	if (str_has_prefix(mangled, "_R"))
		is_path = is_rust_path(mangled + 2, &parts);
	else if (str_has_prefix(mangled, "_ZN"))
		is_path = is_cxx_path(mangled + 3, &parts, true);
	else
		is_path = str_has_prefix(mangled, "_Z") && is_cxx_path(mangled + 2, &parts, false);
	if (!is_path)
		return false;
	hash = has_hash(&parts);
	for (unsigned i = 0; i < parts.n - hash; i++) {
		str_adds(out, i ? "::" : "");
		add_part(out, &parts.v[i], hash);
	}
	return true;
}
