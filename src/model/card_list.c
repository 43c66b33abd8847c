/* The types with inner values: lists, groups of fields, and objects that are
 * kept unchanged. Lists are short, so each element is compared with all those
 * before it. */
#include "model/card_internal.h"

/* The position of element i in the list at s. */
static struct card_spot card_element(const struct card_spot *s, size_t i,
                                     const struct json *v)
{
    return (struct card_spot){.up = s, .i = i, .at = v->at};
}

/* The number of elements to read: none if v is not a list. */
static size_t card_count_elements(struct card_reader *r,
                                  const struct card_field *f,
                                  const struct json *v,
                                  const struct card_spot *s)
{
    if (v->type != JSON_ARR) {
        card_problem(r, s, "must be a list, not %s", card_show_as(f, v).text);
        return 0;
    }
    if (v->kids.n > f->most) {
        card_problem(r, s, "may have up to %zu elements, not %zu", f->most,
                     v->kids.n);
        return f->most;
    }
    return v->kids.n;
}

/* Lists of strings. */

static void strs_read(struct card_reader *r, const struct card_field *f,
                      const struct json *v, const struct card_spot *s,
                      void *field)
{
    const struct card_field *of = &f->inner->list[0];
    size_t n = card_count_elements(r, f, v, s), i = 0;
    struct str *list = n ? card_array(r, n, sizeof(*list)) : NULL;

    if (!list)
        return;
    for (const struct json *kid = v->kids.first; i < n; kid = kid->next) {
        struct card_spot at = card_element(s, i, kid);

        of->type->read(r, of, kid, &at, &list[i]);
        for (size_t k = 0; f->inner->is_unique && list[i].n && k < i; k++)
            if (str_eq_nocase(list[k], list[i])) {
                card_problem(r, &at, "is the same as element %zu", k);
                break;
            }
        i++;
    }
    *(struct strs *)field = (struct strs){list, n};
}

static bool strs_is_given(const struct card_field *f, const void *field,
                          enum card_view v)
{
    (void)f, (void)v;
    return ((const struct strs *)field)->n > 0;
}

static bool strs_is_same(const struct card_field *f, const void *a,
                         const void *b)
{
    const struct strs *x = a, *y = b;

    (void)f;
    if (x->n != y->n)
        return false;
    for (size_t i = 0; i < x->n; i++)
        if (!str_eq(x->list[i], y->list[i]))
            return false;
    return true;
}

static void strs_write(struct json_out *o, const struct card_field *f,
                       const void *field, enum card_view v)
{
    const struct strs *s = field;

    (void)f, (void)v;
    json_open(o, '[');
    for (size_t i = 0; i < s->n; i++)
        json_put_str(o, s->list[i]);
    json_close(o, ']');
}

const struct card_type card_strs = {strs_read, strs_is_given, strs_is_same,
                                    strs_write};

/* Agents that may be asked for help: a missing list allows all, an empty one
 * none. */

typedef typeof(((struct agent *)0)->delegation) delegation;

static void allow_read(struct card_reader *r, const struct card_field *f,
                       const struct json *v, const struct card_spot *s,
                       void *field)
{
    delegation *d = field;

    strs_read(r, f, v, s, &d->allow);
    d->is_limited = v->type == JSON_ARR;
}

static bool allow_is_given(const struct card_field *f, const void *field,
                           enum card_view v)
{
    (void)f, (void)v;
    return ((const delegation *)field)->is_limited;
}

static bool allow_is_same(const struct card_field *f, const void *a,
                          const void *b)
{
    const delegation *x = a, *y = b;

    return x->is_limited == y->is_limited &&
           strs_is_same(f, &x->allow, &y->allow);
}

static void allow_write(struct json_out *o, const struct card_field *f,
                        const void *field, enum card_view v)
{
    strs_write(o, f, &((const delegation *)field)->allow, v);
}

const struct card_type card_allow = {allow_read, allow_is_given, allow_is_same,
                                     allow_write};

/* Groups. */

static void group_read(struct card_reader *r, const struct card_field *f,
                       const struct json *v, const struct card_spot *s,
                       void *field)
{
    if (v->type == JSON_OBJ)
        card_read_members(r, f->inner, v, s, field);
    else
        card_problem(r, s, "must be an object, not %s",
                     card_show_as(f, v).text);
}

static bool group_is_given(const struct card_field *f, const void *field,
                           enum card_view v)
{
    return card_is_any_given(f->inner, field, v);
}

