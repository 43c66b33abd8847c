/* Money, in and out: what an admin wants moved, and the lines of a statement.
 * Amounts are whole micro-units on the wire, so that nobody's reals round
 * them. */
#include "speak/internal.h"

#include <stddef.h>

#include "base/rfc3339.h"

struct said_money {
    struct str user, note, idempotency_key, task_id;
    int64_t amount_micros, turn;
};

#define AT(member) offsetof(struct said_money, member)

/* The last two are a refund's alone. */
static const struct field money_fields[] = {
    {"user", FIELD_NAME, 1, PRINCIPAL_NAME_MAX, AT(user), false},
    {"amount_micros", FIELD_INT, 1, SPEAK_AMOUNT_MAX, AT(amount_micros), false},
    {"note", FIELD_NAME, 0, SPEAK_NOTE_MAX, AT(note), false},
    {"idempotency_key", FIELD_NAME, 1, MSG_KEY_MAX, AT(idempotency_key), false},
    {"task_id", FIELD_NAME, 1, ID_BYTES, AT(task_id), false},
    {"turn", FIELD_INT, 1, INT32_MAX, AT(turn), false},
};

#undef AT

enum { N_FIELDS = sizeof(money_fields) / sizeof(*money_fields) };

static enum err check_whole(const struct speak_money_call *m, struct why *why)
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

/* What a task has cost goes back to who paid it, all of it or a part. */
static enum err check_refund(const struct speak_money_call *m, struct why *why)
{
    if (m->task_id.n && m->user.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "a task's refund goes to who paid it: give task_id "
                       "without user");
    if (m->task_id.n)
        return OK;
    if (m->turn)
        return why_err(why, ERR_BAD_REQUEST,
                       "turn is of a task: give task_id too");
    if (!m->user.n && !m->amount_micros)
        return why_err(
            why, ERR_BAD_REQUEST,
            "say what to refund: {\"task_id\":\"task_…\"} for what a "
            "task has cost, or user and amount_micros");
    return check_whole(m, why);
}

static void mean(struct buf *out, struct str s)
{
    buf_add_i64(out, (int64_t)s.n);
    buf_add_char(out, ':');
    buf_add_str(out, s);
}

static void write_meaning(enum speak_money what,
                          const struct speak_money_call *m, struct buf *out)
{
    static const char names[] = {
        [SPEAK_TOPUP] = 't', [SPEAK_REFUND] = 'r', [SPEAK_PAYOUT] = 'p'};

    buf_add_char(out, names[what]);
    mean(out, m->user);
    mean(out, m->note);
    mean(out, m->task_id);
    buf_add_i64(out, m->turn);
    buf_add_char(out, ':');
    buf_add_i64(out, m->amount_micros);
}

enum err speak_money_post(struct arena *a, enum speak_money what,
                          struct str body, struct str key_header,
                          struct speak_money_call *out, struct buf *meaning,
                          struct why *why)
{
    struct fields f = {"", money_fields,
                       what == SPEAK_REFUND ? N_FIELDS : N_FIELDS - 2};
    struct said_money said = {.turn = 0};
    enum err e = fields_read(a, body, &f, &said, why);

    if (e)
        return e;
    *out = (struct speak_money_call){.user = said.user,
                                     .amount_micros = said.amount_micros,
                                     .note = said.note,
                                     .key = said.idempotency_key,
                                     .task_id = said.task_id,
                                     .turn = said.turn};
    /* Whoever has a key that came out empty means to be protected. */
    if (key_header.p && !key_header.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "the Idempotency-Key header is empty: give a key, or "
                       "leave it out");
    e = what == SPEAK_REFUND ? check_refund(out, why) : check_whole(out, why);
    if (!e)
        e = speak_key(a, key_header, &out->key, why);
    if (e)
        return e;
    write_meaning(what, out, meaning);
    return meaning->over ? why_err(why, ERR_NOMEM, "out of memory") : OK;
}

/* Out. */

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
