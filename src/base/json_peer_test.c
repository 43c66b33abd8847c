/* A second opinion: jansson, the strictest packaged parser, on random
 * documents, whole and broken. Both must accept the same texts and find the
 * same values in them, except for these differences, each with a test below:
 *
 *   a key with \u0000 in it    accepted (a str has a length); jansson cannot
 *   nesting beyond 64          rejected; jansson goes on to 2048
 *   a NUL byte directly after  rejected; jansson does not see it
 *   a number or a word
 *
 * Everything else is the same with JSON_REJECT_DUPLICATES, JSON_ALLOW_NUL and
 * JSON_DECODE_ANY: -0 is the integer 0, integers beyond 64 bits and reals
 * beyond a double are errors, reals too small are 0. */

/* Two of jansson's names are ours too. */
#define JSON_REAL JANSSON_REAL
#define JSON_NULL JANSSON_NULL
#include <jansson.h>
#undef JSON_REAL
#undef JSON_NULL

#include "base/clock.h"
#include "base/json.h"
#include "test/json_agree.h"
#include "test/t.h"

enum { N_DOCUMENTS = 12500 }; /* in each of eight tests */

static json_t *jansson(struct str text)
{
    return json_loadb(text.p ? text.p : "", text.n,
                      JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY,
                      NULL);
}

static bool same_value(const struct json *a, json_t *b);

static bool same_members(const struct json *a, json_t *b)
{
    void *at = json_object_iter(b);

    JSON_EACH(kid, a)
    {
        struct str key;

        if (!at)
            return false;
        key = (struct str){json_object_iter_key(at),
                           json_object_iter_key_len(at)};
        if (!str_eq(kid->key, key) ||
            !same_value(kid, json_object_iter_value(at)))
            return false;
        at = json_object_iter_next(b, at);
    }
    return !at;
}

static bool same_elements(const struct json *a, json_t *b)
{
    size_t i = 0;

    JSON_EACH(kid, a)
    if (!same_value(kid, json_array_get(b, i++)))
        return false;
    return i == json_array_size(b) && i == a->kids.n;
}

static bool same_value(const struct json *a, json_t *b)
{
    double d;

    if (!b)
        return false;
    switch (a->type) {
    case JSON_NULL: return json_typeof(b) == JANSSON_NULL;
    case JSON_BOOL: return json_typeof(b) == (a->b ? JSON_TRUE : JSON_FALSE);
    case JSON_INT:
        return json_typeof(b) == JSON_INTEGER && json_integer_value(b) == a->i;
    case JSON_REAL:
        d = json_typeof(b) == JANSSON_REAL ? json_real_value(b) : a->d + 1;
        return memcmp(&d, &a->d, sizeof(d)) == 0;
    case JSON_STR:
        return json_typeof(b) == JSON_STRING &&
               str_eq(a->s, (struct str){json_string_value(b),
                                         json_string_length(b)});
    case JSON_ARR: return json_typeof(b) == JSON_ARRAY && same_elements(a, b);
    case JSON_OBJ: return json_typeof(b) == JSON_OBJECT && same_members(a, b);
    }
    return false;
}

static bool has_nul_key(const struct json *v)
{
    if (memchr(v->key.p ? v->key.p : "x", 0, v->key.n))
        return true;
    if (v->type != JSON_ARR && v->type != JSON_OBJ)
        return false;
    JSON_EACH(kid, v)
    if (has_nul_key(kid))
        return true;
    return false;
}

struct tally {
    int accepted, refused, nul_keys, nul_bytes, too_deep;
};

/* Whether both agree, or differ as listed above. */
static bool compare(struct str text, struct tally *t)
{
    struct json_error e = {0};
    struct arena a;
    struct json *ours;
    json_t *theirs = jansson(text);
    bool ok;

    arena_init(&a, AGREE_BYTES);
    ours = json_parse(&a, text, 0, &e);
    if (ours && theirs) {
        t->accepted++;
        ok = same_value(ours, theirs);
    } else if (ours) {
        t->nul_keys++;
        ok = has_nul_key(ours);
    } else if (theirs) {
        bool is_nul = e.at > 0 && e.at < text.n && text.p[e.at] == 0;

        t->nul_bytes += is_nul;
        t->too_deep += !is_nul;
        ok = is_nul || strcmp(e.what, "nested too deeply") == 0;
    } else {
        t->refused++;
        ok = true;
    }
    json_decref(theirs);
    arena_fini(&a);
    return ok;
}

