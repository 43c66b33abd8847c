/* The answer of the gate as JSON: in the answer to an envelope, to a dry run,
 * and in the feed, which the channels follow. The first ten members are those
 * of the routing decision that agents know, in their order; our own follow. */
#include "speak/internal.h"

#include "base/rfc3339.h"

/* With a resolution of seconds; null for zero. */
static void gate_put_moment(struct json_out *o, const char *key, int64_t ms)
{
    char text[RFC3339_BYTES];

    if (ms)
        json_member_text(o, key, rfc3339_write(ms - ms % 1000, text));
    else
        json_member_null(o, key);
}

void speak_pass(struct json_out *o, const struct speak_passed *s)
{
    const struct gate_result *p = s->gate_result;
    struct str to = s->envelope->to;
    struct buf key;

    json_member_text(o, "message_id", s->message_id);
    json_member_text(o, "original_from", s->envelope->from);
    json_member_text(o, "original_to", s->original_to.n ? s->original_to : to);
    json_member_text(o, "routing_decision", gate_answer_name(p->answer));
    json_member_text(o, "target", s->target.n ? s->target : to);
    json_member_text(o, "reason", str_of(p->reason));
    gate_put_moment(o, "timestamp", s->at_ms);
    json_member_str(o, "sla", str_of(p->sla));
    json_member_bool(o, "logged", s->is_logged);
    json_member_str(o, "posted_to_channel", p->channel);

    json_member_str(o, "rule", p->rule);
    gate_put_moment(o, "held_until", p->held_until_ms);
    json_member_text(o, "priority", task_priority_name(p->priority));
    json_key(o, STR("waits_for"));
    json_open(o, '[');
    buf_init(&key, 1024);
    for (size_t i = 0; i < p->n_keys; i++) {
        buf_clear(&key);
        wait_key_write(&p->keys[i], &key);
        json_put_str(o, buf_str(&key));
    }
    buf_fini(&key);
    json_close(o, ']');
    json_member_str(o, "repeats", p->repeats);
    json_member_str(o, "task_id", s->task_id);
    json_member_str(o, "escalation_id", s->escalation_id);
    json_member_str(o, "status", s->status);
    json_member_text(o, "type", s->envelope->type);
    json_member_str(o, "reference", s->envelope->reference);
    json_member_bool(o, "stale", p->is_stale);
    json_key(o, STR("warnings"));
    json_open(o, '[');
    if (p->warning[0])
        json_put_str(o, str_of(p->warning));
    json_close(o, ']');
}
