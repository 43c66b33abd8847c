/* Tasks, their turns, conversations and feed entries as JSON. Stored documents
 * are written verbatim. */
#include "speak/internal.h"

static void task_put_document(struct json_out *o, const char *key,
                              struct str raw)
{
    json_member_raw(o, key, raw.n ? raw : STR("{}"));
}

/* Left out for agents without a price, which are most of them. */
static void task_put_price(struct json_out *o, int64_t micros)
{
    if (micros)
        json_member_int(o, "price_micros", micros);
}

void put_task_error(struct json_out *o, struct str code, struct str message)
{
    json_key(o, STR("error"));
    if (!code.n) {
        json_put_null(o);
        return;
    }
    json_open(o, '{');
    json_member_text(o, "code", code);
    json_member_text(o, "message", message);
    json_close(o, '}');
}

static void task_put_result(struct json_out *o, const struct task_result *r)
{
    json_key(o, STR("result"));
    json_open(o, '{');
    json_member_text(o, "status", task_status_name(r->status));
    json_member_text(o, "text", r->text);
    task_put_document(o, "metadata", r->metadata);
    put_task_error(o, r->error_code, r->error);
    json_close(o, '}');
}

void speak_result(struct json_out *o, const struct task *t)
{
    static const struct task_result none;
    bool is_over = task_is_over(t->status);
    const struct task_result *r = is_over ? &t->result : &none;

    json_member_text(o, "message_id", str_of(t->message_id.text));
    json_member_text(o, "task_id", str_of(t->id.text));
    json_member_text(o, "conversation_id", t->conversation_id);
    json_member_text(o, "status", task_status_name(task_shown(t)));
    json_member_text(o, "agent", t->agent);
    json_key(o, STR("text"));
    if (is_over)
        json_put_str(o, r->text);
    else
        json_put_null(o);
    task_put_document(o, "metadata", r->metadata);
    json_member_int(o, "turn", t->turn);
    task_put_price(o, t->price_micros);
    put_task_error(o, r->error_code, r->error);
}

void speak_answer(struct json_out *o, const struct task *t, struct str decision)
{
    speak_result(o, t);
    json_member_raw(o, "decision", decision.n ? decision : STR("null"));
}

void speak_task(struct json_out *o, const struct task *t)
{
    json_member_text(o, "id", str_of(t->id.text));
    json_member_text(o, "message_id", str_of(t->message_id.text));
    json_member_text(o, "conversation_id", t->conversation_id);
    json_member_text(o, "requester", t->requester);
    json_member_text(o, "root_user", t->root_user);
    json_member_text(o, "agent", t->agent);
    json_member_str(o, "skill", t->skill);
    json_member_text(o, "priority", task_priority_name(t->priority));
    json_member_text(o, "status", task_status_name(task_shown(t)));
    json_member_int(o, "turn", t->turn);
    json_member_int(o, "attempt", t->attempt);
    json_member_text(o, "text", t->text);
    task_put_document(o, "metadata", t->metadata);
    task_put_document(o, "source", t->source);
    json_member_int(o, "created_ms", t->created_ms);
    json_member_int(o, "updated_ms", t->updated_ms);
    json_member_int(o, "deadline_ms", t->deadline_ms);
    json_member_known(o, "finished_ms", task_is_over(t->status),
                      t->finished_ms);
    json_member_str(o, "parent_task_id", t->parent_id);
    json_member_int(o, "depth", t->depth);
    task_put_price(o, t->price_micros);
    json_member_str(o, "by_agent", t->by_agent);
    json_member_str(o, "root_task_id", t->root_id);
    json_member_raw(o, "chain", t->chain.n ? t->chain : STR("[]"));
    if (task_is_over(t->status))
        task_put_result(o, &t->result);
    else
        json_member_null(o, "result");
}

void speak_turn(struct json_out *o, const struct task *t, int64_t began_ms)
{
    json_open(o, '{');
    json_member_int(o, "turn", t->turn);
    json_member_text(o, "message_id", str_of(t->message_id.text));
    json_member_text(o, "text", t->text);
    task_put_document(o, "metadata", t->metadata);
    json_member_text(o, "status", task_status_name(t->status));
    json_member_int(o, "began_ms", began_ms);
    json_member_int(o, "finished_ms", t->finished_ms);
    task_put_price(o, t->price_micros);
    task_put_result(o, &t->result);
    json_close(o, '}');
}

void speak_list_open(struct json_out *o)
{
    json_open(o, '{');
    json_key(o, STR("items"));
    json_open(o, '[');
}

void speak_list_close(struct json_out *o, struct str next_cursor)
{
    json_close(o, ']');
    json_member_str(o, "next_cursor", next_cursor);
    json_close(o, '}');
}

void speak_conversation(struct json_out *o, struct str id, struct str agent,
                        int64_t created_ms, int64_t used_ms)
{
    json_open(o, '{');
    json_member_text(o, "id", id);
    json_member_text(o, "agent", agent);
    json_member_int(o, "created_ms", created_ms);
    json_member_int(o, "used_ms", used_ms);
    json_close(o, '}');
}

void speak_entry(struct json_out *o, const struct feed_entry *e)
{
    json_open(o, '{');
    json_member_int(o, "seq", e->seq);
    json_member_int(o, "at_ms", e->at_ms);
    json_member_text(o, "type", e->type);
    json_member_str(o, "task_id", e->task_id);
    json_member_str(o, "conversation_id", e->conversation_id);
    json_member_str(o, "agent", e->agent);
    json_member_str(o, "requester", e->requester);
    json_member_str(o, "root_user", e->root_user);
    task_put_document(o, "data", e->data);
    json_close(o, '}');
}

void speak_feed_gap(struct json_out *o, int64_t after, int64_t newest)
{
    json_open(o, '{');
    json_member_int(o, "after", after);
    json_member_int(o, "newest", newest);
    json_close(o, '}');
}
