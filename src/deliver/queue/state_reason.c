/* Why an agent is DEAD, in ERROR or SLOW, in words, and when its connection
 * went.
 *
 * Departures are kept apart from the queues: an agent that was never given
 * work has none, and a note is a tenth of one. A note goes with its agent, so
 * registering and removing agents does not fill the table. A start forgets all
 * notes.
 *
 * Without a note the agent has not connected since the start, unless a note was
 * lost: beyond DEPARTURES_MAX none is taken. From then on an agent without a
 * note is just not connected. */
#include <stdlib.h>

#include "base/rfc3339.h"
#include "deliver/queue/agent_queue.h"

enum { DEPARTURE_TEXT = 64 };

struct departure {
    struct list_node node; /* deliver.departure_list */
    int64_t at_ms;         /* Unix time */
    char because[DEPARTURE_TEXT];
    size_t n;
    char name[]; /* lower case */
};

static struct str departure_name(const struct departure *l)
{
    return (struct str){l->name, l->n};
}

static struct departure *departure_find(const struct deliver *d,
                                        struct str agent)
{
    char name[AGENT_NAME_MAX];

    return map_get(&d->departures, str_lowered(agent, name, AGENT_NAME_MAX));
}

static struct departure *departure_new(struct deliver *d, struct str agent)
{
    struct departure *l = mem_new(sizeof(*l) + agent.n + 1);

    l->n = str_lowered(agent, l->name, AGENT_NAME_MAX).n;
    if (map_put(&d->departures, departure_name(l), l) != OK) {
        free(l);
        return NULL;
    }
    list_append(&d->departure_list, &l->node);
    return l;
}

/* A connection may outlive its agent. */
void departure_note(struct deliver *d, struct str agent, struct str because)
{
    struct departure *l = departure_find(d, agent);

    if (!d->opts.agent_of(d->opts.ctx, agent)) {
        departure_forget(d, agent);
        return;
    }
    if (!l)
        l = departure_new(d, agent);
    if (!l) {
        d->has_lost_departure = true;
        return;
    }
    l->at_ms = loop_wall_ms(d->opts.loop);
    because = str_head(because, DEPARTURE_TEXT - 1);
    if (because.n)
        memcpy(l->because, because.p, because.n);
    l->because[str_tame(l->because, because.n)] = '\0';
}

void departure_forget(struct deliver *d, struct str agent)
{
    struct departure *l = departure_find(d, agent);

    if (!l)
        return;
    map_take(&d->departures, departure_name(l));
    list_remove(&l->node);
    free(l);
}

void departures_look(struct deliver *d, size_t most)
{
    for (; most && d->n_departures_to_look_at;
         most--, d->n_departures_to_look_at--) {
        struct list_node *n = list_pop(&d->departure_list);
        struct departure *l = n ? LIST_OF(n, struct departure, node) : NULL;

        if (!l)
            continue; /* it was forgotten meanwhile */
        list_append(&d->departure_list, n);
        if (!d->opts.agent_of(d->opts.ctx, departure_name(l)))
            departure_forget(d, departure_name(l));
    }
}

void departures_free(struct deliver *d)
{
    struct list_node *n;

    while ((n = list_pop(&d->departure_list)))
        free(LIST_OF(n, struct departure, node));
    map_fini(&d->departures);
}

/* A note from before the agent was made is another's of its name. The cause may
 * tell about the owner's token, role or org: it is for the owner. */
void departure_describe(const struct deliver *d, const struct agent *a,
                        bool has_details, struct why *out)
{
    const struct departure *l = departure_find(d, a->name);
    const char *because = l && has_details ? l->because : "";
    char at[RFC3339_BYTES];

    if (!l && d->has_lost_departure)
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
static void state_reason_dead(const struct deliver *d, const struct agent *a,
                              bool has_details, struct why *out)
{
    const struct transport_row *transport;
    struct agent_url url;

    if (agent_url_read(a->url, &url, out) != OK)
        return;
    transport = transport_of(&url);
    if (transport == &transport_line && a->wake.url.n && !has_details)
        why_err(out, OK, "it was woken several times and did not connect");
    else if (transport->is_dead)
        (void)!transport->is_dead(d, a, &url, has_details, out);
    else if (transport->reaches && transport->reaches(d, a, &url, out) == OK)
        out->text[0] = '\0';
}

/* The cause of a failure is shown to the owner alone, as the figures are. */
static void state_reason_error(const struct agent_queue *k, bool has_details,
                               struct why *out)
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
    const struct agent_queue *k = agent_queue_find(d, a->name);
    enum agent_state s = deliver_state(d, a);

    out->text[0] = '\0';
    if (s == AGENT_DEAD)
        state_reason_dead(d, a, has_details, out);
    else if (k && (s == AGENT_ERROR || s == AGENT_SLOW) &&
             agent_queue_derived(d, a, k) != s)
        why_err(out, OK, "the agent reports this state itself");
    else if (k && s == AGENT_ERROR)
        state_reason_error(k, has_details, out);
    else if (k && s == AGENT_SLOW)
        why_err(out, OK,
                "its last answers took %lld ms (median), those of its week "
                "%lld ms",
                (long long)agent_queue_last_median(k),
                (long long)agent_queue_usual(k, loop_mono_ms(d->opts.loop)));
}
