/* What the gate answered, as it is said: in the answer to an envelope, to
 * whoever only asks, and in the feed, which the channels follow. The first ten
 * members are those of the routing decision that agents know, in their order;
 * whatever is ours follows. */
#include "speak/internal.h"

#include "base/rfc3339.h"

/* To the second; zero: null. */
static void put_moment(struct json_out *o, struct str key, int64_t ms)
{
    char text[RFC3339_BYTES];

    if (ms)
        put_str(o, key, rfc3339_write(ms - ms % 1000, text));
    else
        put_str_or_null(o, key, STR(""));
}

static void put_keys(struct json_out *o, const struct pass *p)
{
    struct buf key;

    buf_init(&key, 1024);
    json_key(o, STR("waits_for"));
    json_open(o, '[');
    for (size_t i = 0; i < p->n_keys; i++) {
        buf_clear(&key);
        wait_key_write(&p->keys[i], &key);
        json_put_str(o, buf_str(&key));
    }
    json_close(o, ']');
    buf_fini(&key);
}

void speak_pass(struct json_out *o, const struct speak_passed *s)
{
    const struct pass *p = s->pass;
    struct str to = s->envelope->to;

    put_str(o, STR("message_id"), s->message_id);
    put_str(o, STR("original_from"), s->envelope->from);
    put_str(o, STR("original_to"), s->original_to.n ? s->original_to : to);
    put_str(o, STR("routing_decision"), gate_answer_name(p->answer));
    put_str(o, STR("target"), s->target.n ? s->target : to);
    put_str(o, STR("reason"), str_of(p->reason));
    put_moment(o, STR("timestamp"), s->at_ms);
    put_str_or_null(o, STR("sla"), str_of(p->sla));
    json_key(o, STR("logged"));
    json_put_bool(o, s->is_logged);
    put_str_or_null(o, STR("posted_to_channel"), p->channel);

    put_str_or_null(o, STR("rule"), p->rule);
    put_moment(o, STR("held_until"), p->held_until_ms);
    put_str(o, STR("priority"), task_priority_name(p->priority));
    put_keys(o, p);
    put_str_or_null(o, STR("repeats"), p->repeats);
    put_str_or_null(o, STR("task_id"), s->task_id);
    put_str_or_null(o, STR("escalation_id"), s->escalation_id);
    put_str_or_null(o, STR("status"), s->status);
    put_str(o, STR("type"), s->envelope->type);
    put_str_or_null(o, STR("reference"), s->envelope->reference);
}
