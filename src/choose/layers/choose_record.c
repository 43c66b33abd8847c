/* A decision as a row. Fields that lists filter by have a column; the rest is
 * one body of bytes, which only this file reads and writes:
 *
 *     version, numbers, strings, the vector, the candidates
 *
 * all little-endian, each string after its length. A plain decision without
 * candidates has a body of about a hundred bytes, one of eighteen agents with a
 * vector about two thousand. Real numbers are kept bit for bit, so that a
 * decision made again from them is the same. The zeros at the end of a vector
 * are omitted: more than half of a quick one.
 *
 * Rejected: JSON. Thirty-two candidates would take six kilobytes for every
 * message. */
#include "choose/layers/choose.h"

#include "base/fault.h"
#include "model/gate_result.h"
#include "model/record.h"

enum {
    BODY_VERSION = 4, /* 1 had no bands, levels and times; 2 had no tiers; 3
                       * had no prices and ceilings */
    BODY_MAX = 256 * 1024
};

/* The row. */

#define READ(field) MEMBER(struct decision, field)
#define BOTH(field) READ(field), .part = 1

static const struct column columns[] = {DECISION_COLUMNS(COLUMN_ROW)};

/* A row is written with every message, so there are few indexes: for the next
 * message of a conversation, for rows that the learning job has not seen, and
 * for a requester's own. The key follows each, so it is in the order of
 * lists. */
static const struct table_index indexes[] = {
    {.name = "decision_id", INDEX_ON(DECISION_ID), .is_unique = true},
    {.name = "decision_conversation",
     INDEX_ON(DECISION_REQUESTER, DECISION_CONVERSATION_ID)},
    {.name = "decision_requester", INDEX_ON(DECISION_REQUESTER)},
    {.name = "decision_open", INDEX_ON(DECISION_FOLLOWED)},
};

const struct table decision_table = {
    .name = "decision",
    .columns = columns,
    .n_columns = N_DECISION_COLUMNS,
    .n_key = 1,
    .is_counted = true,
    .indexes = indexes,
    .n_indexes = sizeof(indexes) / sizeof(indexes[0]),
};

static const struct table *const tables[] = {&decision_table};

const struct schema choose_schema = {"choose", tables, 1};

/* Writing the body. */

static void record_put_u64(struct buf *out, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        buf_add_char(out, (char)(v >> (8 * i)));
}

static void record_put_u32(struct buf *out, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        buf_add_char(out, (char)(v >> (8 * i)));
}

static void record_put_real(struct buf *out, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    record_put_u64(out, bits);
}

static void record_put_float(struct buf *out, float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof(bits));
    record_put_u32(out, bits);
}

static void record_put_str(struct buf *out, struct str s)
{
    record_put_u32(out, (uint32_t)s.n);
    buf_add_str(out, s);
}

/* A packed vector: scale and slack, then two planes of bytes. */
enum { VECTOR_HEAD = 8 };

static void record_put_vector(struct buf *out, struct str v)
{
    size_t n = v.n > VECTOR_HEAD ? (v.n - VECTOR_HEAD) / 2 : 0, kept = n;
    const char *high = n ? v.p + VECTOR_HEAD : "", *low = high + n;

    while (kept && !high[kept - 1] && !low[kept - 1])
        kept--;
    record_put_u32(out, (uint32_t)v.n);
    record_put_u32(out, (uint32_t)kept);
    if (kept == n) {
        buf_add_str(out, v);
        return;
    }
    buf_add_str(out, (struct str){v.p, VECTOR_HEAD});
    buf_add_str(out, (struct str){high, kept});
    buf_add_str(out, (struct str){low, kept});
    buf_add_str(out, (struct str){low + n, (v.n - VECTOR_HEAD) % 2});
}

static void record_put_rules(struct buf *out, const struct decision *d)
{
    const struct decision_rules *r = &d->rules;

    record_put_real(out, d->weights.semantic);
    record_put_real(out, d->weights.performance);
    record_put_real(out, d->weights.keyword);
    record_put_real(out, d->weights.recency);
    record_put_u32(out, r->layers_off);
    record_put_str(out, r->default_agent);
    record_put_real(out, r->threshold);
    record_put_real(out, r->text_blend);
    record_put_real(out, r->close_margin);
    record_put_real(out, r->explore);
    record_put_real(out, r->chance);
    record_put_u32(out, (uint32_t)r->has_intent |
                            (uint32_t)r->intent_is_ambiguous << 1 |
                            (uint32_t)r->intent_is_over_bindings << 2);
    record_put_real(out, r->intent_threshold);
    record_put_u32(out, (uint32_t)r->is_auto | (uint32_t)r->is_seed << 1 |
                            (uint32_t)r->is_centred << 2 |
                            (uint32_t)r->is_small_talk << 3 |
                            (uint32_t)r->trusts_all << 4);
    record_put_u32(out, r->unsure);
    record_put_real(out, r->alpha);
    record_put_u64(out, (uint64_t)r->n);
    record_put_real(out, r->second_margin);
}

