/* The same again: fingerprints of what two messages have in common.
 *
 * A key is of a rule, of whose messages they are, and of the fields that the
 * rule names: two messages that one key is made of are the same for that rule.
 * Keys are kept with what was let in, across restarts, so how they are made
 * must not change. They are 128 bits by SipHash with constants: nobody gains by
 * finding two that are alike but the loss of a message of their own. */
#include "gate/asked.h"

#include <stdalign.h>

static const uint64_t seeds[2][2] = {
    {UINT64_C(0x7369676e616c626f), UINT64_C(0x782d676174652d31)},
    {UINT64_C(0x73616d652d6b6579), UINT64_C(0x782d676174652d32)},
};

#define ID_KEEP_MS (7 * INT64_C(86400000))

enum { KEY_BYTES = 2048, FIELD_BYTES = 200 };

struct key_text {
    char bytes[KEY_BYTES];
    size_t n;
};

static struct gate_key key_of(struct str s)
{
    return (struct gate_key){
        {hash_bytes(s, seeds[0]), hash_bytes(s, seeds[1])}};
}

static void put_bytes(struct key_text *t, const void *p, size_t n)
{
    /* Rules name few fields; more than fit are folded into a key first. */
    if (n > sizeof(t->bytes) - t->n) {
        struct gate_key k = key_of((struct str){t->bytes, t->n});

        memcpy(t->bytes, &k, sizeof(k));
        t->n = sizeof(k);
    }
    memcpy(t->bytes + t->n, p, n);
    t->n += n;
}

/* With its length, so that "ab","c" is not "a","bc". */
static void put_field(struct key_text *t, struct str s)
{
    uint32_t n = (uint32_t)s.n;
    struct gate_key k;

    put_bytes(t, &n, sizeof(n));
    if (s.n > FIELD_BYTES) {
        k = key_of(s);
        put_bytes(t, &k, sizeof(k));
    } else if (s.n) {
        put_bytes(t, s.p, s.n);
    }
}

static void put_name(struct key_text *t, struct str s)
{
    char lower[ENVELOPE_NAME_MAX];

    if (s.n <= sizeof(lower))
        s = str_lowered(s, lower, sizeof(lower));
    put_field(t, s);
}

static uint64_t mix(uint64_t a, uint64_t b, unsigned half)
{
    uint64_t both[2] = {a, b};

    return hash_bytes((struct str){(const char *)both, sizeof(both)},
                      seeds[half]);
}

/* A number is the same however it is written: 1, 1.0 and 1e0. */
static uint64_t number_hash(const struct json *v, unsigned half)
{
    double d = v->type == JSON_INT ? (double)v->i : v->d;
    int64_t i = v->type == JSON_INT ? v->i : 0;
    uint64_t bits;

    if (v->type == JSON_REAL && d >= -9e15 && d <= 9e15 &&
        d == (double)(int64_t)d)
        i = (int64_t)d;
    else if (v->type == JSON_REAL) {
        memcpy(&bits, &d, sizeof(bits));
        return mix(JSON_REAL, bits, half);
    }
    return mix(JSON_INT, (uint64_t)i, half);
}

/* Members in any order give the same sum; elements do not. Trees are at most
 * JSON_DEPTH_MAX deep. */
static uint64_t tree_hash(const struct json *v, unsigned half)
{
    uint64_t h = v->type;

    switch (v->type) {
    case JSON_NULL: return mix(JSON_NULL, 0, half);
    case JSON_BOOL: return mix(JSON_BOOL, v->b, half);
    case JSON_INT:
    case JSON_REAL: return number_hash(v, half);
    case JSON_STR: return mix(JSON_STR, hash_bytes(v->s, seeds[half]), half);
    case JSON_ARR:
        JSON_EACH(kid, v) h = mix(h, tree_hash(kid, half), half);
        return h;
    case JSON_OBJ:
        JSON_EACH(kid, v)
        h += mix(hash_bytes(kid->key, seeds[half]), tree_hash(kid, half), half);
        return mix(JSON_OBJ, h, half);
    }
    return h;
}

static struct gate_key tree_key(const struct json *v)
{
    return (struct gate_key){{tree_hash(v, 0), tree_hash(v, 1)}};
}

/* No payload and an empty one are the same. */
static const struct gate_key *payload_key(struct asked *a)
{
    const struct json *fields;

    if (a->has_payload_key)
        return &a->payload_key;
    a->has_payload_key = true;
    fields = asked_fields(a);
    if (fields && (fields->type != JSON_OBJ || fields->kids.n))
        a->payload_key = tree_key(fields);
    else if (!fields && a->e->payload.n)
        a->payload_key = key_of(a->e->payload);
    return &a->payload_key;
}

