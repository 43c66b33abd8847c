/* The list of agents: who there is, as far as the caller may see. A page is at
 * an end when it has enough of them, when it is long enough, or when enough was
 * looked at in vain: everybody else waits meanwhile. */
#include "calls/internal.h"

enum {
    DESCRIPTION_BYTES = 200, /* of a brief one */
    Q_MAX = 128,
};

struct filter {
    struct str tag, org, creator; /* a NULL pointer: any */
    struct str q;                 /* part of a name or title; empty: any */
    bool is_brief;                /* how they are shown */
    enum agent_kind kind;         /* zero: any */
    enum visibility visibility;
    enum agent_state state;
};

/* Refuses an argument that is given and none of the words it may be. */
static bool is_word(struct call *c, const char *arg, bool is_known,
                    const char *words)
{
    struct why why;

    if (is_known || !call_arg(c, arg).p)
        return true;
    why_err(&why, ERR_BAD_REQUEST, "%s must be %s", arg, words);
    call_refuse(c, ERR_BAD_REQUEST, str_of(why.text));
    return false;
}

static bool read_filter(struct call *c, struct filter *f)
{
    *f = (struct filter){.tag = call_arg(c, "tag"),
                         .org = call_arg(c, "org"),
                         .creator = call_arg(c, "creator"),
                         .q = call_arg(c, "q"),
                         .is_brief = str_eq(call_arg(c, "brief"), STR("true")),
                         .kind = agent_kind_of(call_arg(c, "kind")),
                         .visibility = visibility_of(call_arg(c, "visibility")),
                         .state = agent_state_of(call_arg(c, "state"))};
    if (f->q.n > Q_MAX) {
        call_refuse(c, ERR_BAD_REQUEST, STR("q may have up to 128 bytes"));
        return false;
    }
    return is_word(c, "brief",
                   f->is_brief || str_eq(call_arg(c, "brief"), STR("false")),
                   "\"true\" or \"false\"") &&
           is_word(c, "kind", f->kind,
                   "\"platform\", \"managed\" or \"self-hosted\"") &&
           is_word(c, "visibility", f->visibility,
                   "\"public\", \"shared\" or \"private\"") &&
           is_word(c, "state", f->state,
                   "\"ACTIVE\", \"IDLE\", \"BUSY\", \"SLOW\", \"ERROR\" or "
                   "\"DEAD\"");
}

/* Letters of ASCII whatever their case; others as they are written. */
static bool has_part(struct str s, struct str part)
{
    char first = str_lower(part.p[0]);

    for (size_t i = 0; i + part.n <= s.n; i++)
        if (str_lower(s.p[i]) == first &&
            str_eq_nocase(str_sub(s, i, i + part.n), part))
            return true;
    return false;
}

static bool has_tag(const struct agent *a, struct str tag, size_t *n_looks)
{
    for (size_t i = 0; i < a->n_skills; i++)
        for (size_t k = 0; k < a->skills[i].tags.n; k++) {
            ++*n_looks;
            if (str_eq_nocase(a->skills[i].tags.list[k], tag))
                return true;
        }
    return false;
}

static bool passes(const struct calls *c, const struct filter *f,
                   const struct agent *a, size_t *n_looks)
{
    return (!f->kind || a->kind == f->kind) &&
           (!f->visibility || a->visibility == f->visibility) &&
           (!f->org.p || str_eq(a->org, f->org)) &&
           (!f->creator.p || str_eq_nocase(a->creator, f->creator)) &&
           (!f->q.n || has_part(a->name, f->q) || has_part(a->title, f->q)) &&
           (!f->tag.p || has_tag(a, f->tag, n_looks)) &&
           (!f->state || registry_state(c->registry, a) == f->state);
}

/* The place of the first whose name is behind the cursor. */
static size_t behind(const struct agents *all, struct str cursor)
{
    size_t from = 0, to = all->n;

    while (from < to) {
        size_t mid = from + (to - from) / 2;

        if (str_cmp_nocase(all->list[mid]->name, cursor) <= 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* What a list of many needs of each: a card may have a megabyte. */
static void write_brief(struct calls *c, struct json_out *out,
                        const struct agent *a, const struct eyes *eyes)
{
    const struct deliver *d = walk_deliver(c->walk);
    struct why reason;
    struct speak_brief b = {
        .agent = a,
        .description = str_head(a->description, DESCRIPTION_BYTES),
        .state = registry_state(c->registry, a),
        .is_paused = deliver_is_paused(d, a->name),
    };

    deliver_state_reason(d, a, agent_is_owned(a, eyes), &reason);
    b.state_reason = str_of(reason.text);
    speak_agent_brief(out, &b);
}

/* There is a next page only if there is another that they may see: what they
 * may not see leaves no trace, and does not count as looked at. */
static void write_list(struct call *c, const struct filter *f, size_t limit,
                       struct str cursor)
{
    struct agents all = registry_agents(c->calls->registry);
    struct eyes eyes = call_eyes(c);
    struct json_out out = json_out(c->body);
    struct str last = {NULL, 0};
    bool has_more = false;
    size_t n = 0, n_looks = 0;

    speak_list_open(&out);
    for (size_t i = cursor.p ? behind(&all, cursor) : 0; i < all.n; i++) {
        const struct agent *a = all.list[i];
        bool is_wanted;

        if (!agent_is_visible(a, &eyes))
            continue;
        has_more = n_looks++ >= PAGE_LOOKS;
        is_wanted = !has_more && passes(c->calls, f, a, &n_looks);
        has_more |= is_wanted && (n == limit || c->body->n > PAGE_BYTES);
        if (has_more)
            break;
        last = a->name;
        if (!is_wanted)
            continue;
        if (f->is_brief)
            write_brief(c->calls, &out, a, &eyes);
        else
            write_agent(c->calls, &out, a, &eyes, NULL, NULL);
        n++;
    }
    speak_list_close(&out, has_more ? last : STR(""));
    buf_add_char(c->body, '\n');
}

void call_agents_list(struct call *c)
{
    struct str cursor = call_arg(c, "cursor");
    struct filter f;
    size_t limit;

    if (!call_limit(c, &limit) || !read_filter(c, &f))
        return;
    if (cursor.p && !agent_name_is_valid(cursor)) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("cursor must be a next_cursor of this list"));
        return;
    }
    write_list(c, &f, limit, cursor);
    call_answer(c, 200, SPEAK_JSON);
}
