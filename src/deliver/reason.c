/* Why an agent is DEAD, in ERROR or SLOW, in words, and when its connection
 * went.
 *
 * Departures are kept apart from the queues: an agent that was never given
 * work has none, and a note is a tenth of one. A note goes with its agent, so
 * registering and removing agents does not fill the table. A start forgets all
 * notes.
 *
 * Without a note the agent has not connected since the start, unless a note was
 * lost: beyond LEFT_MAX, or without memory, none is taken. From then on an
 * agent without a note is just not connected. */
#include <stdlib.h>

#include "base/rfc3339.h"
#include "deliver/desk.h"

enum { LEFT_WORDS = 64 };

struct left {
    struct list_node node; /* in deliver.lefts */
    int64_t at_ms;         /* Unix time */
    char because[LEFT_WORDS];
    size_t n;
    char name[]; /* lower case */
};

static struct str left_name(const struct left *l)
{
    return (struct str){l->name, l->n};
}

static struct left *left_find(const struct deliver *d, struct str agent)
{
    char name[AGENT_NAME_MAX];

    return map_get(&d->left, str_lowered(agent, name, AGENT_NAME_MAX));
}

static struct left *left_new(struct deliver *d, struct str agent)
{
    struct left *l =
        FAULT("deliver.left") ? NULL : calloc(1, sizeof(*l) + agent.n + 1);

    if (!l)
        return NULL;
    l->n = str_lowered(agent, l->name, AGENT_NAME_MAX).n;
    if (map_put(&d->left, left_name(l), l) != OK) {
        free(l);
        return NULL;
    }
    list_append(&d->lefts, &l->node);
    return l;
}

/* A connection may outlive its agent. */
void left_note(struct deliver *d, struct str agent, struct str because)
{
    struct left *l = left_find(d, agent);

    if (!d->opts.agent_of(d->opts.ctx, agent)) {
        left_forget(d, agent);
        return;
    }
    if (!l)
        l = left_new(d, agent);
    if (!l) {
        d->has_lost_left = true;
        return;
    }
    l->at_ms = loop_wall_ms(d->opts.loop);
    because = str_head(because, LEFT_WORDS - 1);
    if (because.n)
        memcpy(l->because, because.p, because.n);
    l->because[str_tame(l->because, because.n)] = '\0';
}

void left_forget(struct deliver *d, struct str agent)
{
    struct left *l = left_find(d, agent);

    if (!l)
        return;
    map_take(&d->left, left_name(l));
    list_remove(&l->node);
    free(l);
}

void lefts_look(struct deliver *d, size_t most)
{
    for (; most && d->n_lefts_to_look_at; most--, d->n_lefts_to_look_at--) {
        struct list_node *n = list_pop(&d->lefts);
        struct left *l = n ? LIST_OF(n, struct left, node) : NULL;

        if (!l)
            continue; /* it was forgotten meanwhile */
        list_append(&d->lefts, n);
        if (!d->opts.agent_of(d->opts.ctx, left_name(l)))
            left_forget(d, left_name(l));
    }
}

void lefts_free(struct deliver *d)
{
    struct list_node *n;

    while ((n = list_pop(&d->lefts)))
        free(LIST_OF(n, struct left, node));
    map_fini(&d->left);
}

/* A note from before the agent was made is another's of its name. The cause may
 * tell about the owner's token, role or org: it is for the owner. */
void left_say(const struct deliver *d, const struct agent *a, bool has_details,
              struct why *out)
{
    const struct left *l = left_find(d, a->name);
    const char *because = l && has_details ? l->because : "";
    char at[RFC3339_BYTES];

    if (!l && d->has_lost_left)
        why_err(out, OK, "it is not connected");
    else if (!l || l->at_ms < a->created_ms)
        why_err(out, OK, "it has not connected since the server started");
    else
        why_err(out, OK, "not connected since %.*s%s%s",
                STR_ARG(rfc3339_write(l->at_ms, at)), *because ? ": " : "",
                because);
}

/* The address that wakes an agent is private in its card, and the words of a
 * failed request name it: they are for the owner. */
static void say_dead(const struct deliver *d, const struct agent *a,
                     bool has_details, struct why *out)
{
    const struct road_row *road;
    struct agent_url url;

    if (agent_url_read(a->url, &url, out) != OK)
        return;
    road = road_of(&url);
    if (road == &road_line && a->wake.url.n && !has_details)
        why_err(out, OK, "it was woken several times and did not connect");
    else if (road->is_dead)
        (void)!road->is_dead(d, a, &url, has_details, out);
    else if (road->reaches && road->reaches(d, a, &url, out) == OK)
        out->text[0] = '\0';
}

/* The cause of a failure is shown to the owner alone, as the figures are. */
static void say_error(const struct desk *k, bool has_details, struct why *out)
{
    const char *words = has_details && k->error ? k->error->words : "";

    if (k->n_failures > 1)
        why_err(out, OK, "its last %d attempts failed%s%s", k->n_failures,
                *words ? "; the last error: " : "", words);
    else
        why_err(out, OK, "its last attempt failed%s%s", *words ? ": " : "",
                words);
}

void deliver_state_reason(const struct deliver *d, const struct agent *a,
                          bool has_details, struct why *out)
{
    const struct desk *k = desk_find(d, a->name);
    enum agent_state s = deliver_state(d, a);

    out->text[0] = '\0';
    if (s == AGENT_DEAD)
        say_dead(d, a, has_details, out);
    else if (k && (s == AGENT_ERROR || s == AGENT_SLOW) &&
             desk_derived(d, a, k) != s)
        why_err(out, OK, "the agent reports this state itself");
    else if (k && s == AGENT_ERROR)
        say_error(k, has_details, out);
    else if (k && s == AGENT_SLOW)
        why_err(out, OK,
                "its last answers took %lld ms (median), those of its week "
                "%lld ms",
                (long long)desk_last_median(k),
                (long long)desk_usual(k, loop_mono_ms(d->opts.loop)));
}
