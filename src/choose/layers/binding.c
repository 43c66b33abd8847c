/* Bindings: the origin of the message decides.
 *
 * All fields of a binding must fit. Among those that fit, the most specific
 * wins; among equally specific ones, the first in the file. This is OpenClaw's
 * matching with one difference: a binding without an account fits any account.
 *
 * A binding that names a missing agent is an error and does not fall through to
 * the next layer: its author did not want the message to go elsewhere. The
 * error message names the binding by its index and not by its agent, which the
 * sender may not be allowed to know. If the agent is the sender itself, the
 * binding is already fulfilled, and the next layer is asked.
 *
 * The list is scanned from the front. Ten thousand bindings take some tens of
 * microseconds, so there is no index that could disagree with the list. */
#include "choose/layers/internal.h"

/* Most specific first. */
enum fit {
    FIT_PEER = 1,
    FIT_PARENT,
    FIT_KIND, /* any peer of a kind */
    FIT_GUILD_ROLES,
    FIT_GUILD,
    FIT_TEAM,
    FIT_ACCOUNT,
    FIT_CHANNEL,
    FIT_NONE, /* does not fit */
};

static bool is_wildcard(struct str s)
{
    return str_eq(s, STR("*"));
}

/* Synonyms of a kind have one name. */
static struct str peer_kind(struct str kind)
{
    if (str_eq_nocase(kind, STR("channel")))
        return STR("group");
    return str_eq_nocase(kind, STR("dm")) ? STR("direct") : kind;
}

static bool fits_kind(const struct source_peer *want,
                      const struct source_peer *p)
{
    return !want->kind.n ||
           str_eq_nocase(peer_kind(want->kind), peer_kind(p->kind));
}

static bool is_peer(const struct source_peer *want, const struct source_peer *p)
{
    return want->id.n && str_eq(want->id, p->id) && fits_kind(want, p);
}

/* FIT_PEER, FIT_PARENT, FIT_KIND; FIT_NONE: the binding is for another peer. */
static enum fit fit_of_peer(const struct source_peer *want,
                            const struct source *s)
{
    if (want->id.n && !is_wildcard(want->id)) {
        if (is_peer(want, &s->peer))
            return FIT_PEER;
        return is_peer(want, &s->parent) ? FIT_PARENT : FIT_NONE;
    }
    return s->peer.id.n + s->peer.kind.n > 0 && fits_kind(want, &s->peer)
               ? FIT_KIND
               : FIT_NONE;
}

/* An empty role matches nothing. */
static bool has_role(struct strs want, struct strs roles)
{
    for (size_t i = 0; i < want.n; i++)
        for (size_t k = 0; k < roles.n; k++)
            if (roles.list[k].n && str_eq(want.list[i], roles.list[k]))
                return true;
    return false;
}

static bool is_given_account(struct str account)
{
    return account.n && !is_wildcard(account);
}

static bool binding_fits(const struct binding *b, const struct source *s)
{
    return b->channel.n && str_eq_nocase(b->channel, s->channel) &&
           (!is_given_account(b->account_id) ||
            str_eq_nocase(b->account_id, s->account_id)) &&
           (!b->guild_id.n || str_eq(b->guild_id, s->guild_id)) &&
           (!b->team_id.n || str_eq(b->team_id, s->team_id)) &&
           (!b->roles.n || has_role(b->roles, s->roles));
}

/* The peer is compared first: it excludes the most bindings. */
static enum fit binding_fit(const struct binding *b, const struct source *s)
{
    enum fit peer = FIT_NONE;

    if (b->peer.id.n + b->peer.kind.n > 0) {
        peer = fit_of_peer(&b->peer, s);
        return peer == FIT_NONE || binding_fits(b, s) ? peer : FIT_NONE;
    }
    if (!binding_fits(b, s))
        return FIT_NONE;
    if (b->guild_id.n)
        return b->roles.n ? FIT_GUILD_ROLES : FIT_GUILD;
    if (b->team_id.n)
        return FIT_TEAM;
    return is_given_account(b->account_id) ? FIT_ACCOUNT : FIT_CHANNEL;
}

/* For the reason: the scope of a binding with that fit. */
static const char *const fit_words[] = {
    [FIT_PEER] = "this peer",
    [FIT_PARENT] = "the parent of this peer",
    [FIT_KIND] = "peers of this kind",
    [FIT_GUILD_ROLES] = "this guild and role",
    [FIT_GUILD] = "this guild",
    [FIT_TEAM] = "this team",
    [FIT_ACCOUNT] = "this account",
    [FIT_CHANNEL] = "this channel",
};

static int64_t best_binding(const struct bindings *b, const struct source *s,
                            enum fit *fit)
{
    int64_t found = -1;

    *fit = FIT_NONE;
    for (size_t i = 0; i<b->n && * fit> FIT_PEER; i++) {
        enum fit t = binding_fit(&b->list[i], s);

        if (t >= *fit)
            continue;
        *fit = t;
        found = (int64_t)i;
    }
    return found;
}

int64_t choose_binding(const struct bindings *b, const struct source *s)
{
    enum fit fit;

    return best_binding(b, s, &fit);
}

enum err choose_by_binding(const struct choose_view *v, struct msg *m)
{
    const struct bindings *b = &v->settings->bindings;
    const struct agent *a;
    struct source s;
    enum fit fit;
    int64_t i;
    enum err e;

    if (!m->call.source.n)
        return ERR_NO_ROUTE;
    e = choose_source_read(&m->arena, m->call.source, &s, &m->why);
    if (e)
        return e;
    i = best_binding(b, &s, &fit);
    if (i < 0)
        return ERR_NO_ROUTE;
    a = choose_meant(v, b->list[i].agent);
    if (!a)
        return why_err(&m->why, ERR_AGENT_NOT_FOUND,
                       "the binding for where this message came from "
                       "(bindings[%lld]) names an agent that is not there",
                       (long long)i);
    if (choose_is_self(v, a))
        return ERR_NO_ROUTE;
    return choose_take(m, a, "bindings[%lld] names it for %s", (long long)i,
                       fit_words[fit]);
}
