/* Repeats: fingerprints of the fields that two messages have in common.
 *
 * A key is made of the rule, the scope of the message, and the fields that the
 * rule names. Two messages with the same key are the same for that rule. Keys
 * are stored with what was let in and survive restarts, so the way they are
 * made must not change. They are 128 bits of SipHash with constant seeds: a
 * sender who finds a collision gains nothing but the loss of a message of their
 * own. */
#include "gate/rules/evaluation.h"

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

static struct gate_key text_key(struct str s)
{
    return (struct gate_key){
        {hash_bytes(s, seeds[0]), hash_bytes(s, seeds[1])}};
}

static void put_bytes(struct key_text *t, const void *p, size_t n)
{
    /* If the fields do not fit, those so far are folded into a key. */
    if (n > sizeof(t->bytes) - t->n) {
        struct gate_key k = text_key((struct str){t->bytes, t->n});

        memcpy(t->bytes, &k, sizeof(k));
        t->n = sizeof(k);
    }
    memcpy(t->bytes + t->n, p, n);
    t->n += n;
}

/* The length comes first, so that "ab","c" is not "a","bc". */
static void put_field(struct key_text *t, struct str s)
{
    uint32_t n = (uint32_t)s.n;
    struct gate_key k;

    put_bytes(t, &n, sizeof(n));
    if (s.n > FIELD_BYTES) {
        k = text_key(s);
        put_bytes(t, &k, sizeof(k));
    } else if (s.n) {
        put_bytes(t, s.p, s.n);
    }
}

static void put_folded_name(struct key_text *t, struct str s)
{
    char lower[ENVELOPE_NAME_MAX];

    if (s.n <= sizeof(lower))
        s = str_lowered(s, lower, sizeof(lower));
    put_field(t, s);
}

static uint64_t mix_hashes(uint64_t a, uint64_t b, unsigned half)
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
        return mix_hashes(JSON_REAL, bits, half);
    }
    return mix_hashes(JSON_INT, (uint64_t)i, half);
}

/* The order of members does not matter; the order of elements does. Trees are
 * at most JSON_DEPTH_MAX deep. */
static uint64_t tree_hash(const struct json *v, unsigned half)
{
    uint64_t h = v->type;

    switch (v->type) {
    case JSON_NULL: return mix_hashes(JSON_NULL, 0, half);
    case JSON_BOOL: return mix_hashes(JSON_BOOL, v->b, half);
    case JSON_INT:
    case JSON_REAL: return number_hash(v, half);
    case JSON_STR:
        return mix_hashes(JSON_STR, hash_bytes(v->s, seeds[half]), half);
    case JSON_ARR:
        JSON_EACH(kid, v) h = mix_hashes(h, tree_hash(kid, half), half);
        return h;
    case JSON_OBJ:
        JSON_EACH(kid, v)
        h += mix_hashes(hash_bytes(kid->key, seeds[half]), tree_hash(kid, half),
                        half);
        return mix_hashes(JSON_OBJ, h, half);
    }
    return h;
}

static struct gate_key tree_key(const struct json *v)
{
    return (struct gate_key){{tree_hash(v, 0), tree_hash(v, 1)}};
}

/* A missing payload and an empty one are the same. */
static const struct gate_key *payload_key(struct evaluation *ev)
{
    const struct json *fields;

    if (ev->has_payload_key)
        return &ev->payload_key;
    ev->has_payload_key = true;
    fields = eval_fields(ev);
    if (fields && (fields->type != JSON_OBJ || fields->kids.n))
        ev->payload_key = tree_key(fields);
    else if (!fields && ev->e->payload.n)
        ev->payload_key = text_key(ev->e->payload);
    return &ev->payload_key;
}

static bool put_path(struct key_text *t, struct evaluation *ev,
                     struct strs path)
{
    const struct json *v = eval_fields(ev);
    struct gate_key k = {{0, 0}};

