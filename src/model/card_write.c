/* Writing by the table. Fields that are not given are omitted, except members
 * of the server, so two cards are equal exactly if CARD_STORED writes the
 * same. */
#include "model/card_internal.h"

static bool card_is_written(const struct card_field *f, const void *base,
                            enum card_view v)
{
    if ((v == CARD_OTHERS && f->is_private) ||
        (v == CARD_SETTING && f->is_wire_only))
        return false;
    return f->type->is_given(f, card_look_at(f, base), v);
}

bool card_is_any_given(const struct card_fields *t, const void *base,
                       enum card_view v)
{
    for (size_t i = 0; i < t->n; i++)
        if (card_is_written(&t->list[i], base, v))
            return true;
    return false;
}

void card_write_fields(struct json_out *o, const struct card_fields *t,
                       const void *base, enum card_view v, bool with_ours)
{
    enum card_dialect d = v == CARD_SETTING ? CARD_CONFIG : CARD_WIRE;
    char own[CARD_KEY_BYTES];

    for (size_t i = 0; i < t->n; i++) {
        const struct card_field *f = &t->list[i];

        if ((f->is_ours && !with_ours) || !card_is_written(f, base, v))
            continue;
        json_key(o, card_key(f, d, own));
        f->type->write(o, f, card_look_at(f, base), v);
    }
}

void card_write_members(struct json_out *o, const struct agent *a,
                        enum card_view v)
{
    card_write_fields(o, &card_fields, a, v, v != CARD_STORED);
}

void card_write(struct json_out *o, const struct agent *a, enum card_view v)
{
    json_open(o, '{');
    card_write_members(o, a, v);
    json_close(o, '}');
}

void card_write_skill_members(struct json_out *o, const struct skill *s)
{
    card_write_fields(o, &card_skill_fields, s, CARD_ALL, false);
}

void card_diff(struct json_out *o, const struct agent *a, const struct agent *b)
{
    json_open(o, '[');
    for (size_t i = 0; i < card_fields.n; i++) {
        const struct card_field *f = &card_fields.list[i];

        if (!f->type->is_same(f, card_look_at(f, a), card_look_at(f, b)))
            json_put_str(o, str_of(f->name));
    }
    json_close(o, ']');
}