static void record_put_intent(struct buf *out, const struct intent_answer *i)
{
    record_put_u32(out, (uint32_t)i->is_asked | (uint32_t)i->is_good << 1);
    if (!i->is_asked)
        return;
    record_put_str(out, i->agent);
    record_put_real(out, i->confidence);
    record_put_str(out, i->reasoning);
    record_put_str(out, i->why);
    record_put_u64(out, (uint64_t)i->took_ms);
}

static void record_put_candidate(struct buf *out, const struct candidate *c)
{
    record_put_str(out, c->agent);
    record_put_str(out, c->skill);
    record_put_str(out, c->keyword);
    record_put_float(out, c->signals.semantic);
    record_put_float(out, c->signals.cosine);
    record_put_float(out, c->signals.text);
    record_put_float(out, c->signals.learned);
    record_put_float(out, c->signals.discount);
    record_put_float(out, c->signals.performance);
    record_put_float(out, c->signals.keyword);
    record_put_float(out, c->signals.recency);
    record_put_real(out, c->score);
    record_put_float(out, c->level.mid);
    record_put_float(out, c->level.high);
    record_put_u32(out, (uint32_t)c->is_trusted | (uint32_t)c->is_taught << 1 |
                            (uint32_t)c->is_half << 2 |
                            (uint32_t)c->is_unpaid << 3);
    record_put_u64(out, (uint64_t)c->price_micros);
}

static void record_put_body(struct buf *out, const struct decision *d)
{
    buf_add_char(out, BODY_VERSION);
    record_put_real(out, d->score);
    record_put_real(out, d->margin);
    record_put_real(out, d->threshold);
    record_put_u32(
        out, (uint32_t)d->is_explored | (uint32_t)d->is_by_agent << 1 |
                 (uint32_t)d->is_unsure << 2 | (uint32_t)d->is_by_example << 3 |
                 (uint32_t)d->band << 4);
    record_put_u64(out, (uint64_t)d->decide_us);
    record_put_u64(out, d->text_hash);
    record_put_rules(out, d);
    record_put_str(out, d->executor);
    record_put_str(out, d->source);
    record_put_str(out, d->stuck_to);
    record_put_str(out, d->config_version);
    record_put_u64(out, (uint64_t)d->registry_version);
    record_put_u64(out, (uint64_t)d->learn_version);
    record_put_str(out, d->model);
    record_put_str(out, d->model_hash);
    record_put_vector(out, d->vector);
    record_put_u32(out, d->tier);
    record_put_str(out, d->tier_note);
    record_put_intent(out, &d->intent);
    record_put_u64(out, (uint64_t)d->n_considered);
    record_put_u32(out, (uint32_t)d->n_candidates);
    for (size_t i = 0; i < d->n_candidates; i++)
        record_put_candidate(out, &d->candidates[i]);
    record_put_u64(out, (uint64_t)d->price_micros);
    record_put_u64(out, (uint64_t)d->ceiling_micros);
    record_put_u32(out, d->is_by_price);
}

/* For lists; scores are between 0 and little more than 1. */
static struct value billionths(double v)
{
    return value_int((int64_t)(v * 1e9));
}

void choose_record(struct tx *tx, const struct decision *d)
{
    struct tx_op *op = tx_insert(tx, &decision_table);
    struct buf body;

    buf_init(&body, BODY_MAX);
    record_put_body(&body, d);
    if (body.over || FAULT("choose.record"))
        tx->build_error = ERR_NOMEM;
    record_to_tx(op, d, 1);
    tx_set(op, DECISION_SCORE, billionths(d->score));
    tx_set(op, DECISION_MARGIN, billionths(d->margin));
    tx_set(op, DECISION_BODY, value_blob(buf_str(&body)));
    /* A rejection has no task for the learning job. */
    if (d->layer == LAYER_NONE)
        tx_set(op, DECISION_FOLLOWED, value_int(0));
    buf_fini(&body);
}

