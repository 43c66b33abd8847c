/* What the feed is told of a change: who did what to an agent. `by` and its
 * creator may see it (whoever it was taken from, if the configuration took
 * it), and admins. That it happened is for whoever sees the agent; that one is
 * gone, which nobody sees any more, for everybody if it was public. */
#include "base/fault.h"
#include "base/json.h"
#include "registry/internal.h"
#include "watch/watch.h"

static void put_grant(struct json_out *o, const struct agent_grant *g)
{
    json_member_text(o, "grant_id", str_of(g->id.text));
    json_key(o, g->user.n ? STR("user") : STR("org"));
    json_put_str(o, g->user.n ? g->user : g->org);
    json_member_ms(o, "expires_ms", g->expires_ms);
}

static void put_data(struct json_out *o, const struct telling *t)
{
    json_open(o, '{');
    json_member_str(o, "by", t->by);
    json_member_int(o, "revision", t->entry->agent.revision);
    if (t->before) {
        json_key(o, STR("changed"));
        card_diff(o, &t->before->agent, &t->entry->agent);
    }
    if (t->grant)
        put_grant(o, t->grant);
    json_close(o, '}');
}

static bool is_for_seers(const struct telling *t)
{
    return !t->grant && (strcmp(t->type, "agent.removed") != 0 ||
                         t->entry->agent.visibility == VISIBILITY_PUBLIC);
}

void tell_feed(struct tx *tx, const struct telling *t)
{
    struct str creator = t->entry->agent.creator;
    struct json_out o;
    struct buf data;

    if (!creator.n && t->before)
        creator = t->before->agent.creator;
    buf_init(&data, 4096);
    o = json_out(&data);
    put_data(&o, t);
    if (data.over || FAULT("registry.feed"))
        tx->build_error = ERR_NOMEM;
    else
        feed_append(tx, &(struct feed_entry){.at_ms = t->at_ms,
                                             .type = str_of(t->type),
                                             .agent = t->entry->agent.name,
                                             .requester = t->by,
                                             .root_user = creator,
                                             .is_for_seers = is_for_seers(t),
                                             .data = buf_str(&data)});
    buf_fini(&data);
}