/* Random documents. */

static uint64_t below(struct rand r, uint64_t n)
{
    return rand_u64(r) % n;
}

static void add_any(struct buf *b, struct rand r, const char *const *from,
                    size_t n)
{
    buf_add_str(b, str_of(from[below(r, n)]));
}

#define ADD_ANY(b, r, from) add_any(b, r, from, sizeof(from) / sizeof(*(from)))

static void add_space(struct buf *b, struct rand r)
{
    static const char *const spaces[] = {" ", "\n", "\t", "\r\n", "          "};

    if (below(r, 8) == 0)
        ADD_ANY(b, r, spaces);
}

static void add_number(struct buf *b, struct rand r)
{
    static const char *const odd[] = {
        "0",     "-0",     "0.0",  "-0.0",   "9223372036854775807",
        "1e308", "5e-324", "0e99", "1e-400", "-9223372036854775808",
        "1E+2",  "1e400",  "01",   "1.",     "9223372036854775808",
    };
    static const char *const sign[] = {"", "-"};
    static const char *const exponent[] = {"",    "",     "e1",
                                           "E-7", "e+20", "e-300"};

    if (below(r, 8) == 0) {
        ADD_ANY(b, r, odd);
        return;
    }
    ADD_ANY(b, r, sign);
    buf_addf(b, "%llu",
             (unsigned long long)(rand_u64(r) >> (1 + below(r, 63))));
    if (below(r, 2)) {
        buf_addf(b, ".%0*llu", (int)(1 + below(r, 9)),
                 (unsigned long long)below(r, 1000000000));
        ADD_ANY(b, r, exponent);
    }
}

static void add_string(struct buf *b, struct rand r, uint64_t longest)
{
    static const char *const parts[] = {
        "a",
        "b",
        "c",
        "key",
        "\\n",
        "\\\"",
        "\\u0061",
        "\\u00e9",
        "\xc3\xa9",
        "\\/",
        "\\\\",
        "a longer piece of text",
        "\\u0000",
        "\\u20ac",
        " ",
        "\\ud83d\\ude00",
        "{",
        "]",
        "\xe2\x82\xac",
        "\xf0\x9f\x98\x80",
    };

    buf_add_char(b, '"');
    for (uint64_t n = below(r, longest); n > 0; n--)
        ADD_ANY(b, r, parts);
    buf_add_char(b, '"');
}

static void add_value(struct buf *b, struct rand r, int depth);

static void add_kids(struct buf *b, struct rand r, int depth, bool is_obj)
{
    uint64_t n = below(r, below(r, 20) ? 5 : 60);

    buf_add_char(b, is_obj ? '{' : '[');
    for (uint64_t i = 0; i < n; i++) {
        if (i)
            buf_add_char(b, ',');
        add_space(b, r);
        if (is_obj) {
            /* A number makes most keys different, but not all. */
            add_string(b, r, 3);
            if (below(r, 30)) {
                b->n--;
                buf_addf(b, "%d\"", (int)i);
            }
            add_space(b, r);
            buf_add_char(b, ':');
        }
        add_value(b, r, depth - 1);
    }
    add_space(b, r);
    buf_add_char(b, is_obj ? '}' : ']');
}

static void add_value(struct buf *b, struct rand r, int depth)
{
    static const char *const words[] = {"true", "false", "null"};

    add_space(b, r);
    switch (below(r, depth > 0 ? 7 : 4)) {
    case 0: ADD_ANY(b, r, words); break;
    case 1: add_number(b, r); break;
    case 2:
    case 3: add_string(b, r, 8); break;
    case 4: add_kids(b, r, depth, false); break;
    default: add_kids(b, r, depth, true); break;
    }
    add_space(b, r);
}

