/* Who answers where, and who answers where nobody else does: bindings,
 * agents.default, and `default` in agents.list.
 *
 * All of them name agents, which may come from another source than they do; so
 * they are kept as they were written until agents.list was read, and what is
 * wrong is said with the line that it stands in.
 *
 * A binding to an agent that is in no list is an error: messages from there
 * would go to somebody else without a word. A default that is in no list is
 * only warned of: it may register itself, and until then messages are refused
 * as they would be without it. */
#include <stdio.h>

#include "config/internal.h"

/* The rows. */

static void complain_quotes(const struct setting *s, const struct json *v,
                            struct why *why)
{
    if (v->type == JSON_INT)
        why_err(why, ERR_BAD_CONFIG,
                "%s must be a text, not a number: write \"%lld\", with quotes",
                s->path, (long long)v->i);
}

#define TEXT \
    .type = &type_text, .complain = complain_quotes, .max = SOURCE_STRING_MAX

static const struct setting role_row = {"", TEXT, .min = 1};
static const struct setting_table role_table = {&role_row, 1};
static const struct setting_elements role_elements = {
    .table = &role_table,
    .bytes = sizeof(struct str),
    .max = SOURCE_ROLES_MAX,
    .is_plain = true,
};

#define AT(field) .offset = offsetof(struct binding, field)

static const struct setting binding_rows[] = {
    {"agentId", AT(agent), .type = &type_name,
     .what = "Who answers: one of `agents.list`."},
    {"match.channel", AT(channel), TEXT, .min = 1,
     .what = "`telegram`, `discord`, or whatever else messages say they come "
             "from; case does not count."},
    {"match.accountId", AT(account_id), TEXT, .preset = "\"\"",
     .what = "The account there that was written to; case does not count. "
             "Empty or `*`: any."},
    {"match.peer.kind", AT(peer.kind), TEXT, .preset = "\"\"",
     .what = "`direct` (or `dm`), `group` or `channel` (which count as the "
             "same), `thread`, or whatever else messages say. Needed where "
             "there is an id."},
    {"match.peer.id", AT(peer.id), TEXT, .preset = "\"\"",
     .what = "Who or where it was said, or what that is a thread of. `*`: any "
             "of the kind."},
    {"match.guildId", AT(guild_id), TEXT, .preset = "\"\"",
     .what = "The guild (the server) on Discord."},
    {"match.teamId", AT(team_id), TEXT, .preset = "\"\"",
     .what = "The team (the workspace) on Slack and the like."},
    {"match.roles", AT(roles), .type = &type_list, .preset = "[]",
     .elements = &role_elements, .what = "Who wrote has one of these roles."},
};

#undef AT

static const struct setting_table binding_table = {
    binding_rows, sizeof(binding_rows) / sizeof(binding_rows[0])};

const struct setting_elements binding_elements = {
    .table = &binding_table,
    .bytes = sizeof(struct binding),
    .max = BINDINGS_MAX,
};

_Static_assert(sizeof(struct bindings) == sizeof(struct setting_list),
               "a list like the others");

/* As a setting: like every list, but read at the end. */

static bool is_same(const struct setting *s, const void *a, const void *b)
{
    return type_list.is_same(s, a, b);
}

static void write(const struct setting *s, struct json_out *o,
                  const void *field)
{
    type_list.write(s, o, field);
}

static void allowed(const struct setting *s, struct buf *out)
{
    buf_addf(out,
             "a list of up to %zu objects like {\"agentId\": \"ops\", "
             "\"match\": {\"channel\": \"telegram\"}}",
             s->elements->max);
}

const struct setting_type type_bindings = {
    .is_same = is_same,
    .write = write,
    .allowed = allowed,
    .json = JSON_ARR,
};

/* Names. */

static const struct agent *find(const struct config *c, struct str name)
{
    for (size_t i = 0; i < c->agents.n; i++)
        if (str_eq_nocase(c->agents.list[i].name, name))
            return &c->agents.list[i];
    return NULL;
}

/* "; did you mean "code"?", or what else helps. */
struct hint {
    char text[AGENT_NAME_MAX + 32];
};

static struct hint hint_at(const struct load *l, struct str name)
{
    struct str_guess g = str_guess(name);
    struct hint h = {""};

    if (report_is_full(&l->report))
        return h;
    for (size_t i = 0; i < l->c->agents.n; i++)
        str_guess_offer(&g, l->c->agents.list[i].name,
                        str_distance(name, l->c->agents.list[i].name));
    if (g.name.n)
        snprintf(h.text, sizeof(h.text), "; did you mean \"%.*s\"?",
                 STR_ARG(g.name));
    return h;
}

/* Bindings. */

static void check_agent(struct load *l, struct place at, size_t i,
                        struct binding *b)
{
    const struct agent *a = find(l->c, b->agent);

    if (a)
        b->agent = a->name; /* as it is written there */
    else if (!l->has_bad_agents)
        report_error(&l->report, at,
                     "bindings[%zu].agentId is %s, and agents.list has nobody "
                     "of that name%s",
                     i, quote(b->agent).text, hint_at(l, b->agent).text);
}

/* Kinds are the senders' words, so that an unknown one is none of our business,
 * but for one that is nearly a usual one. */