    for (size_t i = 0; v && i < path.n; i++)
        v = json_get(v, path.list[i]);
    if (v && v->type != JSON_NULL)
        k = tree_key(v);
    put_bytes(t, &k, sizeof(k));
    return v && v->type != JSON_NULL;
}

/* False: the envelope has no such field. */
static bool put_same(struct key_text *t, struct evaluation *ev,
                     const struct same_field *f)
{
    const struct envelope *e = ev->e;
    uint8_t kind = (uint8_t)f->kind;

    put_bytes(t, &kind, 1);
    switch (f->kind) {
    case SAME_FROM: put_folded_name(t, e->from); return true;
    case SAME_TO: put_folded_name(t, e->to); return true;
    case SAME_TYPE: put_field(t, e->type); return true;
    case SAME_REFERENCE: put_field(t, e->reference); return e->reference.n > 0;
    case SAME_PAYLOAD:
        put_bytes(t, payload_key(ev), sizeof(struct gate_key));
        if (e->is_message ||
            !(ev->payload_key.bits[0] | ev->payload_key.bits[1]))
            put_field(t, e->context); /* the words are all it says */
        return true;
    case SAME_PATH: return put_path(t, ev, f->path);
    }
    return false;
}

/* Repeats may both lack a field. Two messages that are about the same thing
 * must both name that thing. */
static bool rule_key(struct evaluation *ev, const struct rule *r,
                     struct gate_key *out)
{
    struct key_text t;

    t.n = 0;
    put_field(&t, r->name);
    put_field(&t, ev->e->scope);
    for (size_t i = 0; i < r->like.n_same; i++)
        if (!put_same(&t, ev, &r->like.same[i]) &&
            r->section == SECTION_ESCALATIONS)
            return false;
    *out = text_key((struct str){t.bytes, t.n});
    return true;
}

static bool message_id_key(const struct envelope *e, struct gate_key *out)
{
    struct key_text t;

    if (!e->message_id.n)
        return false;
    t.n = 0;
    put_field(&t, STR("message_id"));
    put_field(&t, e->scope);
    put_folded_name(&t, e->from);
    put_field(&t, e->message_id);
    *out = text_key((struct str){t.bytes, t.n});
    return true;
}

/* How long a message id is remembered: as long as the rules accept the envelope
 * by its timestamp. Where they set no age limit that would be forever, so it is
 * a week, after which the same envelope is accepted again. The server's own
 * limit, gate.maxAgeMs, is not known here. */
static int64_t message_id_keep_ms(const struct gate_rules *r)
{
    const struct gate_limits *l = &r->about.limits;

    return l->age_ms ? l->age_ms + l->future_ms : ID_KEEP_MS;
}

static bool was_let_in(struct evaluation *ev, const struct gate_key *k,
                       int64_t within_ms, struct gate_seen *seen)
{
    *seen = (struct gate_seen){.at_ms = 0};
    if (!ev->view->seen || !ev->view->seen(ev->view->ctx, k, seen))
        return false;
    /* After the clock was set back an earlier message lies ahead. It counts
     * only within the window: otherwise it would count forever. */
    return eval_age(ev, seen->at_ms) < within_ms &&
           -eval_age(ev, seen->at_ms) < within_ms;
}

/* The payload could not be parsed for lack of memory, so the comparison is
 * impossible. */
static bool lacks_fields(const struct evaluation *ev)
{
    return ev->has_fields && !ev->fields && ev->e->payload.n;
}

bool gate_is_about_the_same(struct evaluation *ev, const struct rule *r,
                            struct gate_seen *seen)
{
    struct str why = STR("none like it was let in lately");
    struct gate_key k;

