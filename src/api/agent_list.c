/* The list of agents that the caller may see. A page ends when it has enough
 * agents or bytes, or when enough agents were looked at in vain, because the
 * loop is blocked meanwhile. */
#include "api/internal.h"

enum {
    DESCRIPTION_BYTES = 200, /* of a brief item */
};

struct filter {
    struct str tag, org, creator; /* NULL: any */
    struct str q;                 /* part of a name or title; empty: any */
    bool is_brief;                /* the form of the items */
    enum agent_kind kind;         /* zero: any */
    enum visibility visibility;
    enum agent_state state;
    enum review_state review;
    bool is_reported;
};

static struct filter agent_filter(const struct call *c)
{
    struct str review = call_arg(c, "review");

    return (struct filter){.tag = call_arg(c, "tag"),
                           .org = call_arg(c, "org"),
                           .creator = call_arg(c, "creator"),
                           .q = call_arg(c, "q"),
                           .is_brief = call_yes(c, "brief"),
                           .kind = agent_kind_of(call_arg(c, "kind")),
                           .visibility =
                               visibility_of(call_arg(c, "visibility")),
                           .state = agent_state_of(call_arg(c, "state")),
                           .review = review_of(review),
                           .is_reported = str_eq(review, STR("reported"))};
}

/* Ignores the case of ASCII letters only. */
static bool str_has_part(struct str s, struct str part)
{
    char first = str_lower(part.p[0]);

    for (size_t i = 0; i + part.n <= s.n; i++)
        if (str_lower(s.p[i]) == first &&
            str_eq_nocase(str_sub(s, i, i + part.n), part))
            return true;
    return false;
}

static bool agent_counts_tag(const struct agent *a, struct str tag,
                             size_t *n_looks)
{
    for (size_t i = 0; i < a->n_skills; i++)
        for (size_t k = 0; k < a->skills[i].tags.n; k++) {
            ++*n_looks;
            if (str_eq_nocase(a->skills[i].tags.list[k], tag))
                return true;
        }
    return false;
}

/* A waiting card is visible to its creator and admins, reports only to admins:
 * for others no agent has any. */
static bool agent_passes_review(const struct api *c, const struct filter *f,
                                const struct agent *a, const struct eyes *eyes)
{
    if (f->is_reported)
        return eyes->sees_all && registry_n_reports(c->registry, a);
    return !f->review || (a->review && a->review->state == f->review &&
                          agent_is_owned(a, eyes));
}

static bool agent_passes_filter(const struct api *c, const struct filter *f,
                                const struct agent *a, const struct eyes *eyes,
                                size_t *n_looks)
{
    return agent_passes_review(c, f, a, eyes) &&
           (!f->kind || a->kind == f->kind) &&
           (!f->visibility || a->visibility == f->visibility) &&
           (!f->org.p || str_eq(a->org, f->org)) &&
           (!f->creator.p || str_eq_nocase(a->creator, f->creator)) &&
           (!f->q.n || str_has_part(a->name, f->q) ||
            str_has_part(a->title, f->q)) &&
           (!f->tag.p || agent_counts_tag(a, f->tag, n_looks)) &&
           (!f->state || registry_state(c->registry, a) == f->state);
}

/* The index of the first name after the cursor. */
static size_t agents_after_cursor(const struct agents *all, struct str cursor)
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

/* The short form: a card may have a megabyte. */
static void agent_write_brief(struct api *c, struct json_out *out,
                              const struct agent *a, const struct eyes *eyes)
{
    const struct deliver *d = walk_deliver(c->walk);
    struct why reason;
    struct speak_brief b = {
        .agent = a,
        .description = str_head(a->description, DESCRIPTION_BYTES),
        .state = registry_state(c->registry, a),
        .is_paused = deliver_is_paused(d, a->name),
        .shows_review = agent_is_owned(a, eyes),
        .n_reports = eyes->sees_all ? registry_n_reports(c->registry, a) : 0,
    };

    deliver_state_reason(d, a, agent_is_owned(a, eyes), &reason);
    b.state_reason = str_of(reason.text);
    speak_agent_brief(out, &b);
}

/* There is a next page only if it has another agent that the caller may see:
 * others leave no trace, and do not count as looked at. */
static void agent_write_list(struct call *c, const struct filter *f,
                             size_t limit, struct str cursor)
{
    struct agents all = registry_agents(c->api->registry);
    struct eyes eyes = call_eyes(c);
    struct json_out out = json_out(c->body);
    struct str last = {NULL, 0};
    bool has_more = false;
    size_t n = 0, n_looks = 0;

    speak_list_open(&out);
    for (size_t i = cursor.p ? agents_after_cursor(&all, cursor) : 0; i < all.n;
         i++) {
        const struct agent *a = all.list[i];
        bool is_wanted;

        if (!agent_is_visible(a, &eyes))
            continue;
        has_more = n_looks++ >= PAGE_LOOKS;
        is_wanted =
            !has_more && agent_passes_filter(c->api, f, a, &eyes, &n_looks);
        has_more |= is_wanted && (n == limit || c->body->n > PAGE_BYTES);
        if (has_more)
            break;
        last = a->name;
        if (!is_wanted)
            continue;
        if (f->is_brief)
            agent_write_brief(c->api, &out, a, &eyes);
        else
            write_agent(c->api, &out, a, &eyes, NULL, NULL);
        n++;
    }
    speak_list_close(&out, has_more ? last : STR(""));
}

void call_agents_list(struct call *c)
{
    struct str cursor = call_arg(c, "cursor");
    struct filter f = agent_filter(c);

    if (cursor.p && !agent_name_is_valid(cursor)) {
        call_bad_request(c, "cursor must be a next_cursor of this list");
        return;
    }
    agent_write_list(c, &f, call_limit(c), cursor);
    call_answer_json(c, 200);
}
