/* A tree is walked by the table of fields, and every problem is noted with its
 * place; the walk always completes. A card is small (request bodies and lists
 * have limits), and messages are only formatted for as many problems as are
 * reported.
 *
 * Restricted fields are read like any other and then compared with the caller's
 * rights and the existing agent: the owner of an agent may send back the card
 * that it read from us, even if an admin set a field in it. */
#include "model/card_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

/* Problems. */

enum {
    POINTER_BYTES = 1024,
    WORDS_BYTES = 1024,
    KEY_SHOWN_MAX = 200, /* no field is longer, and a pointer shows no more */
};

struct pointer {
    char text[POINTER_BYTES];
    size_t n;
};

static void pointer_add_char(struct pointer *p, char c)
{
    if (p->n < sizeof(p->text))
        p->text[p->n++] = c;
}

/* "~" and "/" in a key are "~0" and "~1": RFC 6901. */
static void pointer_add_key(struct pointer *p, struct str key)
{
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] == '~' || key.p[i] == '/')
            pointer_add_char(p, '~');
        pointer_add_char(p, key.p[i] == '~'   ? '0'
                            : key.p[i] == '/' ? '1'
                                              : key.p[i]);
    }
}

static size_t pointer_bytes(const struct card_spot *s)
{
    enum { NUMBER_BYTES = 24 };

    if (!s->up)
        return 0;
    return pointer_bytes(s->up) + 1 +
           /* if all of it is escaped */
           (s->key.p ? 2 * s->key.n : NUMBER_BYTES);
}

/* If the pointer would be too long, the nearest parent that fits. */
static const struct card_spot *card_spot_shown(const struct card_spot *s)
{
    while (pointer_bytes(s) > POINTER_BYTES)
        s = s->up;
    return s;
}

static void pointer_add_spot(struct pointer *p, const struct card_spot *s)
{
    char number[24];

    if (!s->up)
        return;
    pointer_add_spot(p, s->up);
    pointer_add_char(p, '/');
    if (s->key.p) {
        pointer_add_key(p, s->key);
    } else {
        int n = snprintf(number, sizeof(number), "%zu", s->i);

        pointer_add_key(p, (struct str){number, (size_t)n});
    }
}

struct str card_copy(struct card_reader *r, struct str s)
{
    char *p = arena_strdup(r->arena, s);

    if (!p)
        r->is_out_of_memory = true;
    return (struct str){p, p ? s.n : 0};
}

void *card_array(struct card_reader *r, size_t n, size_t bytes)
{
    void *p = arena_array(r->arena, n, bytes);

    if (!p)
        r->is_out_of_memory = true;
    return p;
}

static void card_note_problem(struct card_reader *r, const struct card_spot *s,
                              bool is_forbidden, const char *fmt, va_list args)
    __attribute__((format(printf, 4, 0)));

static void card_note_problem(struct card_reader *r, const struct card_spot *s,
                              bool is_forbidden, const char *fmt, va_list args)
{
    struct card_problems *p = r->problems;
    struct pointer pointer = {.n = 0};
    char words[WORDS_BYTES];

    p->n_all++;
    p->n_forbidden += is_forbidden;
    if (p->n == CARD_PROBLEMS_MAX)
        return;
    pointer_add_spot(&pointer, card_spot_shown(s));
    vsnprintf(words, sizeof(words), fmt, args);
    p->list[p->n++] = (struct card_problem){
        .pointer = card_copy(r, (struct str){pointer.text, pointer.n}),
        .message = card_copy(r, str_of(words)),
        .at = s->at,
        .is_forbidden = is_forbidden,
    };
}

void card_problem(struct card_reader *r, const struct card_spot *s,
                  const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    card_note_problem(r, s, false, fmt, args);
    va_end(args);
}

void card_forbid(struct card_reader *r, const struct card_spot *s,
                 const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    card_note_problem(r, s, true, fmt, args);
    va_end(args);
}

