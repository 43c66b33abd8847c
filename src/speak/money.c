/* Money: requests of an admin to move it, and the lines of a statement. Amounts
 * are whole micro-units on the wire, so that no client rounds them. */
#include "speak/internal.h"

#include <stddef.h>

#include "base/rfc3339.h"

#define AT(member) offsetof(struct speak_money_call, member)

/* The last two rows are for a refund only. */
static const struct field money_fields[] = {
    {"user", FIELD_NAME, 1, PRINCIPAL_NAME_MAX, .at = AT(user)},
    {"amount_micros", FIELD_INT, 1, SPEAK_AMOUNT_MAX, .at = AT(amount_micros)},
    {"note", FIELD_NAME, 0, SPEAK_NOTE_MAX, .at = AT(note)},
    {"idempotency_key", FIELD_NAME, 1, MSG_KEY_MAX, .at = AT(key)},
    {"task_id", FIELD_NAME, 1, ID_BYTES, .at = AT(task_id)},
    {"turn", FIELD_INT, 1, INT32_MAX, .at = AT(turn)},
};

#undef AT

enum { N_FIELDS = sizeof(money_fields) / sizeof(*money_fields) };

const struct fields speak_money_fields = {"", money_fields, N_FIELDS - 2},
                    speak_refund_fields = {"", money_fields, N_FIELDS};

static enum err money_check_transfer(const struct speak_money_call *m,
                                     struct why *why)
{
    if (!m->user.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "user is missing: {\"user\":\"anna\",\"amount_micros\":"
                       "1500000}");
    if (!m->amount_micros)
        return why_err(why, ERR_BAD_REQUEST,
                       "amount_micros is missing: whole micro-units, 1500000 "
                       "for 1.50");
    return OK;
}

/* A refund returns the cost of a task, or part of it, to the user who paid. */
static enum err money_check_refund(const struct speak_money_call *m,
                                   struct why *why)
{
    if (m->task_id.n && m->user.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "a task's refund goes to who paid it: give task_id "
                       "without user");
    if (m->task_id.n)
        return OK;
    if (m->turn)
        return why_err(why, ERR_BAD_REQUEST, "turn needs task_id: give both");
    if (!m->user.n && !m->amount_micros)
        return why_err(
            why, ERR_BAD_REQUEST,
            "say what to refund: {\"task_id\":\"task_…\"} for what a "
            "task has cost, or user and amount_micros");
    return money_check_transfer(m, why);
}

enum err speak_money_post(struct arena *a, enum speak_money what,
                          struct str body, struct str key_header,
                          struct speak_money_call *out, struct buf *canonical,
                          struct why *why)
{
    enum err e;
    static const char names[] = {
        [SPEAK_TOPUP] = 't', [SPEAK_REFUND] = 'r', [SPEAK_PAYOUT] = 'p'};

    *out = (struct speak_money_call){.turn = 0};
    e = fields_read(a, body,
                    what == SPEAK_REFUND ? &speak_refund_fields
                                         : &speak_money_fields,
                    out, why);
    if (e)
        return e;
    /* A client that sends an empty key believes that it is protected. */
    if (key_header.p && !key_header.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "the Idempotency-Key header is empty: give a key, or "
                       "leave it out");
    e = what == SPEAK_REFUND ? money_check_refund(out, why)
                             : money_check_transfer(out, why);
    if (!e)
        e = speak_key(a, key_header, &out->key, why);
    if (e)
        return e;
    buf_add_char(canonical, names[what]);
    canonical_add(canonical, out->user);
    canonical_add(canonical, out->note);
    canonical_add(canonical, out->task_id);
    buf_add_i64(canonical, out->turn);
    buf_add_char(canonical, ':');
    buf_add_i64(canonical, out->amount_micros);
    return canonical->over ? why_err(why, ERR_NOMEM, "out of memory") : OK;
}

#define SHARED                                                            \
    "account", "kind", "task_id", "turn", "agent", "skill", "by", "note", \
        "posting", "state"

const char *const *speak_line_columns(bool is_csv)
{
    static const char *const csv[] = {"seq",    "at_ms", "at", "amount_micros",
                                      "amount", SHARED,  NULL};
    static const char *const json[] = {"seq", "at_ms", "amount_micros", SHARED,
                                       NULL};

    return is_csv ? csv : json;
}

void speak_line(struct sheet *s, const struct speak_line *l)
{
    char at[RFC3339_BYTES];

    sheet_row(s);
    sheet_int(s, l->seq);
    sheet_int(s, l->at_ms);
    if (s->is_csv)
        sheet_str(s, rfc3339_write(l->at_ms, at));
    sheet_int(s, l->amount_micros);
    if (s->is_csv)
        sheet_micros(s, l->amount_micros);
    sheet_str(s, l->account);
    sheet_str(s, l->kind);
    sheet_str_or_none(s, l->task_id);
    if (l->task_id.n)
        sheet_int(s, l->turn);
    else
        sheet_none(s);
    sheet_str_or_none(s, l->agent);
    sheet_str_or_none(s, l->skill);
    sheet_str_or_none(s, l->by);
    sheet_str_or_none(s, l->note);
    sheet_str(s, l->posting);
    sheet_str_or_none(s, l->state);
}

void speak_books(struct json_out *o, const struct speak_books *b)
{
    json_open(o, '{');
    json_member_bool(o, "is_right", b->n_problems == 0);
    json_member_int(o, "accounts", b->n_accounts);
    json_member_int(o, "postings", b->n_postings);
    json_member_int(o, "entries", b->n_entries);
    json_member_int(o, "turns", b->n_turns);
    json_member_int(o, "reservations", b->n_reserved);
    json_member_int(o, "reserved_micros", b->reserved_micros);
    json_member_int(o, "owed_micros", b->owed_micros);
    json_member_int(o, "problems_total", b->n_problems);
    json_key(o, STR("problems"));
    json_open(o, '[');
    for (size_t i = 0; i < b->n_shown; i++)
        json_put_str(o, str_of(b->problems[i].text));
    json_close(o, ']');
    json_close(o, '}');
}
