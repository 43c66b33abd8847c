/* The origin of a message, read from its `source`.
 *
 * Scanned, not parsed: the object may be large, is read each time the layers
 * run, and most of its members are not ours. Platforms differ on whether an id
 * is a number or a string, so an integer is taken as it is written; null means
 * not given. */
#include "base/json.h"
#include "choose/layers/internal.h"

struct field {
    const char *name; /* in error messages */
    struct str raw;
    struct str *to;
    bool is_id; /* an integer is accepted */
};

static bool is_json_given(struct str raw)
{
    return raw.n && !str_eq(raw, STR("null"));
}

static enum err source_read_field(struct arena *a, const struct field *f,
                                  struct why *why)
{
    int64_t ignored;

    *f->to = (struct str){0};
    if (!is_json_given(f->raw))
        return OK;
    if (f->is_id && (f->raw.p[0] == '-' || str_is_digits(f->raw)) &&
        str_to_i64(f->raw, &ignored) == OK) {
        *f->to = f->raw;
        return OK;
    }
    if (f->raw.p[0] != '"')
        return why_err(why, ERR_BAD_REQUEST, "source.%s must be a string",
                       f->name);
    /* Escapes make a string up to six times as long as its value. */
    if (f->raw.n > 2 + 6 * SOURCE_STRING_MAX)
        goto too_long;
    if (!json_unquote(a, f->raw, f->to))
        return ERR_NOMEM;
    if (f->to->n <= SOURCE_STRING_MAX)
        return OK;
too_long:
    return why_err(why, ERR_BAD_REQUEST, "source.%s is longer than %d bytes",
                   f->name, SOURCE_STRING_MAX);
}

struct peer_names {
    const char *object, *kind, *id;
};

static enum err source_read_peer(struct arena *a, struct str raw,
                                 const struct peer_names *names,
                                 struct source_peer *out, struct why *why)
{
    static const struct str keys[] = {STR("kind"), STR("id")};
    struct str values[2];
    enum err e;

    if (!is_json_given(raw))
        return OK;
    if (raw.p[0] != '{')
        return why_err(why, ERR_BAD_REQUEST, "source.%s must be an object",
                       names->object);
    e = json_scan(raw, keys, 2, values, NULL);
    for (size_t i = 0; !e && i < 2; i++)
        e = source_read_field(a,
                              &(struct field){i ? names->id : names->kind,
                                              values[i],
                                              i ? &out->id : &out->kind, i > 0},
                              why);
    return e;
}

static enum err source_read_roles(struct arena *a, struct str raw,
                                  struct strs *out, struct why *why)
{
    struct str rest = raw, v, *list;
    size_t n = 0, i = 0;
    enum err e = OK;

    if (!is_json_given(raw))
        return OK;
    if (raw.p[0] != '[')
        return why_err(why, ERR_BAD_REQUEST, "source.roles must be a list");
    while (n <= SOURCE_ROLES_MAX && json_next(&rest, &v))
        n++;
    if (n > SOURCE_ROLES_MAX)
        return why_err(why, ERR_BAD_REQUEST,
                       "source.roles may hold no more than %d",
                       SOURCE_ROLES_MAX);
    list = arena_array(a, n ? n : 1, sizeof(*list));
    if (!list)
        return ERR_NOMEM;
    rest = raw;
    while (!e && i < n && json_next(&rest, &v))
        e = source_read_field(
            a, &(struct field){"roles[]", v, &list[i++], true}, why);
    *out = (struct strs){list, n};
    return e;
}

enum {
    KEY_CHANNEL,
    KEY_ACCOUNT,
    KEY_PEER,
    KEY_PARENT,
    KEY_GUILD,
    KEY_TEAM,
    KEY_ROLES,
    N_KEYS
};

static const struct str members[N_KEYS] = {
    [KEY_CHANNEL] = STR("channel"), [KEY_ACCOUNT] = STR("accountId"),
    [KEY_PEER] = STR("peer"),       [KEY_PARENT] = STR("parentPeer"),
    [KEY_GUILD] = STR("guildId"),   [KEY_TEAM] = STR("teamId"),
    [KEY_ROLES] = STR("roles"),
};

enum err choose_source_read(struct arena *a, struct str json,
                            struct source *out, struct why *why)
{
    static const struct peer_names peer = {"peer", "peer.kind", "peer.id"};
    static const struct peer_names parent = {"parentPeer", "parentPeer.kind",
                                             "parentPeer.id"};
    struct str raw[N_KEYS];
    enum err e;

    *out = (struct source){0};
    if (!json.n)
        return OK;
    e = json_scan(json, members, N_KEYS, raw, NULL);
    if (e)
        return e == ERR_NOMEM ? e
                              : why_err(why, ERR_BAD_REQUEST,
                                        "source must be a JSON object");
    {
        const struct field plain[] = {
            {"channel", raw[KEY_CHANNEL], &out->channel, false},
            {"accountId", raw[KEY_ACCOUNT], &out->account_id, true},
            {"guildId", raw[KEY_GUILD], &out->guild_id, true},
            {"teamId", raw[KEY_TEAM], &out->team_id, true},
        };

        for (size_t i = 0; !e && i < sizeof(plain) / sizeof(plain[0]); i++)
            e = source_read_field(a, &plain[i], why);
    }
    if (!e)
        e = source_read_peer(a, raw[KEY_PEER], &peer, &out->peer, why);
    if (!e)
        e = source_read_peer(a, raw[KEY_PARENT], &parent, &out->parent, why);
    if (!e)
        e = source_read_roles(a, raw[KEY_ROLES], &out->roles, why);
    if (e)
        *out = (struct source){0};
    return e;
}