static bool group_is_same(const struct card_field *f, const void *a,
                          const void *b)
{
    for (size_t i = 0; i < f->inner->n; i++) {
        const struct card_field *m = &f->inner->list[i];

        if (!m->type->is_same(m, card_look_at(m, a), card_look_at(m, b)))
            return false;
    }
    return true;
}

static void group_write(struct json_out *o, const struct card_field *f,
                        const void *field, enum card_view v)
{
    json_open(o, '{');
    card_write_fields(o, f->inner, field, v, false);
    json_close(o, '}');
}

const struct card_type card_group = {group_read, group_is_given, group_is_same,
                                     group_write};

/* A price is given once: in micros, or as an amount with its currency. */

static bool card_has_member(const struct json *v, struct str key)
{
    const struct json *one = json_get(v, key);

    return one && one->type != JSON_NULL;
}

static void pricing_read(struct card_reader *r, const struct card_field *f,
                         const struct json *v, const struct card_spot *s,
                         void *field)
{
    bool is_wire = r->opts->dialect == CARD_WIRE;
    const char *micros = is_wire ? "amount_micros" : "amountMicros";
    bool has_amount = card_has_member(v, STR("amount"));
    bool has_currency = card_has_member(v, STR("currency"));
    bool has_micros = card_has_member(v, str_of(micros));
    size_t n_before = r->problems->n_all;

    group_read(r, f, v, s, field);
    if (r->problems->n_all > n_before)
        return;
    if (has_amount && has_micros)
        card_problem(r, s,
                     "has %s and amount: give one of them (null takes away "
                     "one that is there already)",
                     micros);
    else if (has_amount && !has_currency && !r->opts->is_part)
        card_problem(r, s, "has an amount and does not say of which currency");
    else if (has_currency && !has_amount && !has_micros && !r->opts->is_part)
        card_problem(r, s, "has a currency and no amount of it");
}

const struct card_type card_pricing = {pricing_read, group_is_given,
                                       group_is_same, group_write};

/* Skills. */

static void skills_read(struct card_reader *r, const struct card_field *f,
                        const struct json *v, const struct card_spot *s,
                        void *field)
{
    size_t n = card_count_elements(r, f, v, s), i = 0;
    struct skill *list = n ? card_array(r, n, sizeof(*list)) : NULL;
    struct agent *a = field;

    if (!list)
        return;
    for (const struct json *kid = v->kids.first; i < n; kid = kid->next, i++) {
        struct card_spot at = card_element(s, i, kid);
        struct card_spot id = {&at, STR("id"), 0, kid->at};

        if (kid->type != JSON_OBJ) {
            card_problem(r, &at, "must be an object, not %s",
                         card_show(kid).text);
            continue;
        }
        card_read_members(r, f->inner, kid, &at, &list[i]);
        for (size_t k = 0; list[i].id.n && k < i; k++)
            /* Ids ignore case; but a stored card may be from before that was
             * checked. */
            if (r->is_stored ? str_eq(list[k].id, list[i].id)
                             : str_eq_nocase(list[k].id, list[i].id)) {
                card_problem(r, &id, "is the same as that of skill %zu", k);
                break;
            }
    }
    a->skills = list;
    a->n_skills = n;
}

/* An empty list is written too, so that readers need no check. */
static bool skills_is_given(const struct card_field *f, const void *field,
                            enum card_view v)
{
    (void)f, (void)field, (void)v;
    return true;
}

static bool skills_is_same(const struct card_field *f, const void *a,
                           const void *b)
{
    const struct agent *x = a, *y = b;

    if (x->n_skills != y->n_skills)
        return false;
    for (size_t i = 0; i < x->n_skills; i++)
        if (!group_is_same(f, &x->skills[i], &y->skills[i]))
            return false;
    return true;
}

static void skills_write(struct json_out *o, const struct card_field *f,
                         const void *field, enum card_view v)
{
    const struct agent *a = field;

    json_open(o, '[');
    for (size_t i = 0; i < a->n_skills; i++)
        group_write(o, f, &a->skills[i], v);
    json_close(o, ']');
}

const struct card_type card_skills = {skills_read, skills_is_given,
                                      skills_is_same, skills_write};

/* Objects that are kept unchanged. The types of their known members are checked
 * by reading them into a struct that is then discarded. */

static bool is_deeper(const struct json *v, int most)
{
    if (!json_has_kids(v))
        return false;
    if (most == 0)
        return true;
    JSON_EACH(kid, v)
    {
        if (is_deeper(kid, most - 1))
            return true;
    }
    return false;
}

