/* The types of single values. Each message names the accepted values and, where
 * that helps, the given one. A value has at most one problem, the first one
 * found. */
#include "model/card_internal.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/amount.h"
#include "base/fault.h"

/* Strings. */

bool card_str_is_given(const struct card_field *f, const void *field,
                       enum card_view v)
{
    (void)f, (void)v;
    return ((const struct str *)field)->n > 0;
}

bool card_str_is_same(const struct card_field *f, const void *a, const void *b)
{
    (void)f;
    return str_eq(*(const struct str *)a, *(const struct str *)b);
}

static void card_str_write(struct json_out *o, const struct card_field *f,
                           const void *field, enum card_view v)
{
    (void)f, (void)v;
    json_put_str(o, *(const struct str *)field);
}

static void card_copy_to(struct card_reader *r, struct str s, void *field)
{
    *(struct str *)field = s.n ? card_copy(r, s) : STR("");
}

/* Whether v is an acceptable text; if not, a problem is noted. */
static bool card_is_text(struct card_reader *r, const struct card_field *f,
                         const struct json *v, const struct card_spot *s,
                         bool has_lines)
{
    const char *what = has_lines ? "text" : "one line of text";
    struct card_letter bad;

    if (v->type != JSON_STR)
        card_problem(r, s, "must be %s, not %s", what, card_show_as(f, v).text);
    else if (v->s.n > (size_t)f->max)
        card_problem(r, s, "may have up to %lld bytes, not %zu",
                     (long long)f->max, v->s.n);
    else if (card_letter_find(v->s, has_lines, &bad))
        card_problem(r, s, "may not contain U+%04X, %s (byte %zu)",
                     (unsigned)bad.number, bad.what, bad.at + 1);
    else if (v->s.n < (size_t)f->min || (v->s.n && !card_has_ink(v->s)))
        card_problem(r, s, "must be %s of 1 to %lld bytes, and not blank", what,
                     (long long)f->max);
    else if (!has_lines && v->s.n &&
             (v->s.p[0] == ' ' || v->s.p[v->s.n - 1] == ' '))
        card_problem(r, s, "may not begin or end with a space");
    else
        return true;
    return false;
}

static void card_line_read(struct card_reader *r, const struct card_field *f,
                           const struct json *v, const struct card_spot *s,
                           void *field)
{
    if (card_is_text(r, f, v, s, false))
        card_copy_to(r, v->s, field);
}

static void card_text_read(struct card_reader *r, const struct card_field *f,
                           const struct json *v, const struct card_spot *s,
                           void *field)
{
    if (card_is_text(r, f, v, s, true))
        card_copy_to(r, v->s, field);
}

const struct card_type card_line = {card_line_read, card_str_is_given,
                                    card_str_is_same, card_str_write};
const struct card_type card_text = {card_text_read, card_str_is_given,
                                    card_str_is_same, card_str_write};

/* Names. */

static void card_name_read(struct card_reader *r, const struct card_field *f,
                           const struct json *v, const struct card_spot *s,
                           void *field)
{
    (void)f;
    if (v->type != JSON_STR || !agent_name_is_valid(v->s))
        card_problem(r, s,
                     "must be a name of 1 to %d letters, digits, \".\", \"_\" "
                     "and \"-\" that begins with a letter or digit, not %s",
                     AGENT_NAME_MAX, card_show(v).text);
    else
        card_copy_to(r, v->s, field);
}

static bool is_skill_id(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!str_is_alnum(s.p[i]) && (!s.p[i] || !strchr("._-", s.p[i])))
            return false;
    return s.n >= 1 && s.n <= SKILL_ID_MAX;
}

static void skill_id_read(struct card_reader *r, const struct card_field *f,
                          const struct json *v, const struct card_spot *s,
                          void *field)
{
    (void)f;
    if (v->type != JSON_STR || !is_skill_id(v->s))
        card_problem(r, s,
                     "must be 1 to %d letters, digits, \".\", \"_\" and "
                     "\"-\", not %s",
                     SKILL_ID_MAX, card_show(v).text);
    else
        card_copy_to(r, v->s, field);
}