static bool put_path(struct key_text *t, struct asked *a, struct strs path)
{
    const struct json *v = asked_fields(a);
    struct gate_key k = {{0, 0}};

    for (size_t i = 0; v && i < path.n; i++)
        v = json_get(v, path.list[i]);
    if (v && v->type != JSON_NULL)
        k = tree_key(v);
    put_bytes(t, &k, sizeof(k));
    return v && v->type != JSON_NULL;
}

/* False: it has no such field. */
static bool put_same(struct key_text *t, struct asked *a,
                     const struct same_field *f)
{
    const struct envelope *e = a->e;
    uint8_t kind = (uint8_t)f->kind;

    put_bytes(t, &kind, 1);
    switch (f->kind) {
    case SAME_FROM: put_name(t, e->from); return true;
    case SAME_TO: put_name(t, e->to); return true;
    case SAME_TYPE: put_field(t, e->type); return true;
    case SAME_REFERENCE: put_field(t, e->reference); return e->reference.n > 0;
    case SAME_PAYLOAD:
        put_bytes(t, payload_key(a), sizeof(struct gate_key));
        if (e->is_message || !(a->payload_key.bits[0] | a->payload_key.bits[1]))
            put_field(t, e->context); /* its words are all that it says */
        return true;
    case SAME_PATH: return put_path(t, a, f->path);
    }
    return false;
}

/* What a rule means that names no fields. */
static const struct same_field everything[] = {
    {.kind = SAME_FROM},      {.kind = SAME_TO},      {.kind = SAME_TYPE},
    {.kind = SAME_REFERENCE}, {.kind = SAME_PAYLOAD},
};
enum { N_EVERYTHING = sizeof(everything) / sizeof(*everything) };

/* Repeats may lack the same things. Two that are said to be about the same
 * must both say what they are about. */
static bool rule_key(struct asked *a, const struct rule *r,
                     struct gate_key *out)
{
    const struct same_field *same = r->like.same;
    size_t n = r->like.n_same;
    struct key_text t;

    if (!n) {
        same = everything;
        n = r->section == SECTION_DUPLICATES ? N_EVERYTHING : 3;
    }
    t.n = 0;
    put_field(&t, r->name);
    put_field(&t, a->e->scope);
    for (size_t i = 0; i < n; i++)
        if (!put_same(&t, a, &same[i]) && r->section == SECTION_ESCALATIONS)
            return false;
    *out = key_of((struct str){t.bytes, t.n});
    return true;
}

static bool id_key(const struct envelope *e, struct gate_key *out)
{
    struct key_text t;

    if (!e->message_id.n)
        return false;
    t.n = 0;
    put_field(&t, STR("message_id"));
    put_field(&t, e->scope);
    put_name(&t, e->from);
    put_field(&t, e->message_id);
    *out = key_of((struct str){t.bytes, t.n});
    return true;
}

/* For as long as the rules take the envelope, by its timestamp. Where they name
 * no age it would be for ever, so it is a week: after that the same envelope is
 * taken anew. The server's own limit, gate.maxAgeMs, is not known here. */
static int64_t id_keep_ms(const struct gate_rules *r)
{
    const struct gate_limits *l = &r->about.limits;

    return l->age_ms ? l->age_ms + l->future_ms : ID_KEEP_MS;
}

static bool is_seen(struct asked *a, const struct gate_key *k,
                    int64_t within_ms, struct gate_seen *seen)
{
    *seen = (struct gate_seen){.at_ms = 0};
    if (!a->view->seen || !a->view->seen(a->view->ctx, k, seen))
        return false;
    /* After a clock was set back the past lies ahead, but not further than a
     * window does: else it would be waited for, for ever. */
    return asked_age(a, seen->at_ms) < within_ms &&
           -asked_age(a, seen->at_ms) < within_ms;
}

/* It was looked for, and there is no memory for it: whether it is the same as
 * another cannot be told. */
static bool lacks_fields(const struct asked *a)
{
    return a->has_fields && !a->fields && a->e->payload.n;
}

bool gate_is_about_the_same(struct asked *a, const struct rule *r,
                            struct gate_seen *seen)
{
    struct str why = STR("none like it was let in lately");
    struct gate_key k;

    /* One that waited is in the past itself; what came after it was held
     * against it. */
    if (a->e->has_entered)
        why = STR("it was let in before");
    else if (!rule_key(a, r, &k) && !lacks_fields(a))
        why = STR("it lacks a field that two must have in common");
    else if (lacks_fields(a)) {
        why = STR("its payload cannot be read");
        if (!a->unjudged)
            a->unjudged = r;
    } else if (is_seen(a, &k, r->like.within_ms, seen) &&
               !(seen->message_id.n &&
                 str_eq(seen->message_id, a->e->message_id)))
        return true;
    asked_tell(a, section_name(r->section), r, false, why);
    return false;
}