/* Reading the body. The bytes are not trusted. */

struct reader {
    struct str rest;
    uint64_t version;
    bool is_bad;
};

static struct str record_take(struct reader *r, size_t n)
{
    struct str s = {r->rest.p, n};

    if (r->is_bad || r->rest.n < n) {
        r->is_bad = true;
        return (struct str){NULL, 0};
    }
    r->rest.p += n;
    r->rest.n -= n;
    return s;
}

static uint64_t get_number(struct reader *r, size_t n)
{
    struct str s = record_take(r, n);
    uint64_t v = 0;

    for (size_t i = s.n; i > 0; i--)
        v = v << 8 | (uint8_t)s.p[i - 1];
    return v;
}

static uint32_t get_u32(struct reader *r)
{
    return (uint32_t)get_number(r, 4);
}

static int64_t get_i64(struct reader *r)
{
    return (int64_t)get_number(r, 8);
}

static double get_real(struct reader *r)
{
    uint64_t bits = get_number(r, 8);
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static float get_float(struct reader *r)
{
    uint32_t bits = get_u32(r);
    float v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static struct str get_str(struct reader *r)
{
    return record_take(r, get_u32(r));
}

static enum err get_vector(struct reader *r, struct arena *a, struct str *out)
{
    size_t all = get_u32(r), kept = r->version < 3 ? 0 : get_u32(r);
    size_t n = all > VECTOR_HEAD ? (all - VECTOR_HEAD) / 2 : 0;
    struct str head, high, low, last;
    char *to;

    if (r->version < 3 || kept == n) {
        *out = record_take(r, all);
        return OK;
    }
    if (kept > n || all > BODY_MAX)
        return ERR_SYNTAX;
    head = record_take(r, VECTOR_HEAD);
    high = record_take(r, kept);
    low = record_take(r, kept);
    last = record_take(r, (all - VECTOR_HEAD) % 2);
    if (r->is_bad)
        return ERR_SYNTAX;
    to = arena_alloc(a, all); /* all zero */
    if (!to)
        return ERR_NOMEM;
    memcpy(to, head.p, head.n);
    if (kept) {
        memcpy(to + VECTOR_HEAD, high.p, kept);
        memcpy(to + VECTOR_HEAD + n, low.p, kept);
    }
    if (last.n)
        to[all - 1] = *last.p;
    *out = (struct str){to, all};
    return OK;
}

static void get_rules(struct reader *r, struct decision *d)
{
    struct decision_rules *rules = &d->rules;
    uint32_t flags, policy;

    d->weights.semantic = get_real(r);
    d->weights.performance = get_real(r);
    d->weights.keyword = get_real(r);
    d->weights.recency = get_real(r);
    rules->layers_off = get_u32(r);
    rules->default_agent = get_str(r);
    rules->threshold = get_real(r);
    rules->text_blend = get_real(r);
    rules->close_margin = get_real(r);
    rules->explore = get_real(r);
    rules->chance = get_real(r);
    flags = get_u32(r);
    rules->has_intent = flags & 1;
    rules->intent_is_ambiguous = flags >> 1 & 1;
    rules->intent_is_over_bindings = flags >> 2 & 1;
    rules->intent_threshold = get_real(r);
    if (r->version < 2)
        return;
    flags = get_u32(r);
    rules->is_auto = flags & 1;
    rules->is_seed = flags >> 1 & 1;
    rules->is_centred = flags >> 2 & 1;
    rules->is_small_talk = flags >> 3 & 1;
    rules->trusts_all = flags >> 4 & 1;
    policy = get_u32(r);
    r->is_bad |= policy > UNSURE_REFUSE;
    rules->unsure = r->is_bad ? UNSURE_AUTO : (enum unsure_policy)policy;
    rules->alpha = get_real(r);
    rules->n = get_i64(r);
    rules->second_margin = r->version < 3 ? 0 : get_real(r);
}

static void get_intent(struct reader *r, struct intent_answer *i)
{
    uint32_t flags = get_u32(r);

    i->is_asked = flags & 1;
    i->is_good = flags >> 1 & 1;
    if (!i->is_asked)
        return;
    i->agent = get_str(r);
    i->confidence = get_real(r);
    i->reasoning = get_str(r);
    i->why = get_str(r);
    i->took_ms = get_i64(r);
}

/* In older records a model had one tier. */
static void get_tier(struct reader *r, struct decision *d)
{
    uint32_t tier;

    if (r->version < 3)
        return;
    tier = get_u32(r);
    d->tier_note = get_str(r);
    r->is_bad |= tier >= N_TIERS;
    d->tier = r->is_bad ? TIER_NONE : (enum tier)tier;
}

static void get_candidate(struct reader *r, struct candidate *c)
{
    uint32_t flags;

    c->agent = get_str(r);
    c->skill = get_str(r);
    c->keyword = get_str(r);
    c->signals.semantic = get_float(r);
    c->signals.cosine = get_float(r);
    c->signals.text = get_float(r);
    c->signals.learned = get_float(r);
    c->signals.discount = get_float(r);
    c->signals.performance = get_float(r);
    c->signals.keyword = get_float(r);
    c->signals.recency = get_float(r);
    c->score = get_real(r);
    c->level = (struct card_level){-1, -1};
    c->price_micros = -1;
    if (r->version < 2)
        return;
    c->level.mid = get_float(r);
    c->level.high = get_float(r);
    flags = get_u32(r);
    c->is_trusted = flags & 1;
    c->is_taught = flags >> 1 & 1;
    c->is_half = flags >> 2 & 1;
    c->is_unpaid = flags >> 3 & 1;
    c->price_micros = r->version < 4 ? -1 : get_i64(r);
}

static enum err get_candidates(struct reader *r, struct arena *a,
                               struct decision *d)
{
    size_t n = get_u32(r);
    struct candidate *list;

    if (r->is_bad || n > DECISION_CANDIDATES_MAX)
        return ERR_SYNTAX;
    list = arena_array(a, n ? n : 1, sizeof(*list));
    if (!list)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        get_candidate(r, &list[i]);
    choose_cutoffs(&d->rules, list, n);
    d->candidates = list;
    d->n_candidates = n;
    return OK;
}

static enum err get_body(struct str body, struct arena *a, struct decision *d)
{
    uint32_t flags;
    struct reader r = {.rest = body};
    enum err e;

    r.version = get_number(&r, 1);
    if (r.version < 1 || r.version > BODY_VERSION)
        return ERR_SYNTAX;
    d->score = get_real(&r);
    d->margin = get_real(&r);
    d->threshold = get_real(&r);
    flags = get_u32(&r);
    d->is_explored = flags & 1;
    d->is_by_agent = flags >> 1 & 1;
    d->is_unsure = flags >> 2 & 1;
    d->is_by_example = flags >> 3 & 1;
    if (flags >> 4 > BAND_OUT_OF_SCOPE)
        return ERR_SYNTAX;
    d->band = (enum band)(flags >> 4);
    d->decide_us = r.version < 2 ? -1 : get_i64(&r);
    d->text_hash = r.version < 2 ? 0 : get_number(&r, 8);
    get_rules(&r, d);
    d->executor = get_str(&r);
    d->source = get_str(&r);
    d->stuck_to = get_str(&r);
    d->config_version = get_str(&r);
    d->registry_version = get_i64(&r);
    d->learn_version = get_i64(&r);
    d->model = get_str(&r);
    d->model_hash = get_str(&r);
    e = get_vector(&r, a, &d->vector);
    if (e)
        return e;
    get_tier(&r, d);
    get_intent(&r, &d->intent);
    d->n_considered = get_i64(&r);
    e = get_candidates(&r, a, d);
    d->price_micros = r.version < 4 ? -1 : get_i64(&r);
    d->ceiling_micros = r.version < 4 ? -1 : get_i64(&r);
    d->is_by_price = r.version >= 4 && get_u32(&r) & 1;
    return e ? e : r.is_bad || r.rest.n ? ERR_SYNTAX : OK;
}

enum err decision_from_row(struct arena *a, const struct row *r,
                           struct decision *out)
{
    int64_t layer = row_int(r, DECISION_LAYER);

    *out = (struct decision){.seq = 0};
    record_from_row(out, &decision_table, r);
    /* A value of a later version counts as unknown. */
    if (out->gate < 0 || out->gate >= N_GATE_ANSWERS)
        out->gate = 0;
    if (out->verdict > VERDICT_NEUTRAL)
        out->verdict = VERDICT_OPEN;
    if (row_is_null(r, DECISION_ANSWER_CHARS))
        out->answer_chars = -1;
    if (row_is_null(r, DECISION_LATENCY_MS))
        out->latency_ms = -1;
    if (layer < LAYER_EXPLICIT || layer >= N_LAYERS)
        return ERR_SYNTAX;
    return get_body(row_str(r, DECISION_BODY), a, out);
}
