/* Feed entries of changes. The caller, the creator (or the previous creator, if
 * the configuration took the agent over) and admins may see the details. Users
 * who see the agent see that it happened; of a removed agent, which is no
 * longer visible, all users see it if it was public. Reviews are for the
 * creator and admins, reports for admins. */
#include "base/json.h"
#include "registry/internal.h"
#include "watch/watch.h"

static bool feed_is_for_viewers(const struct feed_event *t)
{
    return !t->grant && !t->is_private && !t->is_for_admins &&
           (strcmp(t->type, "agent.removed") != 0 ||
            t->entry->agent.visibility == VISIBILITY_PUBLIC);
}

void registry_tell_feed(struct tx *tx, const struct feed_event *t)
{
    struct str creator = t->entry->agent.creator;
    struct json_out o;
    struct buf data;

    if (!creator.n && t->before)
        creator = t->before->agent.creator;
    if (t->is_for_admins)
        creator = STR("");
    buf_init(&data, 4096);
    o = json_out(&data);
    json_open(&o, '{');
    json_member_str(&o, "by", t->by);
    json_member_int(&o, "revision", t->entry->agent.revision);
    if (t->before) {
        json_key(&o, STR("changed"));
        card_diff(&o, &t->before->agent, &t->entry->agent);
    }
    if (t->has_wanted) {
        struct agent wanted = agent_wanted(&t->entry->agent);

        json_key(&o, STR("wanted"));
        card_diff(&o, &t->entry->agent, &wanted);
    }
    if (t->reason.n)
        json_member_str(&o, "reason", t->reason);
    if (t->grant) {
        json_member_text(&o, "grant_id", str_of(t->grant->id.text));
        json_key(&o, t->grant->user.n ? STR("user") : STR("org"));
        json_put_str(&o, t->grant->user.n ? t->grant->user : t->grant->org);
        json_member_ms(&o, "expires_ms", t->grant->expires_ms);
    }
    json_close(&o, '}');
    feed_append_data(
        tx, &data,
        &(struct feed_entry){.at_ms = t->at_ms,
                             .type = str_of(t->type),
                             .agent = t->entry->agent.name,
                             .requester = t->by,
                             .root_user = creator,
                             .is_for_seers = feed_is_for_viewers(t)});
}
