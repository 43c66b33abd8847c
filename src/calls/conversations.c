/* Conversations: whose they are, and who answers in them. */
#include "calls/internal.h"

static void on_conversation(struct open *o)
{
    const struct row *r = o->query.rows;
    struct json_out out = json_out(&o->calls->body);

    if (o->query.err || !r) {
        open_refuse(o, o->query.err ? o->query.err : ERR_NOT_FOUND, STR(""),
                    STR(""));
        return;
    }
    speak_conversation(
        &out, row_str(r, CONVERSATION_ID), row_str(r, CONVERSATION_AGENT),
        row_int(r, CONVERSATION_CREATED_MS), row_int(r, CONVERSATION_USED_MS));
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

/* Whose it is is part of its name; others' are for admins to see. Names are
 * found whatever their case; that of a user who was removed is taken as it is
 * written. */
void call_conversations_get(struct call *c)
{
    struct str owner = call_arg(c, "owner"), name = caller_name(&c->caller);
    struct access_user found;
    struct open *o;

    if (!owner.p || str_eq_nocase(owner, name)) {
        owner = name;
    } else if (!caller_is_admin(&c->caller)) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    } else if (access_user_find(c->calls->access, owner, &found)) {
        owner = str_of(found.name);
    }
    o = open_new(c);
    if (!o)
        return;
    query_init(&o->query, &conversation_table, 1);
    o->has_query = true;
    query_if(&o->query, CONVERSATION_OWNER, IS, value_text(owner));
    query_if(&o->query, CONVERSATION_ID, IS, value_text(c->param));
    open_read(o, &o->query, on_conversation);
}
