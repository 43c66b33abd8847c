/* Reads the answer of an untrusted provider.
 *
 * The body is validated once as JSON and then read in place: a tree of it would
 * take about forty times the memory, and the provider would decide how much.
 * Vectors are assigned by "index", not by their order: OpenAI promises only the
 * former.
 *
 * A fault in one vector (NaN, all zero, too short) fails only its text; a fault
 * in the whole answer (too few vectors, duplicates) makes all of it unusable,
 * since guessing is not safe. */
#include "embed/reply.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/json.h"
#include "base/vec.h"
#include "embed/embed.h"

#define NO_INDEX INT64_MIN

/* Vectors. */

static const char *base64_end(struct str s)
{
    while (s.n && s.p[s.n - 1] == '=')
        s.n--;
    return s.p + s.n;
}

/* The length of a vector in either form; zero: it is not a vector. Escapes in
 * base64 are not supported: only "\/" could occur. */
static size_t reply_count_numbers(struct str v)
{
    struct str rest = v, unused;
    size_t n = 0;

    if (v.n >= 2 && v.p[0] == '"') {
        struct str text = str_sub(v, 1, v.n - 1);

        n = (size_t)(base64_end(text) - text.p) * 6 / 8;
        return n % sizeof(float) ? 0 : n / sizeof(float);
    }
    while (n <= EMBED_DIMS_MAX && json_next(&rest, &unused))
        n++;
    return n;
}

static bool read_numbers(struct str v, float *out, uint32_t dims)
{
    struct str rest = v, raw;
    double d;

    for (uint32_t i = 0; i < dims; i++) {
        if (!json_next(&rest, &raw) || !json_number(raw, &d))
            return false;
        out[i] = (float)d;
    }
    return true;
}

/* Four bytes each, lowest first, as on x86. */
static bool reply_read_base64(struct str v, float *out, uint32_t dims)
{
    struct str text = str_sub(v, 1, v.n - 1);
    const char *end = base64_end(text);
    unsigned char *to = (unsigned char *)out;
    size_t n = 0;
    uint32_t bits = 0;
    int n_bits = 0;

    for (const char *p = text.p; p < end; p++) {
        int value = str_base64_value(*p);

        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        n_bits += 6;
        if (n_bits < 8)
            continue;
        n_bits -= 8;
        if (n < dims * sizeof(float))
            to[n] = (unsigned char)(bits >> n_bits);
        n++;
    }
    return n == dims * sizeof(float);
}

static bool is_finite(const float *v, uint32_t dims)
{
    for (uint32_t i = 0; i < dims; i++)
        if (!isfinite(v[i]))
            return false;
    return true;
}

/* Fill one vector; returns its fault, or NULL. */
static const char *reply_read_vector(struct str v, float *out, uint32_t dims)
{
    bool is_text = v.n && v.p[0] == '"';

    if (!(is_text ? reply_read_base64 : read_numbers)(v, out, dims))
        return "has something in it that is no number";
    if (!is_finite(out, dims))
        return "has a number in it that is too large, or none";
    if (!vec_normalise(out, dims))
        return "is all zero";
    return NULL;
}

static void take_vector(struct reply *r, size_t i, struct str v)
{
    float *out = r->vectors + i * r->dims;
    size_t n = reply_count_numbers(v);
    const char *wrong = NULL;

    r->has_lengths |= n != r->dims;
    if (n != r->dims)
        why_err(&r->why, OK,
                "a vector has %zu numbers where %u were asked for or came "
                "before; if the model is another one now, set "
                "embed.http.dimensions and restart",
                n, r->dims);
    else if ((wrong = reply_read_vector(v, out, r->dims)))
        why_err(&r->why, OK, "a vector %s", wrong);
    r->is_good[i] = n == r->dims && !wrong;
    r->n_good += r->is_good[i];
    if (!r->is_good[i])
        memset(out, 0, r->dims * sizeof(*out));
}

/* The answer. */

struct element {
    int64_t index; /* NO_INDEX: not given */
    struct str vector;
};

static bool read_element(struct str raw, struct element *out)
{
    static const struct str keys[] = {{"index", 5}, {"embedding", 9}};
    struct str values[2];

    if (json_scan(raw, keys, 2, values, NULL) || !values[1].n)
        return false;
    out->vector = values[1];
    out->index = NO_INDEX;
    return !values[0].n || str_to_i64(values[0], &out->index) == OK;
}

