/* What a delegation came to, for an agent that has no line on which it could be
 * told: a note, which it finds with its next turn in the conversation.
 *
 *     READY -> (one tx) the note, the feed, HAD
 *     a turn begins with the notes that no turn has had yet
 *     it is completed -> (in its tx) they are this turn's
 *
 * So a crash at any step tells it again or has told it, and never both. A turn
 * that comes to nothing has had none: the next one begins with them. */
#include "hire/internal.h"

#include "model/agent.h"
#include "watch/watch.h"

const struct tx_op *hire_write_note(const struct hire *x, struct str text,
                                    struct tx *tx)
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

void hire_notes(struct query *q, const struct task *t, bool is_told,
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

/* Without a guard: that retention was there first is no reason for a turn not
 * to end. What is left of the note then goes with the next retention. */
void hire_record_told(struct hires *h, const struct task *t, struct str key,
                      struct tx *tx)
{
    struct tx_op *op = tx_put(tx, &note_table);

    tx_set(op, NOTE_KEY, value_text(key));
    tx_set_new(op, NOTE_AT_MS, value_int(loop_wall_ms(h->opts.loop)));
    tx_set(op, NOTE_TOLD_SEQ,
           value_int(PLANTED("hire.tells_twice") ? 0 : t->seq));
    tx_set(op, NOTE_TOLD_TURN, value_int(t->turn));
}

/* Those that a crash kept from becoming notes. */
void hire_tell_by_notes(struct hires *h)
{
    const struct list *ready = &h->by_state[DELEGATION_READY];

    for (struct list_node *n = list_first(ready); n; n = list_next(ready, n)) {
        struct hire *x = LIST_OF(n, struct hire, node);

        if (h->opts.hears_by_note(h->opts.ctx, x->d.agent) &&
            !PLANTED("hire.forgets_notes"))
            hire_tell(x);
    }
}
