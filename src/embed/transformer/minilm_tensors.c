/* safetensors: eight bytes with the length of the header, the header in JSON
 * (name -> type, shape, offsets), and then the numbers. Little-endian.
 *
 * Strict, because the file is untrusted: every tensor, used or not, must have a
 * known type and exactly the bytes that its shape needs, and together they must
 * fill the file without gap or overlap, as the format's specification
 * requires. */
#include "embed/transformer/minilm.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

enum {
    LENGTH_BYTES = 8,
    HEADER_MAX = 1 << 20,
    NAME_MAX_BYTES = 256,
};

static const struct {
    const char *name;
    uint32_t item_bytes;
} types[] = {
    {"F16", 2}, {"F32", 4}, {"BOOL", 1}, {"U8", 1},  {"I8", 1},
    {"I16", 2}, {"U16", 2}, {"I32", 4},  {"U32", 4}, {"I64", 8},
    {"U64", 8}, {"F64", 8}, {"BF16", 2},
};

static enum err bad_tensor(struct why *why, struct str name, const char *what)
{
    return why_err(why, ERR_BAD_REQUEST, "the tensor \"%.*s\" %s",
                   STR_ARG(str_head(name, NAME_MAX_BYTES)), what);
}

static bool tensor_read_type(struct tensor *t, const struct json *v)
{
    struct str name = json_str_or(v, STR(""));

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (str_eq(name, str_of(types[i].name)))
            t->item_bytes = types[i].item_bytes;
    t->is_f16 = str_eq(name, STR("F16"));
    t->is_f32 = str_eq(name, STR("F32"));
    return t->item_bytes > 0;
}

/* Read the shape and compute its bytes; sizes that are impossible are
 * rejected. */
static bool tensor_read_shape(struct tensor *t, const struct json *v,
                              uint64_t *bytes)
{
    if (!v || v->type != JSON_ARR || v->kids.n > TENSOR_RANK_MAX)
        return false;
    *bytes = t->item_bytes;
    JSON_EACH(kid, v)
    {
        int64_t n = json_int_or(kid, -1);

        if (n < 0 || n > UINT32_MAX ||
            (n > 0 && *bytes > JSON_TEXT_MAX * 16ull / (uint64_t)n))
            return false;
        *bytes *= (uint64_t)n;
        t->shape[t->rank++] = (uint64_t)n;
    }
    return true;
}

static enum err tensor_read(struct tensor *t, const struct json *v,
                            struct str numbers, struct why *why)
{
    const struct json *place = json_get(v, STR("data_offsets"));
    int64_t from = json_int_or(json_at(place, 0), -1);
    int64_t to = json_int_or(json_at(place, 1), -1);
    uint64_t bytes;

    t->name = v->key;
    if (v->key.n == 0 || v->key.n > NAME_MAX_BYTES)
        return bad_tensor(why, v->key,
                          "has a name that is too short or too long");
    if (v->type != JSON_OBJ || v->kids.n != 3)
        return bad_tensor(why, v->key,
                          "is not described by type, shape and offsets");
    if (!tensor_read_type(t, json_get(v, STR("dtype"))))
        return bad_tensor(why, v->key, "has an unknown type");
    if (!tensor_read_shape(t, json_get(v, STR("shape")), &bytes))
        return bad_tensor(why, v->key, "has an impossible shape");
    if (!place || place->type != JSON_ARR || place->kids.n != 2 || from < 0 ||
        to < from || (uint64_t)to > numbers.n)
        return bad_tensor(why, v->key, "is outside the file");
    if ((uint64_t)(to - from) != bytes)
        return bad_tensor(why, v->key, "has another size than its shape");
    t->bytes = str_sub(numbers, (size_t)from, (size_t)to);
    if (bytes == 0) /* an empty str_sub would lose the position */
        t->bytes.p = numbers.p + from;
    return OK;
}

static int tensor_cmp(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;

    if (x->bytes.p != y->bytes.p)
        return x->bytes.p < y->bytes.p ? -1 : 1;
    if (x->bytes.n != y->bytes.n)
        return x->bytes.n < y->bytes.n ? -1 : 1;
    return str_cmp(x->name, y->name);
}

static enum err tensors_check_places(struct tensors *t, struct str numbers,
                                     struct why *why)
{
    const char *at = numbers.p;

    qsort(t->all, t->n, sizeof(*t->all), tensor_cmp);
    for (size_t i = 0; i < t->n; i++) {
        if (t->all[i].bytes.p != at)
            return bad_tensor(why, t->all[i].name,
                              t->all[i].bytes.p < at ? "overlaps another"
                                                     : "has a gap before it");
        at += t->all[i].bytes.n;
    }
    if (at != numbers.p + numbers.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "there are bytes after the last tensor");
    return OK;
}