void card_problems_say(const struct card_problems *p, struct why *why)
{
    const struct card_problem *one = &p->list[0];
    char more[64] = "";

    if (p->n == 0)
        return;
    if (p->n_all > 1)
        snprintf(more, sizeof(more), " (and %zu more problem%s)", p->n_all - 1,
                 p->n_all > 2 ? "s" : "");
    (void)why_err(why, OK, "%.*s %.*s%s",
                  STR_ARG(one->pointer.n ? one->pointer : STR("the card")),
                  STR_ARG(str_head(one->message, 380)), more);
}

/* Names of fields. */

/* amount_micros -> amountMicros */
struct str card_key(const struct card_field *f, enum card_dialect d,
                    char out[CARD_KEY_BYTES])
{
    size_t n = 0;

    if (d == CARD_WIRE)
        return str_of(f->name);
    if (f->config_name)
        return str_of(f->config_name);
    for (const char *p = f->name; *p; p++) {
        bool is_gap = *p == '_' && p[1];

        assert(n < CARD_KEY_BYTES);
        p += is_gap;
        out[n++] = is_gap && *p >= 'a' && *p <= 'z' ? (char)(*p & ~0x20) : *p;
    }
    return (struct str){out, n};
}

static bool card_has_field(const struct card_reader *r,
                           const struct card_field *f)
{
    return !(r->opts->dialect == CARD_WIRE ? f->is_config_only
                                           : f->is_wire_only);
}

const struct card_field *card_find(const struct card_reader *r,
                                   const struct card_fields *t, struct str key)
{
    char own[CARD_KEY_BYTES];

    for (size_t i = 0; i < t->n; i++)
        if (card_has_field(r, &t->list[i]) &&
            str_eq(card_key(&t->list[i], r->opts->dialect, own), key))
            return &t->list[i];
    return NULL;
}

/* Report a field that exists under another name, or in the other dialect. */
static bool card_note_renamed(struct card_reader *r,
                              const struct card_fields *t,
                              const struct card_spot *s)
{
    bool is_config = r->opts->dialect == CARD_CONFIG;
    enum card_dialect other = is_config ? CARD_WIRE : CARD_CONFIG;
    char own[CARD_KEY_BYTES];

    for (size_t i = 0; i < t->n; i++) {
        struct str here;

        if (!str_eq(card_key(&t->list[i], other, own), s->key))
            continue;
        here = card_key(&t->list[i], r->opts->dialect, own);
        if (card_has_field(r, &t->list[i]))
            card_problem(r, s, "is called \"%.*s\" %s", STR_ARG(here),
                         is_config ? "in the configuration" : "on a card");
        else
            card_problem(r, s,
                         is_config ? "is the server's to say: it cannot be "
                                     "given in the configuration"
                                   : "can be given in the configuration "
                                     "only");
        return true;
    }
    return false;
}

/* The server's members are not part of a card, except those that the
 * configuration may set. */
static bool card_may_be_given(const struct card_reader *r,
                              const struct card_field *f)
{
    return !f->is_ours || (r->opts->dialect == CARD_CONFIG && !f->is_wire_only);
}

static void card_note_unknown(struct card_reader *r,
                              const struct card_fields *t,
                              const struct card_spot *s)
{
    struct str_guess guess = str_guess(s->key);
    char own[CARD_KEY_BYTES], meant[CARD_KEY_BYTES], all[512] = "";
    size_t n = 0;

    if (s->key.n > KEY_SHOWN_MAX) {
        card_problem(r, s->up,
                     "has a field whose name has %zu bytes; %s has "
                     "none like that",
                     s->key.n, t->what);
        return;
    }
    if (card_note_renamed(r, t, s))
        return;
    for (size_t i = 0; i < t->n; i++) {
        struct str one = card_key(&t->list[i], r->opts->dialect, own);
        unsigned distance = str_distance(s->key, one);

        if (!card_has_field(r, &t->list[i]))
            continue;
        if (distance < guess.distance) {
            memcpy(meant, one.p, one.n);
            str_guess_offer(&guess, (struct str){meant, one.n}, distance);
        }
        if (n < sizeof(all) && card_may_be_given(r, &t->list[i]))
            n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%.*s",
                                  n ? ", " : "", STR_ARG(one));
    }
    if (guess.name.n)
        card_problem(r, s, "is not a field of %s; did you mean \"%.*s\"?",
                     t->what, STR_ARG(guess.name));
    else
        card_problem(r, s, "is not a field of %s; the fields are %s", t->what,
                     all);
}