static enum err reply_alloc(struct reply *r, size_t n, struct str first,
                            struct why *why)
{
    size_t dims = r->dims ? r->dims : reply_count_numbers(first);

    if (dims == 0 || dims > EMBED_DIMS_MAX)
        return why_err(why, ERR_BAD_REQUEST,
                       "a vector must have 1 to %d numbers, and has %s",
                       EMBED_DIMS_MAX, dims ? "more" : "none");
    r->dims = (uint32_t)dims;
    if (!FAULT("embed.reply")) {
        r->vectors = calloc(n, dims * sizeof(*r->vectors));
        r->is_good = calloc(n, 2 * sizeof(*r->is_good));
    }
    if (r->vectors && r->is_good)
        return OK;
    return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
}

/* Read element number `at`. The second half of is_good records the indexes
 * seen. */
static enum err reply_take_element(struct reply *r, size_t n, size_t at,
                                   struct str raw, struct why *why)
{
    struct element el;
    bool *is_seen;
    enum err e;

    if (at == n)
        return why_err(why, ERR_BAD_REQUEST,
                       "more vectors came than the %zu that were asked for", n);
    if (!read_element(raw, &el))
        return why_err(why, ERR_BAD_REQUEST,
                       "a vector has no \"embedding\" or no \"index\"");
    /* A single element needs no index. */
    if (el.index == NO_INDEX && n == 1)
        el.index = 0;
    if (el.index < 0 || (uint64_t)el.index >= n)
        return why_err(why, ERR_BAD_REQUEST,
                       "a vector has an \"index\" beyond the %zu texts", n);
    if (!r->vectors && (e = reply_alloc(r, n, el.vector, why)))
        return e;
    is_seen = &r->is_good[n + (size_t)el.index];
    if (*is_seen)
        return why_err(why, ERR_BAD_REQUEST,
                       "two vectors have the \"index\" %lld",
                       (long long)el.index);
    *is_seen = true;
    take_vector(r, (size_t)el.index, el.vector);
    return OK;
}

/* Quotes none of its bytes, which may repeat our request. */
static enum err reply_bad_json(struct str body, const struct json_error *err,
                               struct why *why)
{
    size_t at = 0;

    while (at < body.n && strchr(" \t\r\n", body.p[at]) && body.p[at])
        at++;
    if (at == body.n)
        return why_err(why, ERR_BAD_REQUEST, "the answer is empty");
    if (body.p[at] == '<')
        return why_err(
            why, ERR_BAD_REQUEST,
            "a web page came instead of JSON; embed.http.url must be the "
            "complete path, usually ending in /v1/embeddings");
    return why_err(why, ERR_BAD_REQUEST,
                   "the answer is not a JSON object: %s in line %u, column %u",
                   err->what ? err->what : "it is another value",
                   err->line ? err->line : 1, err->col ? err->col : 1);
}

enum err reply_read(struct str body, size_t n, uint32_t dims, struct reply *out,
                    struct why *why)
{
    static const struct str key = {"data", 4};
    struct json_error err = {0};
    struct str data, raw;
    size_t at = 0;
    enum err e = json_scan(body, &key, 1, &data, &err);

    *out = (struct reply){.dims = dims};
    if (e == ERR_NOMEM)
        return why_err(why, e, "%s", err_row(e)->wording);
    if (e)
        return reply_bad_json(body, &err, why);
    if (!data.n || data.p[0] != '[')
        return why_err(why, ERR_BAD_REQUEST, "the answer has no list \"data\"");
    while (!e && json_next(&data, &raw))
        e = reply_take_element(out, n, at++, raw, why);
    if (!e && at < n)
        e = why_err(why, ERR_BAD_REQUEST,
                    "%zu vectors came where %zu were asked for", at, n);
    if (!e && !out->n_good)
        e = why_err(why, ERR_BAD_REQUEST, "%s", out->why.text);
    /* With two lengths, guessing the right one is not safe. */
    if (!e && !dims && out->has_lengths)
        e = why_err(why, ERR_BAD_REQUEST, "%s", out->why.text);
    if (e)
        reply_fini(out);
    return e;
}

void reply_fini(struct reply *r)
{
    free(r->vectors);
    free(r->is_good);
    r->vectors = NULL;
    r->is_good = NULL;
}