static enum err tensors_read_all(struct tensors *out, struct arena *a,
                                 const struct json *root, struct str numbers,
                                 struct why *why)
{
    if (root->type != JSON_OBJ || root->kids.n > TENSORS_MAX)
        return why_err(why, ERR_BAD_REQUEST,
                       "the header is not an object of at most %d tensors",
                       TENSORS_MAX);
    out->n = 0;
    out->all = arena_array(a, root->kids.n + 1, sizeof(*out->all));
    if (!out->all)
        return why_err(why, ERR_NOMEM, "no memory for the tensors");
    JSON_EACH(kid, root)
    {
        enum err e = OK;

        if (str_eq(kid->key, STR("__metadata__")))
            continue;
        e = tensor_read(&out->all[out->n++], kid, numbers, why);
        if (e)
            return e;
    }
    return tensors_check_places(out, numbers, why);
}

enum err tensors_read(struct tensors *out, struct arena *a, struct str file,
                      struct why *why)
{
    struct json_error at;
    struct json *root;
    struct str header;
    uint64_t n = 0;

    if (file.n < LENGTH_BYTES)
        return why_err(why, ERR_BAD_REQUEST,
                       "this is not a safetensors file: it is too short");
    memcpy(&n, file.p, LENGTH_BYTES);
    if (n > HEADER_MAX || n > file.n - LENGTH_BYTES)
        return why_err(why, ERR_BAD_REQUEST,
                       "this is not a safetensors file, or it is cut short: "
                       "the header has an impossible length");
    header = str_sub(file, LENGTH_BYTES, LENGTH_BYTES + (size_t)n);
    root = json_parse(a, header, 0, &at);
    if (!root)
        return why_err(why, ERR_BAD_REQUEST,
                       "the header of the safetensors is not JSON: %s at byte "
                       "%zu",
                       at.what, at.at);
    return tensors_read_all(
        out, a, root, str_sub(file, LENGTH_BYTES + (size_t)n, file.n), why);
}

struct tensor *tensors_named(struct tensors *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (str_eq(t->all[i].name, str_of(name)))
            return &t->all[i];
    return NULL;
}

/* Half precision: a sign, 5 bits of exponent, 10 of fraction. */
static float float_from_f16(uint16_t h)
{
    uint32_t exponent = h >> 10 & 31, fraction = h & 1023;
    float size;

    if (exponent == 31)
        return NAN; /* or infinite; both are rejected */
    if (exponent == 0)
        size = ldexpf((float)fraction, -24);
    else
        size = ldexpf((float)(1024 + fraction), (int)exponent - 25);
    return h >> 15 ? -size : size;
}

float tensor_at(const struct tensor *t, size_t i)
{
    uint16_t half;
    float whole;

    if (t->is_f16) {
        memcpy(&half, t->bytes.p + i * sizeof(half), sizeof(half));
        return float_from_f16(half);
    }
    memcpy(&whole, t->bytes.p + i * sizeof(whole), sizeof(whole));
    return whole;
}

/* Numbers so large that a row's sum of squares could overflow count as not
 * finite. */
static bool tensor_is_finite(const struct tensor *t)
{
    size_t n = t->bytes.n / t->item_bytes;

    for (size_t i = 0; i < n; i++)
        if (!(fabsf(tensor_at(t, i)) < 1e6f))
            return false;
    return true;
}

const struct tensor *tensors_find(struct tensors *all, struct why *why,
                                  uint64_t rows, uint64_t cols, const char *fmt,
                                  ...)
{
    char name[NAME_MAX_BYTES];
    struct tensor *t;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof(name), fmt, ap);
    va_end(ap);
    t = tensors_named(all, name);
    if (!t) {
        why_err(why, OK, "there is no tensor \"%s\"", name);
        return NULL;
    }
    if (!t->is_f16 && !t->is_f32) {
        why_err(why, OK, "the tensor \"%s\" is neither F16 nor F32", name);
        return NULL;
    }
    if (t->rank != (cols > 0 ? 2 : 1) || t->shape[0] != rows ||
        (cols > 0 && t->shape[1] != cols)) {
        why_err(why, OK, "the tensor \"%s\" does not have the expected shape",
                name);
        return NULL;
    }
    if (!tensor_is_finite(t)) {
        why_err(why, OK,
                "the tensor \"%s\" has a number that is not "
                "finite",
                name);
        return NULL;
    }
    t->is_used = true;
    return t;
}