static void principal_read(struct card_reader *r, const struct card_field *f,
                           const struct json *v, const struct card_spot *s,
                           void *field)
{
    (void)f;
    if (v->type != JSON_STR || !principal_name_is_valid(v->s))
        card_problem(r, s,
                     "must be 1 to %d letters, digits, \".\", \"_\", \"@\" "
                     "and \"-\" that begin with a letter or digit, not %s",
                     PRINCIPAL_NAME_MAX, card_show(v).text);
    else
        card_copy_to(r, v->s, field);
}

/* An empty name is written as null, except in a setting, where it is
 * omitted. */
static bool principal_is_given(const struct card_field *f, const void *field,
                               enum card_view v)
{
    return v != CARD_SETTING || card_str_is_given(f, field, v);
}

static void principal_write(struct json_out *o, const struct card_field *f,
                            const void *field, enum card_view v)
{
    if (card_str_is_given(f, field, v))
        card_str_write(o, f, field, v);
    else
        json_put_null(o);
}

/* Null means "not given", as everywhere, so "" resets an org. */
static void org_read(struct card_reader *r, const struct card_field *f,
                     const struct json *v, const struct card_spot *s,
                     void *field)
{
    struct agent *a =
        (struct agent *)((char *)field - offsetof(struct agent, org));

    if (v->type == JSON_STR && v->s.n == 0)
        a->is_org_creators = true;
    else if (v->type != JSON_STR || !principal_name_is_valid(v->s))
        card_problem(r, s,
                     "must be 1 to %d letters, digits, \".\", \"_\", \"@\" "
                     "and \"-\" that begin with a letter or digit, or \"\" "
                     "for that of its creator, not %s",
                     PRINCIPAL_NAME_MAX, card_show_as(f, v).text);
    else
        card_copy_to(r, v->s, field);
}

const struct card_type card_name = {card_name_read, card_str_is_given,
                                    card_str_is_same, card_str_write};
const struct card_type card_skill_id = {skill_id_read, card_str_is_given,
                                        card_str_is_same, card_str_write};
const struct card_type card_principal = {principal_read, principal_is_given,
                                         card_str_is_same, principal_write};
const struct card_type card_org = {org_read, principal_is_given,
                                   card_str_is_same, principal_write};

/* Addresses. Messages do not repeat them: people put passwords into them. */

static void card_url_read(struct card_reader *r, const struct card_field *f,
                          const struct json *v, const struct card_spot *s,
                          void *field)
{
    struct agent_url url;
    struct why why = {""};

    (void)f;
    if (v->type != JSON_STR)
        card_problem(r, s, "must be %.*s", STR_ARG(agent_url_allowed()));
    else if (agent_url_read(v->s, &url, &why))
        card_problem(r, s, "%s", why.text);
    else
        card_copy_to(r, v->s, field);
}

static void card_web_read(struct card_reader *r, const struct card_field *f,
                          const struct json *v, const struct card_spot *s,
                          void *field)
{
    struct why why = {""};

    if (v->type != JSON_STR)
        card_problem(r, s, "must be \"https://…\" or \"http://…\", not %s",
                     card_show_as(f, v).text);
    else if (agent_web_read(v->s, &why))
        card_problem(r, s, "%s", why.text);
    else
        card_copy_to(r, v->s, field);
}

void card_put_url(struct json_out *o, struct str url)
{
    struct str head = str_sub(url, 0, str_find(url, '?', 0));
    struct buf shown;

    buf_init(&shown, AGENT_URL_MAX + 16);
    buf_addf(&shown, "%.*s%s", STR_ARG(head),
             head.n < url.n ? "?not-shown" : "");
    json_put_str(o, buf_str(&shown));
    buf_fini(&shown);
}

static void card_url_write(struct json_out *o, const struct card_field *f,
                           const void *field, enum card_view v)
{
    if (v == CARD_OTHERS)
        card_put_url(o, *(const struct str *)field);
    else
        card_str_write(o, f, field, v);
}

const struct card_type card_url = {card_url_read, card_str_is_given,
                                   card_str_is_same, card_url_write};
const struct card_type card_web = {card_web_read, card_str_is_given,
                                   card_str_is_same, card_str_write};

/* Numbers. */

