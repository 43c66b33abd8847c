/* Conversations: their owner, and the agent that answers. */
#include "api/internal.h"

static void on_conversation_row(struct request *o)
{
    const struct row *r = o->query.rows;
    struct json_out out = request_json(o);

    if (o->query.err || !r) {
        request_fail(o, o->query.err ? o->query.err : ERR_NOT_FOUND);
        return;
    }
    speak_conversation(
        &out, row_str(r, CONVERSATION_ID), row_str(r, CONVERSATION_AGENT),
        row_int(r, CONVERSATION_CREATED_MS), row_int(r, CONVERSATION_USED_MS));
    request_answer(o, 200);
}

/* The owner is part of the name; conversations of others are for admins. User
 * names are found in any case; a removed user is looked up as written. */
void call_conversations_get(struct call *c)
{
    struct str owner = call_arg(c, "owner"), name = caller_name(&c->caller);
    struct access_user found;
    struct request *o;

    if (!owner.p || str_eq_nocase(owner, name)) {
        owner = name;
    } else if (!caller_is_admin(&c->caller)) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    } else if (access_user_find(c->api->access, owner, &found)) {
        owner = str_of(found.name);
    }
    o = request_of_call(c, NULL);
    if (!o)
        return;
    request_query(o, &conversation_table, 1);
    query_if(&o->query, CONVERSATION_OWNER, IS, value_text(owner));
    query_if(&o->query, CONVERSATION_ID, IS, value_text(c->param));
    request_read(o, &o->query, on_conversation_row);
}