    /* A held message is in the past itself, and later messages were compared
     * with it. */
    if (ev->e->has_entered)
        why = STR("it was let in before");
    else if (!rule_key(ev, r, &k) && !lacks_fields(ev))
        why = STR("it lacks a field that two must have in common");
    else if (lacks_fields(ev)) {
        why = STR("its payload cannot be read");
        if (!ev->unjudged)
            ev->unjudged = r;
    } else if (was_let_in(ev, &k, r->like.within_ms, seen) &&
               !(seen->message_id.n &&
                 str_eq(seen->message_id, ev->e->message_id)))
        return true;
    eval_trace(ev, section_name(r->section), r, false, why);
    return false;
}

static void say_repeated(struct evaluation *ev, struct str how,
                         const struct gate_seen *seen)
{
    SAY(&ev->reason, how, seen->message_id.n ? seen->message_id : STR("one"),
        STR(", "));
    phrase_add_age(&ev->reason, eval_age(ev, seen->at_ms));
    phrase_add(&ev->reason, STR(" ago"));
    ev->out->repeats = seen->message_id;
}

static bool drop_repeat(struct evaluation *ev, enum section s,
                        enum gate_cause cause, struct str how)
{
    struct each i = each_of(ev, s);
    const struct rule *r;

    while ((r = each_next(&i))) {
        struct gate_seen seen;

        if (!gate_is_about_the_same(ev, r, &seen))
            continue;
        say_repeated(ev, how, &seen);
        eval_trace(ev, section_name(s), r, true, str_of(ev->out->reason));
        return eval_answer(ev, GATE_DROP, cause, r);
    }
    return false;
}

bool gate_is_repeated(struct evaluation *ev)
{
    struct gate_seen seen;
    struct gate_key k;

    if (message_id_key(ev->e, &k)) {
        bool is_again =
            was_let_in(ev, &k, message_id_keep_ms(ev->rules), &seen);

        if (is_again)
            say_repeated(ev, STR("its message_id is that of "), &seen);
        eval_trace(ev, STR("message_id"), NULL, is_again,
                   is_again ? str_of(ev->out->reason) : STR("it is new"));
        if (is_again)
            return eval_answer(ev, GATE_DROP, PASS_REPEATED, NULL);
    }
    return drop_repeat(ev, SECTION_DUPLICATES, PASS_REPEATED,
                       STR("it repeats "));
}

bool gate_is_superseded(struct evaluation *ev)
{
    return drop_repeat(ev, SECTION_SUPERSEDING, PASS_SUPERSEDED,
                       STR("one like it is on its way already: "));
}

/* A rule is found once for each priority it is for; the first one counts. */
static bool is_first_priority(const struct rule *r, unsigned priority)
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

/* All priorities, because other rules may raise the priority of a later
 * message, and the match is checked against that message. */
static enum err add_rule_marks(struct evaluation *ev, enum section s,
                               struct arena *arena, struct gate_marks *out)
{
    const struct rule *r;
    struct gate_key key;
    enum err e = OK;

    for (unsigned p = PRIORITY_URGENT; p <= PRIORITY_LOW; p++) {
        struct each i = each_of(ev, s);

        ev->pick.priority = (enum task_priority)p;
        while (!e && (r = each_any(&i)))
            if (is_first_priority(r, p) &&
                !(s == SECTION_ESCALATIONS && !r->like.n_same) &&
                rule_key(ev, r, &key))
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
    struct evaluation ev = {
        .rules = r, .e = e, .scratch = &scratch, .room = EVAL_ROOM};
    struct gate_key key;
    enum err err = OK;

    arena_init_in(&scratch, SCRATCH_MAX, bytes, sizeof(bytes));
    *out = (struct gate_marks){.n = 0};
    rules_pick(&ev.pick, r, e);
    if (message_id_key(e, &key))
        err = add_mark(arena, out, key, message_id_keep_ms(r));
    for (size_t i = 0; i < sizeof(of) / sizeof(*of) && !err; i++)
        err = add_rule_marks(&ev, of[i], arena, out);
    arena_fini(&scratch);
    return err;
}