static void say_again(struct asked *a, struct str how,
                      const struct gate_seen *seen)
{
    SAY(&a->reason, how, seen->message_id.n ? seen->message_id : STR("one"),
        STR(", "));
    phrase_add_age(&a->reason, asked_age(a, seen->at_ms));
    phrase_add(&a->reason, STR(" ago"));
    a->out->repeats = seen->message_id;
}

static bool is_dropped(struct asked *a, enum section s, enum pass_cause cause,
                       struct str how)
{
    struct each i = each_of(a, s);
    const struct rule *r;

    while ((r = each_next(&i))) {
        struct gate_seen seen;

        if (!gate_is_about_the_same(a, r, &seen))
            continue;
        say_again(a, how, &seen);
        asked_tell(a, section_name(s), r, true, str_of(a->out->reason));
        return asked_answer(a, GATE_DROP, cause, r);
    }
    return false;
}

bool gate_is_repeated(struct asked *a)
{
    struct gate_seen seen;
    struct gate_key k;

    if (id_key(a->e, &k)) {
        bool is_again = is_seen(a, &k, id_keep_ms(a->rules), &seen);

        if (is_again)
            say_again(a, STR("its message_id is that of "), &seen);
        asked_tell(a, STR("message_id"), NULL, is_again,
                   is_again ? str_of(a->out->reason) : STR("it is new"));
        if (is_again)
            return asked_answer(a, GATE_DROP, PASS_REPEATED, NULL);
    }
    return is_dropped(a, SECTION_DUPLICATES, PASS_REPEATED, STR("it repeats "));
}

bool gate_is_superseded(struct asked *a)
{
    return is_dropped(a, SECTION_SUPERSEDING, PASS_SUPERSEDED,
                      STR("one like it is on its way already: "));
}

/* A rule is found by each priority it is for: it counts by the first. */
static bool is_first(const struct rule *r, unsigned priority)
{
    uint8_t lower = (uint8_t)((1u << priority) - 1);

    return r->match.priorities ? !(r->match.priorities & lower) : !priority;
}

static enum err add_mark(struct arena *arena, struct gate_marks *out,
                         struct gate_key key, int64_t keep_ms)
{
    size_t max = out->max ? 2 * out->max : 8;
    struct gate_mark *list;

    if (out->n == out->max) {
        list = arena_array(arena, max, sizeof(*list));
        if (!list)
            return ERR_NOMEM;
        if (out->n)
            memcpy(list, out->list, out->n * sizeof(*list));
        out->list = list;
        out->max = max;
    }
    out->list[out->n++] = (struct gate_mark){key, keep_ms};
    return OK;
}

/* Whatever its priority, which other rules may raise: whom a rule is for in
 * that respect is asked of the later one. */
static enum err mark(struct asked *a, enum section s, struct arena *arena,
                     struct gate_marks *out)
{
    const struct rule *r;
    struct gate_key key;
    enum err e = OK;

    for (unsigned p = PRIORITY_URGENT; p <= PRIORITY_LOW; p++) {
        struct each i = each_of(a, s);

        a->pick.priority = (enum task_priority)p;
        while (!e && (r = each_any(&i)))
            if (is_first(r, p) &&
                !(s == SECTION_ESCALATIONS && !r->like.n_same) &&
                rule_key(a, r, &key))
                e = add_mark(arena, out, key, r->like.within_ms);
    }
    return e;
}

enum err gate_marks(const struct gate_rules *r, const struct envelope *e,
                    struct arena *arena, struct gate_marks *out)
{
    static const enum section of[] = {SECTION_DUPLICATES, SECTION_SUPERSEDING,
                                      SECTION_ESCALATIONS};
    alignas(max_align_t) char bytes[SCRATCH_BYTES];
    struct arena scratch;
    struct asked a = {
        .rules = r, .e = e, .scratch = &scratch, .room = ASKED_ROOM};
    struct gate_key key;
    enum err err = OK;

    arena_init_in(&scratch, SCRATCH_MAX, bytes, sizeof(bytes));
    *out = (struct gate_marks){.n = 0};
    rules_pick(&a.pick, r, e);
    if (id_key(e, &key))
        err = add_mark(arena, out, key, id_keep_ms(r));
    for (size_t i = 0; i < sizeof(of) / sizeof(*of) && !err; i++)
        err = mark(&a, of[i], arena, out);
    arena_fini(&scratch);
    return err;
}