static bool card_is_number(struct card_reader *r, const struct card_field *f,
                           const struct json *v, const struct card_spot *s)
{
    /* 1e3 is shown as 1000, so the message must name the problem. */
    bool looks_whole = v->type == JSON_REAL && v->d > -1e15 && v->d < 1e15 &&
                       v->d == (double)(int64_t)v->d;

    if (v->type == JSON_INT && v->i >= f->min && v->i <= f->max)
        return true;
    card_problem(r, s, "must be a whole number from %lld to %lld, not %s%s",
                 (long long)f->min, (long long)f->max, card_show(v).text,
                 looks_whole ? " with a point or exponent" : "");
    return false;
}

static void card_int_read(struct card_reader *r, const struct card_field *f,
                          const struct json *v, const struct card_spot *s,
                          void *field)
{
    if (card_is_number(r, f, v, s))
        *(int64_t *)field = v->i;
}

static bool card_int_is_given(const struct card_field *f, const void *field,
                              enum card_view v)
{
    (void)v;
    return *(const int64_t *)field != f->unset;
}

static bool card_int_is_same(const struct card_field *f, const void *a,
                             const void *b)
{
    (void)f;
    return *(const int64_t *)a == *(const int64_t *)b;
}

static void card_int_write(struct json_out *o, const struct card_field *f,
                           const void *field, enum card_view v)
{
    (void)f, (void)v;
    json_put_int(o, *(const int64_t *)field);
}

const struct card_type card_int = {card_int_read, card_int_is_given,
                                   card_int_is_same, card_int_write};

static void micros_read(struct card_reader *r, const struct card_field *f,
                        const struct json *v, const struct card_spot *s,
                        void *field)
{
    if (card_is_number(r, f, v, s))
        *(struct price *)field = (struct price){true, v->i};
}

static bool micros_is_given(const struct card_field *f, const void *field,
                            enum card_view v)
{
    (void)f, (void)v;
    return ((const struct price *)field)->is_given;
}

static bool micros_is_same(const struct card_field *f, const void *a,
                           const void *b)
{
    const struct price *x = a, *y = b;

    (void)f;
    return x->is_given == y->is_given && x->micros == y->micros;
}

static void micros_write(struct json_out *o, const struct card_field *f,
                         const void *field, enum card_view v)
{
    (void)f, (void)v;
    json_put_int(o, ((const struct price *)field)->micros);
}

const struct card_type card_micros = {micros_read, micros_is_given,
                                      micros_is_same, micros_write};

/* In units. A decimal with up to six digits after the point is the only one
 * that reads as its double, so those are the digits that the sender wrote. */
static enum err card_read_units(const struct json *v, int64_t *micros)
{
    char digits[32];

    switch ((int)v->type) {
    case JSON_STR: return amount_digits(v->s, AGENT_PRICE_MAX, micros);
    case JSON_INT: snprintf(digits, sizeof(digits), "%" PRId64, v->i); break;
    case JSON_REAL:
        if (!(v->d >= 0 && v->d <= (double)AGENT_PRICE_MAX))
            return ERR_SYNTAX;
        snprintf(digits, sizeof(digits), "%.6f", v->d);
        if (strtod(digits, NULL) != v->d && !PLANTED("card.round_amount"))
            return ERR_SYNTAX;
        break;
    default: return ERR_SYNTAX;
    }
    return amount_digits(str_of(digits), AGENT_PRICE_MAX, micros);
}

static void amount_read(struct card_reader *r, const struct card_field *f,
                        const struct json *v, const struct card_spot *s,
                        void *field)
{
    int64_t micros;

    if (card_read_units(v, &micros))
        card_problem(r, s, "must be %s, like 0.05, not %s", f->allowed,
                     card_show(v).text);
    else
        *(struct price *)field = (struct price){true, micros};
}

static void currency_read(struct card_reader *r, const struct card_field *f,
                          const struct json *v, const struct card_spot *s,
                          void *field)
{
    struct str own = r->opts->currency;

    (void)f, (void)field;
    if (v->type != JSON_STR || !v->s.n || v->s.n > AGENT_CURRENCY_MAX)
        card_problem(r, s,
                     "must be the name of a currency, up to %d bytes, not %s",
                     AGENT_CURRENCY_MAX, card_show(v).text);
    else if (own.n && !str_eq_nocase(v->s, own) &&
             !PLANTED("card.any_currency"))
        card_problem(r, s,
                     "must be \"%.*s\", which the ledger is kept in, not %s: "
                     "prices are not converted",
                     STR_ARG(own), card_show(v).text);
}

