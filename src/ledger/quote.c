/* Quotes: prices that were shown and hold for a while.
 *
 * A table of fixed size, in sets of WAYS slots. A user's quotes are in one set
 * and fill at most half of it, so a user who requests quotes in a loop evicts
 * only their own. A message that names an evicted quote, or one that a restart
 * lost, is rejected. */
#include <stdlib.h>

#include "base/fault.h"
#include "base/map.h"
#include "ledger/internal.h"

enum { WAYS = 2 * LEDGER_QUOTES_OF_USER, SETS = LEDGER_QUOTES_MAX / WAYS };

struct quote {
    struct id id; /* empty: a free slot */
    int64_t until_ms, micros;
    char user[PRINCIPAL_NAME_MAX + 1];
    char agent[AGENT_NAME_MAX + 1];
    char skill[MSG_SKILL_MAX + 1];
    char creator[PRINCIPAL_NAME_MAX + 1];
    int64_t created_ms; /* of the agent: detects a reused name */
};

struct ledger_quotes {
    struct quote list[SETS * WAYS];
};

struct ledger_quotes *ledger_quotes_new(void)
{
    return FAULT("ledger.quotes") ? NULL
                                  : calloc(1, sizeof(struct ledger_quotes));
}

void ledger_quotes_free(struct ledger_quotes *q)
{
    free(q);
}

static struct quote *quote_set(struct ledger_quotes *q, struct str user)
{
    static const uint64_t seed[2] = {0x71756f7465, 1};

    return &q->list[hash_bytes(user, seed) % SETS * WAYS];
}

/* A free slot, else the oldest: the user's own oldest, if they have
 * LEDGER_QUOTES_OF_USER. */
static struct quote *quote_slot(struct quote *set, struct str user)
{
    struct quote *oldest = NULL, *own = NULL;
    size_t n = 0;

    for (size_t i = 0; i < WAYS; i++) {
        struct quote *q = &set[i];
        bool is_own = q->id.text[0] && str_eq(str_of(q->user), user);

        n += is_own;
        if (!oldest || q->until_ms < oldest->until_ms)
            oldest = q;
        if (is_own && (!own || q->until_ms < own->until_ms))
            own = q;
    }
    return n >= LEDGER_QUOTES_OF_USER ? own : oldest;
}

static bool quote_copy(struct str s, char *out, size_t room)
{
    if (s.n >= room)
        return false;
    if (s.n)
        memcpy(out, s.p, s.n);
    out[s.n] = '\0';
    return true;
}

int64_t ledger_quotes_add(struct ledger_quotes *table, const struct msg *m,
                          const struct agent *chosen)
{
    struct str user = caller_name(&m->in.caller);
    struct quote q = {.id = m->choice.id,
                      .until_ms = m->in.at_ms + LEDGER_QUOTE_MS,
                      .micros = m->ledger.price_micros,
                      .created_ms = chosen->created_ms};

    if (!q.id.text[0] || !quote_copy(user, q.user, sizeof(q.user)) ||
        !quote_copy(chosen->name, q.agent, sizeof(q.agent)) ||
        !quote_copy(m->ledger.skill, q.skill, sizeof(q.skill)) ||
        !quote_copy(chosen->creator, q.creator, sizeof(q.creator)))
        return 0;
    *quote_slot(quote_set(table, user), user) = q;
    return q.until_ms;
}

static const struct quote *quote_find(struct ledger_quotes *table,
                                      const struct msg *m)
{
    struct str user = caller_name(&m->in.caller);
    struct quote *set = quote_set(table, user);

    for (size_t i = 0; i < WAYS; i++)
        if (str_eq(str_of(set[i].id.text), m->call.quote) &&
            str_eq(str_of(set[i].user), user) && m->in.at_ms < set[i].until_ms)
            return &set[i];
    return NULL;
}

static enum err quote_conflict(struct msg *m, const struct quote *q,
                               const char *field, struct str given)
{
    return why_err(&m->why, ERR_BAD_REQUEST,
                   "%s is \"%.*s\", and the quote is for %s%s%s: leave it out, "
                   "or ask POST /api/route again",
                   field, STR_ARG(str_head(given, 64)), q->agent,
                   q->skill[0] ? " with the skill " : "", q->skill);
}

enum err ledger_quotes_take(struct ledger_quotes *table, struct msg *m)
{
    const struct quote *q = quote_find(table, m);

    if (!q)
        return why_err(&m->why, ERR_QUOTE,
                       "the quote %.*s is unknown or has expired: each of your "
                       "quotes holds for %d minutes; ask POST /api/route again",
                       STR_ARG(m->call.quote), LEDGER_QUOTE_MS / 60000);
    if (m->call.executor.n &&
        !str_eq_nocase(m->call.executor, str_of(q->agent)))
        return quote_conflict(m, q, "executor.name", m->call.executor);
    if (m->call.skill.n && !str_eq(m->call.skill, str_of(q->skill)))
        return quote_conflict(m, q, "skill", m->call.skill);
    m->ledger.quote.is_given = true;
    m->ledger.quote.micros = q->micros;
    m->ledger.quote.created_ms = q->created_ms;
    return arena_keep(&m->arena, str_of(q->agent), &m->call.executor) &&
                   arena_keep(&m->arena, str_of(q->skill), &m->call.skill) &&
                   arena_keep(&m->arena, str_of(q->creator),
                              &m->ledger.quote.creator)
               ? OK
               : ERR_NOMEM;
}

enum err ledger_keep_quote(struct msg *m, const struct agent *chosen)
{
    if (!m->ledger.quote.is_given)
        return OK;
    if (!str_eq(m->ledger.quote.creator, chosen->creator) ||
        m->ledger.quote.created_ms != chosen->created_ms)
        return why_err(&m->why, ERR_QUOTE,
                       "the agent of the quote was removed, and its name is "
                       "another's; ask POST /api/route again");
    if (m->ledger.price_micros > m->ledger.quote.micros &&
        !PLANTED("ledger.no_quotes"))
        m->ledger.price_micros = m->ledger.quote.micros;
    return OK;
}
