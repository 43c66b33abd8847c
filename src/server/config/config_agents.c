/* The agents of the configuration: agents.list and agents.defaults.
 *
 * Each may come from any source, so both are kept as JSON until all sources
 * have been read, and become cards then. Each entry is read alone first, then
 * merged with the defaults: a mistake in the entry is reported with its own
 * position, and a mistake in the defaults only once.
 *
 * Rejected: rows in table.c for the members of an entry. One table reads cards
 * from every source (model/card.h). */
#include <stdio.h>

#include "model/card.h"
#include "server/config/internal.h"

enum {
    PATH_BYTES = 512,
    TREE_BYTES = 16 * 1024 * 1024, /* one entry merged with the defaults */
};

struct agents_load {
    struct load *l;
    struct value_pos at;         /* of the list */
    const struct json *defaults; /* NULL: none */
    struct value_pos defaults_at;
    struct agent *list;
    bool has_transports; /* load_transport may be called */
};

/* "agents.list[2].skills[0].name", from "agents.list[2]" and the pointer
 * "/skills/0/name". */
static void card_path(const char *head, struct str pointer,
                      char out[PATH_BYTES])
{
    size_t n = (size_t)snprintf(out, PATH_BYTES, "%s", head);

    while (pointer.n && n < PATH_BYTES) {
        struct str part;
        int64_t index;
        bool is_index;

        pointer = str_sub(pointer, 1, pointer.n);
        part = str_sub(pointer, 0, str_find(pointer, '/', 0));
        pointer = str_sub(pointer, part.n, pointer.n);
        is_index = part.n && str_to_i64(part, &index) == OK;
        n += (size_t)snprintf(out + n, PATH_BYTES - n,
                              is_index ? "[%.*s]" : ".%.*s",
                              STR_ARG(part.n ? part : STR("\"\"")));
    }
}

/* has_offsets: each problem has an offset of its own, else all are reported at
 * `at`. */
static void report_card_problems(struct load *l, struct value_pos at,
                                 const char *head,
                                 const struct card_problems *p,
                                 bool has_offsets)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct card_problem *one = &p->list[i];
        char path[PATH_BYTES];

        card_path(head, one->pointer, path);
        if (has_offsets)
            at.at = one->at;
        report_error(&l->report, at, "%s %.*s", path, STR_ARG(one->message));
    }
    for (size_t i = p->n; i < p->n_all; i++)
        report_error(&l->report, at, "%s has more problems", head);
}

static void report_agents_full(struct load *l, struct value_pos at,
                               const char *path)
{
    report_error(&l->report, at,
                 "there is no memory for %s: all agents together, each with "
                 "its defaults, may take %d MiB",
                 path, CONFIG_BYTES_MAX / (1024 * 1024));
}

/* Reports members that only an entry may have. */
static bool defaults_have_entry_members(struct load *l, const struct json *v,
                                        struct value_pos at)
{
    static const char *const names[] = {"id", "default"};
    bool has = false;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct json *one = json_get(v, str_of(names[i]));

        if (!one)
            continue;
        at.at = one->at;
        report_error(&l->report, at,
                     "agents.defaults.%s is not allowed: no two agents can "
                     "have the same",
                     names[i]);
        has = true;
    }
    return has;
}

/* NULL: there are none, or they have errors, which have been reported. */
static const struct json *read_agent_defaults(struct load *l)
{
    const struct setting *s =
        setting_find(&config_settings, STR("agents.defaults"));
    const struct json *v = l->deferred[s - config_settings.rows];
    struct value_pos at = l->where[s - config_settings.rows];
    const struct card_opts opts = {.dialect = CARD_CONFIG,
                                   .rights = CARD_MAY_ALL,
                                   .is_part = true,
                                   .name = STR("defaults"),
                                   .currency = l->c->ledger.currency};
    struct card_problems problems;
    struct agent ignored;
    struct arena scratch;
    enum err e;

    if (!v || v->kids.n == 0 || defaults_have_entry_members(l, v, at))
        return NULL;
    arena_init(&scratch, TREE_BYTES);
    e = card_read(&scratch, v, &opts, &ignored, &problems);
    if (e == ERR_NOMEM)
        report_agents_full(l, at, s->path);
    else if (e)
        report_card_problems(l, at, s->path, &problems, true);
    arena_fini(&scratch);
    return e ? NULL : v;
}

/* Entries. */

/* After an error the configuration is discarded anyway: further entries are
 * read into the scratch arena, only to find more errors. */
static struct arena *agent_arena(struct agents_load *s, struct arena *scratch)
{
    return s->l->report.out->n_errors ? scratch : &s->l->c->arena;
}

static enum err read_merged_entry(struct agents_load *s, struct arena *scratch,
                                  const struct json *v, struct agent *out,
                                  struct card_problems *problems)
{
    const struct card_opts opts = {.dialect = CARD_CONFIG,
                                   .rights = CARD_MAY_ALL,
                                   .currency = s->l->c->ledger.currency};
    const struct json *card = card_merge(scratch, s->defaults, v);

    problems->n = problems->n_all = 0;
    return card ? card_read(agent_arena(s, scratch), card, &opts, out, problems)
                : ERR_NOMEM;
}