static bool nothing_is_given(const struct card_field *f, const void *field,
                             enum card_view v)
{
    (void)f, (void)field, (void)v;
    return false;
}

/* Cards do not differ by these. */
static bool nothing_is_same(const struct card_field *f, const void *a,
                            const void *b)
{
    (void)f, (void)a, (void)b;
    return true;
}

const struct card_type card_amount = {amount_read, nothing_is_given,
                                      nothing_is_same, micros_write};
const struct card_type card_currency = {currency_read, nothing_is_given,
                                        nothing_is_same, micros_write};

/* Members of the server. */

static void nothing_read(struct card_reader *r, const struct card_field *f,
                         const struct json *v, const struct card_spot *s,
                         void *field)
{
    (void)r, (void)f, (void)v, (void)s, (void)field;
}

static bool stamp_is_given(const struct card_field *f, const void *field,
                           enum card_view v)
{
    (void)f, (void)field, (void)v;
    return true;
}

const struct card_type card_stamp = {nothing_read, stamp_is_given,
                                     nothing_is_same, card_int_write};
const struct card_type card_passed = {nothing_read, nothing_is_given,
                                      nothing_is_same, NULL};

/* Choices. */

static void unless_read(struct card_reader *r, const struct card_field *f,
                        const struct json *v, const struct card_spot *s,
                        void *field)
{
    (void)f;
    if (v->type == JSON_BOOL)
        *(bool *)field = !v->b;
    else
        card_problem(r, s, "must be true or false, not %s", card_show(v).text);
}

static bool unless_is_given(const struct card_field *f, const void *field,
                            enum card_view v)
{
    (void)f, (void)v;
    return *(const bool *)field;
}

static bool unless_is_same(const struct card_field *f, const void *a,
                           const void *b)
{
    (void)f;
    return *(const bool *)a == *(const bool *)b;
}

static void unless_write(struct json_out *o, const struct card_field *f,
                         const void *field, enum card_view v)
{
    (void)f, (void)v;
    json_put_bool(o, !*(const bool *)field);
}

const struct card_type card_unless = {unless_read, unless_is_given,
                                      unless_is_same, unless_write};

/* For enums, whose zero means "not given". */
static bool card_choice_is_given(const struct card_field *f, const void *field,
                                 enum card_view v)
{
    (void)f, (void)v;
    return *(const unsigned *)field != 0;
}

static bool card_choice_is_same(const struct card_field *f, const void *a,
                                const void *b)
{
    (void)f;
    return *(const unsigned *)a == *(const unsigned *)b;
}

static void visibility_read(struct card_reader *r, const struct card_field *f,
                            const struct json *v, const struct card_spot *s,
                            void *field)
{
    enum visibility got = visibility_of(json_str_or(v, STR("")));

    (void)f;
    if (got)
        *(enum visibility *)field = got;
    else
        card_problem(r, s,
                     "must be \"public\", \"shared\" or \"private\", not %s",
                     card_show(v).text);
}

static void visibility_write(struct json_out *o, const struct card_field *f,
                             const void *field, enum card_view v)
{
    (void)f, (void)v;
    json_put_str(o, visibility_name(*(const enum visibility *)field));
}

const struct card_type card_visibility = {visibility_read, card_choice_is_given,
                                          card_choice_is_same,
                                          visibility_write};

static void kind_read(struct card_reader *r, const struct card_field *f,
                      const struct json *v, const struct card_spot *s,
                      void *field)
{
    enum agent_kind got = agent_kind_of(json_str_or(v, STR("")));

    (void)f;
    if (got)
        *(enum agent_kind *)field = got;
    else
        card_problem(r, s,
                     "must be \"platform\", \"managed\" or \"self-hosted\", "
                     "not %s",
                     card_show(v).text);
}

static void kind_write(struct json_out *o, const struct card_field *f,
                       const void *field, enum card_view v)
{
    (void)f, (void)v;
    json_put_str(o, agent_kind_name(*(const enum agent_kind *)field));
}

const struct card_type card_kind = {kind_read, card_choice_is_given,
                                    card_choice_is_same, kind_write};
