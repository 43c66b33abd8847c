/* Tasks, their turns, and what stands around them, as JSON. Documents that
 * were kept as they stand are said as they stand. */
#include "speak/internal.h"

static void put_int(struct json_out *o, struct str key, int64_t v)
{
    json_key(o, key);
    json_put_int(o, v);
}

static void put_document(struct json_out *o, struct str key, struct str raw)
{
    json_key(o, key);
    json_put_raw(o, raw.n ? raw : STR("{}"));
}

/* Where there is one: most agents cost nothing, and then nothing is said. */
static void put_price(struct json_out *o, int64_t micros)
{
    if (micros)
        put_int(o, STR("price_micros"), micros);
}

static void put_error(struct json_out *o, const struct task_result *r)
{
    json_key(o, STR("error"));
    if (!r->error_code.n) {
        json_put_null(o);
        return;
    }
    json_open(o, '{');
    put_str(o, STR("code"), r->error_code);
    put_str(o, STR("message"), r->error);
    json_close(o, '}');
}

static void put_result(struct json_out *o, const struct task_result *r)
{
    json_key(o, STR("result"));
    json_open(o, '{');
    put_str(o, STR("status"), task_status_name(r->status));
    put_str(o, STR("text"), r->text);
    put_document(o, STR("metadata"), r->metadata);
    put_error(o, r);
    json_close(o, '}');
}

void speak_result(struct json_out *o, const struct task *t)
{
    static const struct task_result none;
    bool is_over = task_is_over(t->status);
    const struct task_result *r = is_over ? &t->result : &none;

    put_str(o, STR("message_id"), str_of(t->message_id.text));
    put_str(o, STR("task_id"), str_of(t->id.text));
    put_str(o, STR("conversation_id"), t->conversation_id);
    put_str(o, STR("status"), task_status_name(t->status));
    put_str(o, STR("agent"), t->agent);
    json_key(o, STR("text"));
    if (is_over)
        json_put_str(o, r->text);
    else
        json_put_null(o);
    put_document(o, STR("metadata"), r->metadata);
    put_int(o, STR("turn"), t->turn);
    put_price(o, t->price_micros);
    put_error(o, r);
}

void speak_answer(struct json_out *o, const struct task *t, struct str decision)
{
    speak_result(o, t);
    json_key(o, STR("decision"));
    json_put_raw(o, decision.n ? decision : STR("null"));
}

void speak_task(struct json_out *o, const struct task *t)
{
    put_str(o, STR("id"), str_of(t->id.text));
    put_str(o, STR("message_id"), str_of(t->message_id.text));
    put_str(o, STR("conversation_id"), t->conversation_id);
    put_str(o, STR("requester"), t->requester);
    put_str(o, STR("root_user"), t->root_user);
    put_str(o, STR("agent"), t->agent);
    put_str_or_null(o, STR("skill"), t->skill);
    put_str(o, STR("priority"), task_priority_name(t->priority));
    put_str(o, STR("status"), task_status_name(t->status));
    put_int(o, STR("turn"), t->turn);
    put_int(o, STR("attempt"), t->attempt);
    put_str(o, STR("text"), t->text);
    put_document(o, STR("metadata"), t->metadata);
    put_document(o, STR("source"), t->source);
    put_int(o, STR("created_ms"), t->created_ms);
    put_int(o, STR("updated_ms"), t->updated_ms);
    put_int(o, STR("deadline_ms"), t->deadline_ms);
    json_key(o, STR("finished_ms"));
    if (task_is_over(t->status))
        json_put_int(o, t->finished_ms);
    else
        json_put_null(o);
    put_str_or_null(o, STR("parent_task_id"), t->parent_id);
    put_int(o, STR("depth"), t->depth);
    put_price(o, t->price_micros);
    put_str_or_null(o, STR("by_agent"), t->by_agent);
    put_str_or_null(o, STR("root_task_id"), t->root_id);
    json_key(o, STR("chain"));
    json_put_raw(o, t->chain.n ? t->chain : STR("[]"));
    if (task_is_over(t->status)) {
        put_result(o, &t->result);
    } else {
        json_key(o, STR("result"));
        json_put_null(o);
    }
}

void speak_turn(struct json_out *o, const struct speak_turn *turn)
{
    json_open(o, '{');
    put_int(o, STR("turn"), turn->number);
    put_str(o, STR("message_id"), turn->message_id);
    put_str(o, STR("text"), turn->text);
    put_document(o, STR("metadata"), turn->metadata);
    put_str(o, STR("status"), task_status_name(turn->result.status));
    put_int(o, STR("began_ms"), turn->began_ms);
    put_int(o, STR("finished_ms"), turn->finished_ms);
    put_price(o, turn->price_micros);
    put_result(o, &turn->result);
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
    put_str_or_null(o, STR("next_cursor"), next_cursor);
    json_close(o, '}');
}

void speak_conversation(struct json_out *o, struct str id, struct str agent,
                        int64_t created_ms, int64_t used_ms)
{
    json_open(o, '{');
    put_str(o, STR("id"), id);
    put_str(o, STR("agent"), agent);
    put_int(o, STR("created_ms"), created_ms);
    put_int(o, STR("used_ms"), used_ms);
    json_close(o, '}');
}

void speak_entry(struct json_out *o, const struct speak_entry *e)
{
    json_open(o, '{');
    put_int(o, STR("seq"), e->seq);
    put_int(o, STR("at_ms"), e->at_ms);
    put_str(o, STR("type"), e->type);
    put_str_or_null(o, STR("task_id"), e->task_id);
    put_str_or_null(o, STR("conversation_id"), e->conversation_id);
    put_str_or_null(o, STR("agent"), e->agent);
    put_str_or_null(o, STR("requester"), e->requester);
    put_str_or_null(o, STR("root_user"), e->root_user);
    put_document(o, STR("data"), e->data);
    json_close(o, '}');
}

void speak_feed_gap(struct json_out *o, int64_t after, int64_t newest)
{
    json_open(o, '{');
    put_int(o, STR("after"), after);
    put_int(o, STR("newest"), newest);
    json_close(o, '}');
}