static void check_kind(struct load *l, struct place at, size_t i,
                       struct str kind)
{
    static const char *const usual[] = {"direct", "dm", "group", "channel",
                                        "thread"};
    struct str_guess g = str_guess(kind);

    for (size_t k = 0; k < sizeof(usual) / sizeof(usual[0]); k++)
        str_guess_offer(&g, str_of(usual[k]),
                        str_distance(kind, str_of(usual[k])));
    if (g.name.n && g.distance)
        report_warning(&l->report, at,
                       "bindings[%zu].match.peer.kind is %s; did you mean "
                       "\"%.*s\"?",
                       i, quote(kind).text, STR_ARG(g.name));
}

static void check_peer(struct load *l, struct place at, size_t i,
                       const struct binding *b)
{
    if (b->peer.id.n && !b->peer.kind.n)
        report_error(&l->report, at,
                     "bindings[%zu].match.peer has no \"kind\": write "
                     "\"direct\", \"group\" or what else messages from there "
                     "say",
                     i);
    else if (b->peer.kind.n && !b->peer.id.n)
        report_error(&l->report, at,
                     "bindings[%zu].match.peer has no \"id\"; \"*\" is any "
                     "%.*s",
                     i, STR_ARG(str_head(b->peer.kind, QUOTED_MAX)));
    else if (b->peer.kind.n)
        check_kind(l, at, i, b->peer.kind);
}

static void read_binding(struct load *l, struct place at, size_t i,
                         const struct json *v, struct binding *out)
{
    unsigned n_errors = l->report.out->n_errors;
    char inside[32];

    snprintf(inside, sizeof(inside), "bindings[%zu]", i);
    at.at = at.key_at = v->at;
    at.inside = str_of(inside);
    load_object(l, &binding_table, out, at, v);
    at.inside = (struct str){0};
    if (l->report.out->n_errors > n_errors)
        return;
    check_agent(l, at, i, out);
    check_peer(l, at, i, out);
}

static void read_bindings(struct load *l)
{
    const struct setting *row = setting_find(&config_settings, STR("bindings"));
    const struct json *v = l->later[row - config_settings.rows];
    struct place at = l->where[row - config_settings.rows];
    struct binding *list;
    size_t i = 0;

    if (!v) /* that was said */
        return;
    if (v->kids.n > BINDINGS_MAX) {
        report_error(&l->report, at,
                     "bindings may have up to %d elements, not %zu",
                     BINDINGS_MAX, v->kids.n);
        return;
    }
    list = arena_array(&l->c->arena, v->kids.n + 1, sizeof(*list));
    if (!list) {
        report_no_memory(&l->report, at);
        return;
    }
    JSON_EACH(kid, v)
    {
        read_binding(l, at, i, kid, &list[i]);
        i++;
    }
    l->c->bindings = (struct bindings){list, i};
}

/* The default. */

/* Two sources may differ, and the later one's word counts; within one they may
 * not. */
static void take_default(struct load *l, struct str id, size_t i,
                         struct place at)
{
    const char *setting = "agents.default";
    struct place other = load_where(l, setting);
    char *copy;

    if (other.from > at.from)
        return;
    if (other.from == at.from && l->c->default_agent.n &&
        !str_eq_nocase(l->c->default_agent, id)) {
        report_error(&l->report, at,
                     "agents.list[%zu].default is true, and agents.default is "
                     "\"%.*s\"; there is one default, keep one of the two",
                     i, STR_ARG(l->c->default_agent));
        return;
    }
    copy = arena_strdup(&l->c->arena, id);
    if (copy)
        l->c->default_agent = (struct str){copy, id.n};
    else
        report_no_memory(&l->report, at);
}

void load_default(struct load *l, const struct json *list, struct place at)
{
    const struct json *first = NULL;
    size_t i = 0, first_i = 0;
    char line[32];

    JSON_EACH(kid, list)
    {
        const struct json *v = json_get(kid, STR("default"));
        struct str id = json_str_or(json_get(kid, STR("id")), STR(""));

        at.at = v ? v->at : kid->at;
        if (v && v->type != JSON_BOOL && v->type != JSON_NULL) {
            report_error(&l->report, at,
                         "agents.list[%zu].default must be true or false, not "
                         "%s",
                         i, value_words(v).text);
        } else if (v && v->b && first) {
            load_line(l, at, first->at, line);
            report_error(&l->report, at,
                         "agents.list[%zu].default is true, and so is that of "
                         "agents.list[%zu]%s; there is one default",
                         i, first_i, line);
        } else if (v && v->b && id.n) {
            take_default(l, id, i, at);
            first = v;
            first_i = i;
        }
        i++;
    }
}

static void check_default(struct load *l)
{
    struct str *name = &l->c->default_agent;
    const struct agent *a = find(l->c, *name);

    if (a)
        *name = a->name;
    else if (name->n && !l->has_bad_agents && !l->report.out->n_errors)
        report_warning(&l->report, load_where(l, "agents.default"),
                       "agents.default is %s, and agents.list has nobody of "
                       "that name%s%s",
                       quote(*name).text, hint_at(l, *name).text,
                       hint_at(l, *name).text[0]
                           ? ""
                           : ": until one registers, what nobody else is "
                             "chosen for is refused");
}

void load_bindings(struct load *l)
{
    read_bindings(l);
    check_default(l);
}
