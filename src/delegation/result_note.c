/* Results for an agent without a connection: a note, which the agent reads in
 * its next turn in the conversation.
 *
 *     READY -> (one tx) the note, the feed event, HAD
 *     a turn starts with the notes that no turn was given yet
 *     the turn completes -> (in its tx) the notes are marked as given to it
 *
 * After a crash at any step the note is given again, or it was given, but never
 * both. A turn that fails was given none: the next one starts with them. */
#include "delegation/internal.h"

#include "model/agent.h"
#include "watch/watch.h"

const struct tx_op *delegation_write_note(const struct live_delegation *x,
                                          struct str text, struct tx *tx)
{
    char low[AGENT_NAME_MAX];
    struct tx_op *op = tx_insert(tx, &note_table);

    tx_set(op, NOTE_KEY, value_text(str_of(x->d.key.text)));
    tx_set(op, NOTE_OWNER, value_text(x->d.owner));
    tx_set(op, NOTE_CONVERSATION, value_text(x->d.conversation));
    tx_set(op, NOTE_AGENT,
           value_text(str_lowered(x->d.agent, low, sizeof(low))));
    tx_set(op, NOTE_TEXT, value_text(text));
    tx_set(op, NOTE_AT_MS, value_int(loop_wall_ms(x->h->opts.loop)));
    tx_set(op, NOTE_TOLD_SEQ, value_int(0));
    tx_set(op, NOTE_TOLD_TURN, value_int(0));
    return op;
}

void delegation_notes(struct query *q, const struct task *t, bool is_told,
                      size_t limit)
{
    char low[AGENT_NAME_MAX];

    query_init(q, &note_table, limit);
    if (!PLANTED("hire.anybodys_notes"))
        query_if(q, NOTE_OWNER, IS, value_text(t->requester));
    query_if(q, NOTE_CONVERSATION, IS, value_text(t->conversation_id));
    query_if(q, NOTE_AGENT, IS,
             value_text(str_lowered(t->agent, low, sizeof(low))));
    query_if(q, NOTE_TOLD_SEQ, is_told ? IS_MORE : IS, value_int(0));
    query_order(q, NOTE_KEY, is_told);
    q->is_quick = true;
}

/* Without a guard: the turn must end even if retention removed the note first.
 * The rest of the row then goes with the next retention. */
void delegation_record_told(struct delegations *h, const struct task *t,
                            struct str key, struct tx *tx)
{
    struct tx_op *op = tx_put(tx, &note_table);

    tx_set(op, NOTE_KEY, value_text(key));
    tx_set_new(op, NOTE_AT_MS, value_int(loop_wall_ms(h->opts.loop)));
    tx_set(op, NOTE_TOLD_SEQ,
           value_int(PLANTED("hire.tells_twice") ? 0 : t->seq));
    tx_set(op, NOTE_TOLD_TURN, value_int(t->turn));
}

/* Write the notes that a crash prevented. */
void delegation_tell_by_notes(struct delegations *h)
{
    const struct list *ready = &h->by_state[DELEGATION_READY];

    for (struct list_node *n = list_first(ready); n; n = list_next(ready, n)) {
        struct live_delegation *x = LIST_OF(n, struct live_delegation, node);

        if (h->opts.hears_by_note(h->opts.ctx, x->d.agent) &&
            !PLANTED("hire.forgets_notes"))
            delegation_tell(x);
    }
}