/* The walk. */

static void card_drop_field(const struct card_field *f, struct agent *a)
{
    if (f->type == &card_kind)
        a->kind = 0;
    else
        *(struct str *)card_field_at(f, a) = STR("");
    if (f->type == &card_org)
        a->is_org_creators = false;
}

/* Note a restricted field unless it repeats the existing value. A repeated
 * value of a server's member requests nothing and is dropped. */
static void card_check_right(struct card_reader *r, const struct card_field *f,
                             const struct card_spot *s, void *base)
{
    const struct agent *before = r->opts->before;
    bool is_same = before && f->type->is_same(f, card_look_at(f, base),
                                              card_look_at(f, before));

    if (is_same && f->is_ours)
        card_drop_field(f, base);
    if (is_same || (r->opts->rights & f->needs) ||
        (f->is_needed && !f->is_needed(base)))
        return;
    card_forbid(r, s, "%s", f->needs_words);
}

static void card_note_missing(struct card_reader *r,
                              const struct card_fields *t, const struct json *v,
                              const struct card_spot *s)
{
    char own[CARD_KEY_BYTES];

    for (size_t i = 0; i < t->n; i++) {
        const struct card_field *f = &t->list[i];
        struct str key = card_key(f, r->opts->dialect, own);
        const struct json *given = json_get(v, key);

        if (!f->is_required || r->is_stored || (r->opts->is_part && !t->key) ||
            (r->opts->dialect == CARD_CONFIG && f->is_config_optional))
            continue;
        if (!given || given->type == JSON_NULL)
            card_problem(r, &(struct card_spot){s, key, 0, v->at},
                         "is missing");
    }
}

void card_read_members(struct card_reader *r, const struct card_fields *t,
                       const struct json *v, const struct card_spot *s,
                       void *base)
{
    JSON_EACH(kid, v)
    {
        struct card_spot at = {s, kid->key, 0, kid->at};
        const struct card_field *f = card_find(r, t, kid->key);
        size_t n_before = r->problems->n_all;

        if (!at.key.p)
            at.key = STR(""); /* an empty key is a key too */
        if (!f && !t->is_open)
            card_note_unknown(r, t, &at);
        if (!f || kid->type == JSON_NULL)
            continue;
        f->type->read(r, f, kid, &at, card_field_at(f, base));
        if (f->needs && r->problems->n_all == n_before && !r->is_out_of_memory)
            card_check_right(r, f, &at, base);
    }
    card_note_missing(r, t, v, s);
}

/* Constraints between fields. */

static void card_settle_name(struct card_reader *r,
                             const struct card_spot *whole,
                             const struct json *given, struct agent *out)
{
    const struct card_opts *o = r->opts;
    bool is_given = given && given->type != JSON_NULL;
    struct str must = o->before ? o->before->name : o->name;
    struct card_spot at = {whole,
                           o->dialect == CARD_CONFIG ? STR("id") : STR("name"),
                           0, is_given ? given->at : whole->at};

    if (!is_given && !must.n)
        card_problem(r, &at, "is missing");
    else if (!is_given || (must.n && !agent_name_is_valid(must)))
        /* A path may contain anything. */
        card_name.read(r, NULL, &(struct json){.type = JSON_STR, .s = must},
                       &at, &out->name);
    else if (out->name.n && must.n && !str_eq(out->name, must))
        card_problem(r, &at, "must be \"%.*s\", the name %s", STR_ARG(must),
                     o->before ? "that it has already" : "in the path");
    if (str_eq_nocase(out->name, STR("search")))
        card_problem(r, &at, "may not be \"search\": the path is taken");
}