/* Sometimes deeply nested, around the limit. */
static void add_document(struct buf *b, struct rand r)
{
    uint64_t deep = below(r, 50) ? 0 : 60 + below(r, 8);

    for (uint64_t i = 0; i < deep; i++)
        buf_add_char(b, '[');
    if (deep || below(r, 10) == 0)
        add_value(b, r, deep ? 0 : 1);
    else
        add_kids(b, r, 4, below(r, 2));
    for (uint64_t i = 0; i < deep; i++)
        buf_add_char(b, ']');
}

static void break_somewhere(struct buf *b, struct rand r)
{
    static const char bytes[] = "{}[]\",:\\0189.eE+-tfnu \n\0\x01\x7f\x80\xc3"
                                "\xed\xa0\xf4\xff/*";
    uint64_t at = below(r, b->n), n;

    switch (below(r, 4)) {
    case 0: b->p[at] = bytes[below(r, sizeof(bytes) - 1)]; break;
    case 1: b->p[at] = (char)(b->p[at] ^ 1 << below(r, 8)); break;
    case 2:
        n = 1 + below(r, 4);
        n = n > b->n - at ? b->n - at : n;
        memmove(b->p + at, b->p + at + n, b->n - at - n);
        b->n -= n;
        break;
    default:
        n = 1 + below(r, 6);
        n = n > b->n - at ? b->n - at : n;
        buf_add(b, "      ", n);
        memmove(b->p + at + n, b->p + at, b->n - at - n);
        break;
    }
}

static void compare_many(uint64_t seed)
{
    struct rand_seeded state = {seed};
    struct rand r = rand_seeded(&state);
    struct tally t = {0};
    struct buf b;

    buf_init(&b, 1 << 20);
    for (int i = 0; i < N_DOCUMENTS; i++) {
        buf_clear(&b);
        add_document(&b, r);
        for (uint64_t n = i % 2 ? 1 + below(r, 3) : 0; n > 0 && b.n > 0; n--)
            break_somewhere(&b, r);
        if (!compare(buf_str(&b), &t) ||
            (i % 8 == 0 && json_agree(buf_str(&b)) == JSON_DISAGREE)) {
            fprintf(stderr, "document %d: %.*s\n", i, STR_ARG(buf_str(&b)));
            exit(1);
        }
    }
    buf_fini(&b);
    /* The random documents must have covered every side. */
    CHECK(t.accepted > N_DOCUMENTS / 4 && t.refused > N_DOCUMENTS / 4);
    CHECK(t.nul_keys > 0 && t.too_deep > 0);
}

#define COMPARE_MANY(seed)                      \
    TEST(random_documents_mean_the_same_##seed) \
    {                                           \
        compare_many(seed);                     \
    }

COMPARE_MANY(1)
COMPARE_MANY(2)
COMPARE_MANY(3)
COMPARE_MANY(4)
COMPARE_MANY(5)
COMPARE_MANY(6)
COMPARE_MANY(7)
COMPARE_MANY(8)

TEST(a_nul_in_a_key_is_taken_by_us_alone)
{
    struct str text = STR("{\"a\\u0000\":1}");

    CHECK(json_check(text, NULL) == OK);
    CHECK(!jansson(text));
    CHECK(json_check(STR("[\"\\u0000\"]"), NULL) == OK);
}

TEST(deep_nesting_is_taken_by_jansson_alone)
{
    char text[2 * (JSON_DEPTH_MAX + 1)];
    struct str s = {text, sizeof(text)};
    json_t *theirs;

    memset(text, '[', sizeof(text) / 2);
    memset(text + sizeof(text) / 2, ']', sizeof(text) / 2);
    theirs = jansson(s);
    CHECK(theirs && json_check(s, NULL) == ERR_SYNTAX);
    json_decref(theirs);
}

TEST(a_nul_byte_behind_a_number_is_overlooked_by_jansson_alone)
{
    static const struct str texts[] = {
        {"1\0", 2}, {"[1\0]", 4}, {"null\0", 5}, {"{\"a\":true\0}", 11}};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        json_t *theirs = jansson(texts[i]);

        CHECK(theirs && json_agree(texts[i]) == JSON_REFUSED);
        json_decref(theirs);
    }
    CHECK(!jansson(STR("\"a\"\0")) && !jansson(STR("{}\0")));
}
