/* Bindings and the default agent: bindings, agents.default, and `default` in
 * agents.list.
 *
 * All of them name agents, which may come from another source. So they are kept
 * as JSON until agents.list has been read, and problems are reported with their
 * line.
 *
 * A binding to an agent that is not in the list is an error: messages from its
 * source would silently go to another agent. A default that is not in the list
 * is only a warning: it may register, and until then messages are rejected as
 * they would be without a default. */
#include <stdio.h>

#include "server/config/internal.h"

/* The rows. */

static void setting_complain_quotes(const struct setting *s,
                                    const struct json *v, struct why *why)
{
    if (v->type == JSON_INT)
        why_err(why, ERR_BAD_CONFIG,
                "%s must be a text, not a number: write \"%lld\", with quotes",
                s->path, (long long)v->i);
}

#define TEXT                                                 \
    .type = &type_text, .complain = setting_complain_quotes, \
    .max = SOURCE_STRING_MAX

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
     .what = "The agent that answers, one of `agents.list`."},
    {"match.channel", AT(channel), TEXT, .min = 1,
     .what = "The channel that messages give as their source, such as "
             "`telegram` or `discord`; case is ignored."},
    {"match.accountId", AT(account_id), TEXT, .preset = "\"\"",
     .what = "The account that received the message; case is ignored. Empty "
             "or `*`: any."},
    {"match.peer.kind", AT(peer.kind), TEXT, .preset = "\"\"",
     .what = "`direct` (or `dm`), `group` or `channel` (treated as the "
             "same), `thread`, or any other kind that messages give. Required "
             "with an id."},
    {"match.peer.id", AT(peer.id), TEXT, .preset = "\"\"",
     .what = "The person, group or channel of the message, or the parent of "
             "its thread. `*`: any of the kind."},
    {"match.guildId", AT(guild_id), TEXT, .preset = "\"\"",
     .what = "The guild (server) on Discord."},
    {"match.teamId", AT(team_id), TEXT, .preset = "\"\"",
     .what = "The team (workspace) on Slack and similar services."},
    {"match.roles", AT(roles), .type = &type_list, .preset = "[]",
     .elements = &role_elements,
     .what = "Roles; the sender must have one of them."},
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
               "the field of a list");

static void bindings_allowed(const struct setting *s, struct buf *out)
{
    buf_addf(out,
             "a list of up to %zu objects like {\"agentId\": \"ops\", "
             "\"match\": {\"channel\": \"telegram\"}}",
             s->elements->max);
}

/* A list that is read at the end. */
const struct setting_type type_bindings = {
    .is_same = setting_list_is_same,
    .write = setting_list_write,
    .allowed = bindings_allowed,
    .json = JSON_ARR,
};

/* Names. */

static const struct agent *config_agent_find(const struct config *c,
                                             struct str name)
{
    for (size_t i = 0; i < c->agents.n; i++)
        if (str_eq_nocase(c->agents.list[i].name, name))
            return &c->agents.list[i];
    return NULL;
}

/* "; did you mean "code"?", or empty. */
struct hint {
    char text[AGENT_NAME_MAX + 32];
};

static struct hint agent_hint(const struct load *l, struct str name)
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

static void check_binding_agent(struct load *l, struct value_pos at, size_t i,
                                struct binding *b)
{
    const struct agent *a = config_agent_find(l->c, b->agent);

    if (a)
        b->agent = a->name; /* with the case of the list */
    else if (!l->has_bad_agents)
        report_error(
            &l->report, at,
            "bindings[%zu].agentId is %s, and agents.list has no agent "
            "of that name%s",
            i, quote(b->agent).text, agent_hint(l, b->agent).text);
}

/* Senders choose the kinds, so an unknown one is accepted; one that looks like
 * a misspelled usual kind gets a warning. */
static void check_peer_kind(struct load *l, struct value_pos at, size_t i,
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

static void check_peer(struct load *l, struct value_pos at, size_t i,
                       const struct binding *b)
{
    if (b->peer.id.n && !b->peer.kind.n)
        report_error(&l->report, at,
                     "bindings[%zu].match.peer has no \"kind\": write "
                     "\"direct\", \"group\" or the kind that these messages "
                     "give",
                     i);
    else if (b->peer.kind.n && !b->peer.id.n)
        report_error(&l->report, at,
                     "bindings[%zu].match.peer has no \"id\"; \"*\" is any "
                     "%.*s",
                     i, STR_ARG(str_head(b->peer.kind, QUOTED_MAX)));
    else if (b->peer.kind.n)
        check_peer_kind(l, at, i, b->peer.kind);
}

static void read_binding(struct load *l, struct value_pos at, size_t i,
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
    check_binding_agent(l, at, i, out);
    check_peer(l, at, i, out);
}

static void read_bindings(struct load *l)
{
    const struct setting *row = setting_find(&config_settings, STR("bindings"));
    const struct json *v = l->deferred[row - config_settings.rows];
    struct value_pos at = l->where[row - config_settings.rows];
    struct binding *list;
    size_t i = 0;

    if (!v) /* has been reported */
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

/* The later source decides; within one source there may be only one default. */
static void set_default_agent(struct load *l, struct str id, size_t i,
                              struct value_pos at)
{
    const char *setting = "agents.default";
    struct value_pos other = load_where(l, setting);

    if (other.from > at.from)
        return;
    if (other.from == at.from && l->c->default_agent.n &&
        !str_eq_nocase(l->c->default_agent, id)) {
        report_error(&l->report, at,
                     "agents.list[%zu].default is true, and agents.default is "
                     "\"%.*s\"; there can be only one default, so keep one of "
                     "the two",
                     i, STR_ARG(l->c->default_agent));
        return;
    }
    load_keep(l, at, id, &l->c->default_agent);
}

void load_default(struct load *l, const struct json *list, struct value_pos at)
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
                         "agents.list[%zu]%s; there can be only one default",
                         i, first_i, line);
        } else if (v && v->b && id.n) {
            set_default_agent(l, id, i, at);
            first = v;
            first_i = i;
        }
        i++;
    }
}

static void check_default(struct load *l)
{
    struct str *name = &l->c->default_agent;
    const struct agent *a = config_agent_find(l->c, *name);
    struct hint hint = agent_hint(l, *name);

    if (a)
        *name = a->name;
    else if (name->n && !l->has_bad_agents && !l->report.out->n_errors)
        report_warning(&l->report, load_where(l, "agents.default"),
                       "agents.default is %s, and agents.list has no agent of "
                       "that name%s",
                       quote(*name).text,
                       hint.text[0] ? hint.text
                                    : ": until one registers, a message that "
                                      "would go to it is rejected");
}

void load_bindings(struct load *l)
{
    read_bindings(l);
    check_default(l);
}