static void read_agent_entry(struct agents_load *s, size_t i,
                             const struct json *v)
{
    const struct card_opts opts = {.dialect = CARD_CONFIG,
                                   .rights = CARD_MAY_ALL,
                                   .is_part = s->defaults != NULL,
                                   .currency = s->l->c->ledger.currency};
    struct value_pos at = s->at;
    struct card_problems problems;
    struct arena scratch;
    char path[64];
    enum err e;

    snprintf(path, sizeof(path), "agents.list[%zu]", i);
    at.at = v->at;
    arena_init(&scratch, TREE_BYTES);
    e = card_read(s->defaults ? &scratch : agent_arena(s, &scratch), v, &opts,
                  &s->list[i], &problems);
    if (e && e != ERR_NOMEM) {
        report_card_problems(s->l, at, path, &problems, true);
    } else if (!e && s->defaults) {
        e = read_merged_entry(s, &scratch, v, &s->list[i], &problems);
        if (e && e != ERR_NOMEM)
            report_card_problems(s->l, at, path, &problems, false);
    }
    if (e == ERR_NOMEM)
        report_agents_full(s->l, at, path);
    else if (!e && s->has_transports)
        load_transport(s->l,
                       &(struct entry){.v = v,
                                       .defaults = s->defaults,
                                       .at = at,
                                       .defaults_at = s->defaults_at,
                                       .i = i},
                       &s->list[i]);
    arena_fini(&scratch);
}

static struct str entry_id(const struct json *v)
{
    struct str id = json_str_or(json_get(v, STR("id")), STR(""));

    return agent_name_is_valid(id) ? id : STR("");
}

void load_line(const struct load *l, struct value_pos at, size_t offset,
               char out[32])
{
    unsigned line, col;

    out[0] = '\0';
    if (!at.has_line)
        return;
    json_where(l->report.text, offset, &line, &col);
    snprintf(out, 32, " in line %u", line);
}

/* No two agents have one name. There are a thousand at most, so each is simply
 * compared with those before it. */
static void check_unique_ids(struct agents_load *s, const struct json *list)
{
    struct value_pos at = s->at;
    size_t i = 0;

    JSON_EACH(mine, list)
    {
        const struct json *other = list->kids.first;
        struct str id = entry_id(mine);
        size_t k = 0;
        char line[32];

        while (k < i && !(id.n && str_eq_nocase(id, entry_id(other)))) {
            other = other->next;
            k++;
        }
        if (k < i) {
            load_line(s->l, at, json_get(other, STR("id"))->at, line);
            at.at = json_get(mine, STR("id"))->at;
            report_error(&s->l->report, at,
                         "agents.list[%zu].id is %s, and that of "
                         "agents.list[%zu]%s is %s; they must differ in more "
                         "than case",
                         i, quote(id).text, k, line,
                         quote(entry_id(other)).text);
        }
        i++;
    }
}

void load_agents(struct load *l)
{
    const struct setting *row =
        setting_find(&config_settings, STR("agents.list"));
    const struct json *v = l->deferred[row - config_settings.rows];
    struct agents_load s = {.l = l,
                            .at = l->where[row - config_settings.rows],
                            .defaults = read_agent_defaults(l),
                            .defaults_at = load_where(l, "agents.defaults")};
    unsigned n_errors = l->report.out->n_errors;
    size_t i = 0;

    l->has_bad_agents = true;
    if (!v) /* has been reported */
        return;
    if (v->kids.n > CONFIG_AGENTS_MAX) {
        report_error(&l->report, s.at,
                     "agents.list may have up to %d elements, not %zu",
                     CONFIG_AGENTS_MAX, v->kids.n);
        return;
    }
    s.list = arena_array(&l->c->arena, v->kids.n, sizeof(*s.list));
    if (!s.list) {
        report_no_memory(&l->report, s.at);
        return;
    }
    s.has_transports =
        load_transports_begin(l, s.defaults, s.defaults_at, v->kids.n);
    JSON_EACH(kid, v)
    {
        read_agent_entry(&s, i++, kid);
    }
    check_unique_ids(&s, v);
    l->has_bad_agents = l->report.out->n_errors > n_errors;
    load_default(l, v, s.at);
    if (l->has_bad_agents)
        return; /* some are read in part */
    l->c->agents.list = s.list;
    l->c->agents.n = i;
    load_transports_end(l);
}

/* The types of the two settings. */

static bool cards_is_same(const struct setting *s, const void *a, const void *b)
{
    struct setting_list x = setting_list_get(a), y = setting_list_get(b);
    bool is_same = x.n == y.n;

    (void)s;
    for (size_t i = 0; is_same && i < x.n; i++) {
        struct json_out o;
        struct buf names;

        buf_init(&names, 4096);
        o = json_out(&names);
        card_diff(&o, (const struct agent *)x.list + i,
                  (const struct agent *)y.list + i);
        is_same = str_eq(buf_str(&names), STR("[]"));
        buf_fini(&names);
    }
    return is_same;
}

static void cards_write(const struct setting *s, struct json_out *o,
                        const void *field)
{
    struct setting_list l = setting_list_get(field);

    (void)s;
    json_open(o, '[');
    for (size_t i = 0; i < l.n; i++)
        card_write(o, (const struct agent *)l.list + i, CARD_SETTING);
    json_close(o, ']');
}

static void cards_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_addf(out, "a list of up to %d objects, each with an \"id\"",
             CONFIG_AGENTS_MAX);
}

const struct setting_type type_cards = {
    .is_same = cards_is_same,
    .write = cards_write,
    .allowed = cards_allowed,
    .json = JSON_ARR,
};

/* The defaults are part of every entry by now, so they are never compared or
 * written: written again, they would undo a null in an entry. */

static bool defaults_is_same(const struct setting *s, const void *a,
                             const void *b)
{
    (void)s, (void)a, (void)b;
    return true;
}

static void defaults_write(const struct setting *s, struct json_out *o,
                           const void *field)
{
    (void)s, (void)field;
    json_open(o, '{');
    json_close(o, '}');
}

static void defaults_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_add_str(out, STR("an object with members of an agent of "
                         "agents.list, except \"id\""));
}

const struct setting_type type_defaults = {
    .is_same = defaults_is_same,
    .write = defaults_write,
    .allowed = defaults_allowed,
    .json = JSON_OBJ,
};