static void card_settle_url(struct card_reader *r, struct agent *out)
{
    static const struct str head = {"ws-agent://", 11};
    char url[AGENT_NAME_MAX + 16];
    size_t n = out->name.n;

    if (out->url.n || n == 0 || n > AGENT_NAME_MAX)
        return;
    memcpy(url, head.p, head.n);
    memcpy(url + head.n, out->name.p, n);
    out->url = card_copy(r, (struct str){url, head.n + n});
}

/* In the stored form. */
static void card_check_size(struct card_reader *r,
                            const struct card_spot *whole,
                            const struct agent *a)
{
    struct json_out o;
    struct buf text;

    buf_init(&text, AGENT_CARD_MAX);
    o = json_out(&text);
    card_write(&o, a, CARD_STORED);
    if (text.over)
        card_problem(r, whole, "may have up to %d bytes in all",
                     AGENT_CARD_MAX);
    buf_fini(&text);
}

static enum err card_result(const struct card_reader *r)
{
    const struct card_problems *p = r->problems;

    if (r->is_out_of_memory)
        return ERR_NOMEM;
    if (p->n_all == 0)
        return OK;
    return p->n_forbidden == p->n_all ? ERR_NOT_ALLOWED : ERR_BAD_REQUEST;
}

static enum err card_read_tree(struct card_reader *r, const struct json *card,
                               struct agent *out)
{
    struct card_spot whole = {.at = card->at};
    struct str name = r->opts->dialect == CARD_CONFIG ? STR("id") : STR("name");

    r->problems->n = r->problems->n_all = r->problems->n_forbidden = 0;
    *out =
        (struct agent){.delegation = {.max_concurrent = -1, .max_depth = -1}};
    if (card->type != JSON_OBJ) {
        card_problem(r, &whole, "must be an object, not %s",
                     card_show(card).text);
        return card_result(r);
    }
    card_read_members(r, &card_fields, card, &whole, out);
    card_settle_name(r, &whole, json_get(card, name), out);
    card_settle_url(r, out);
    if (card_result(r) == OK && !r->is_stored)
        card_check_size(r, &whole, out);
    return card_result(r);
}

enum err card_read(struct arena *a, const struct json *card,
                   const struct card_opts *opts, struct agent *out,
                   struct card_problems *problems)
{
    struct card_reader r = {.arena = a, .opts = opts, .problems = problems};

    return card_read_tree(&r, card, out);
}

enum err card_read_stored(struct arena *a, struct str text, struct agent *out)
{
    const struct card_opts opts = {.rights = CARD_MAY_ALL};
    struct card_problems problems;
    struct card_reader r = {
        .arena = a, .opts = &opts, .problems = &problems, .is_stored = true};
    struct arena scratch;
    const struct json *card;
    enum err e;

    arena_init(&scratch, 64 * (size_t)AGENT_CARD_MAX);
    card = json_parse(&scratch, text, 0, NULL);
    if (card)
        e = card_read_tree(&r, card, out);
    else /* valid JSON without a tree: no memory */
        e = json_check(text, NULL) == ERR_SYNTAX ? ERR_SYNTAX : ERR_NOMEM;
    arena_fini(&scratch);
    return e == OK || e == ERR_NOMEM ? e : ERR_SYNTAX;
}

unsigned card_rights_of(const struct caller *c)
{
    if (caller_is_admin(c))
        return CARD_MAY_ALL;
    return c->scopes & SCOPE_AGENTS ? CARD_MAY_SHOW : 0;
}