/* Names must be lines, texts must be texts; a bad name is reported at its
 * object, so that pointers never contain such characters. */
static void card_check_letters(struct card_reader *r, const struct json *v,
                               const struct card_spot *s);

static void card_check_member(struct card_reader *r, const struct json *v,
                              const struct card_spot *s)
{
    struct card_spot at = {s, v->key, 0, v->at};
    struct card_letter bad;

    if (!at.key.p)
        at.key = STR("");
    if (!card_letter_find(v->key, false, &bad))
        card_check_letters(r, v, &at);
    else
        card_problem(
            r, s,
            "has a member whose name may not contain U+%04X, %s (byte %zu)",
            (unsigned)bad.number, bad.what, bad.at + 1);
}

static void card_check_letters(struct card_reader *r, const struct json *v,
                               const struct card_spot *s)
{
    struct card_letter bad;
    size_t i = 0;

    if (v->type == JSON_STR && card_letter_find(v->s, true, &bad))
        card_problem(r, s, "may not contain U+%04X, %s (byte %zu)",
                     (unsigned)bad.number, bad.what, bad.at + 1);
    if (v->type == JSON_OBJ) {
        JSON_EACH(kid, v)
        {
            card_check_member(r, kid, s);
        }
    } else if (v->type == JSON_ARR) {
        JSON_EACH(kid, v)
        {
            struct card_spot at = card_element(s, i++, kid);

            card_check_letters(r, kid, &at);
        }
    }
}

/* Copy it in compact form into the arena. */
static void card_keep_object(struct card_reader *r, const struct json *v,
                             const struct card_spot *s, struct str *out)
{
    struct json_out o;
    struct buf text;

    buf_init(&text, AGENT_OBJECT_MAX);
    o = json_out(&text);
    json_put(&o, v);
    if (text.over)
        card_problem(r, s, "may have up to %d bytes", AGENT_OBJECT_MAX);
    else
        *out = card_copy(r, buf_str(&text));
    buf_fini(&text);
}

static void object_read(struct card_reader *r, const struct card_field *f,
                        const struct json *v, const struct card_spot *s,
                        void *field)
{
    struct agent looked_at = {.name = STR("")};

    if (v->type != JSON_OBJ) {
        card_problem(r, s, "must be an object, not %s",
                     card_show_as(f, v).text);
        return;
    }
    if (is_deeper(v, AGENT_OBJECT_DEPTH)) {
        card_problem(r, s, "may be nested %d deep at most", AGENT_OBJECT_DEPTH);
        return;
    }
    if (f->inner)
        card_read_members(r, f->inner, v, s, &looked_at);
    /* Known members were checked by their type. */
    for (const struct json *kid = v->kids.first; kid && !r->is_stored;
         kid = kid->next)
        if (!f->inner || !card_find(r, f->inner, kid->key))
            card_check_member(r, kid, s);
    card_keep_object(r, v, s, field);
}

static bool is_hidden(const struct card_fields *t, struct str key)
{
    for (size_t i = 0; t && i < t->n; i++)
        if (t->list[i].is_private && str_eq(str_of(t->list[i].name), key))
            return true;
    return false;
}

/* Write an object without its hidden members; for its creator, that they are
 * set. If memory for parsing is missing nothing of it is shown. */
static void card_write_shown(struct json_out *o, const struct card_field *f,
                             struct str object, bool is_told)
{
    struct arena scratch;
    struct json *v;

    arena_init(&scratch, 64 * AGENT_OBJECT_MAX);
    v = json_parse(&scratch, object, 0, NULL);
    json_open(o, '{');
    for (v = v ? v->kids.first : NULL; v; v = v->next) {
        bool hides = is_hidden(f->inner, v->key);

        if (hides && (!is_told || v->type == JSON_NULL))
            continue;
        json_key(o, v->key);
        if (hides)
            json_put_str(o, STR(CARD_IS_SET));
        else
            json_put(o, v);
    }
    json_close(o, '}');
    arena_fini(&scratch);
}

static void object_write(struct json_out *o, const struct card_field *f,
                         const void *field, enum card_view v)
{
    struct str object = *(const struct str *)field;

    if ((v == CARD_OTHERS || v == CARD_ALL) && f->inner)
        card_write_shown(o, f, object, v == CARD_ALL);
    else
        json_put_raw(o, object);
}

const struct card_type card_object = {object_read, card_str_is_given,
                                      card_str_is_same, object_write};
