/* The writer. Only a bug of ours can produce a document that the reader
 * rejects: bad raw text, unbalanced brackets, a duplicate key. Invalid UTF-8
 * becomes U+FFFD, and numbers that are not finite become null.
 *
 * Strings are scanned and copied in one pass, sixteen bytes at a time. A copy
 * may run past the end of the string, so it needs slack in the buf; near the
 * limit of the buf, without slack, bytes are copied one by one. The room check
 * is inline; buf is called only if there is none left. */
#include "base/json_internal.h"

#include <math.h>

enum { SLACK = 16 };

static inline char *json_room(struct buf *b, size_t n)
{
    return n <= b->cap - b->n ? b->p + b->n : buf_reserve(b, n);
}

struct json_out json_out(struct buf *out)
{
    return (struct json_out){.out = out};
}

static inline void put_char(struct buf *b, char c)
{
    char *to = json_room(b, 1);

    if (to) {
        *to = c;
        b->n++;
    }
}

static inline void json_put_comma(struct json_out *o)
{
    if (o->comma)
        put_char(o->out, ',');
    o->comma = true;
}

void json_open(struct json_out *o, char bracket)
{
    json_put_comma(o);
    put_char(o->out, bracket);
    o->comma = false;
}

void json_close(struct json_out *o, char bracket)
{
    put_char(o->out, bracket);
    o->comma = true;
}

#ifdef __SSE2__
/* Load n < 16 bytes and zero the rest, without reading past them. */
static inline __m128i load_short(const char *p, size_t n)
{
    uint64_t low = 0, high = 0;
    uint32_t a, b;

    if (n >= 8) {
        memcpy(&low, p, 8);
        memcpy(&high, p + n - 8, 8);
        high = n > 8 ? high >> (128 - 8 * n) : 0;
    } else if (n >= 4) {
        memcpy(&a, p, 4);
        memcpy(&b, p + n - 4, 4);
        low = a | (uint64_t)b << (8 * n - 32);
    } else if (n) {
        low = (uint64_t)(unsigned char)p[0] |
              (uint64_t)(unsigned char)p[n / 2] << (8 * (n / 2)) |
              (uint64_t)(unsigned char)p[n - 1] << (8 * (n - 1));
    }
    return _mm_set_epi64x((long long)high, (long long)low);
}

#endif

/* Copy bytes up to the first that is not plain. Returns how many, and writes up
 * to SLACK more. */
static JSON_INLINE size_t json_copy_plain(char *to, const char *p, size_t n)
{
    size_t i = 0;
#ifdef __SSE2__
    unsigned odd;

    for (; n - i >= 16; i += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(p + i));

        odd = json_odd_bits(x);
        _mm_storeu_si128((__m128i *)(to + i), x);
        if (odd)
            return i + (size_t)__builtin_ctz(odd);
    }
    if (i < n) {
        __m128i x = load_short(p + i, n - i);

        odd = json_odd_bits(x);
        _mm_storeu_si128((__m128i *)(to + i), x);
        i += (size_t)__builtin_ctz(odd | 1u << (n - i));
    }
#else
    for (; i < n && json_is_plain(p[i]); i++)
        to[i] = p[i];
#endif
    return i;
}

/* Add bytes up to the first that is not plain. Returns how many. */
static inline size_t add_plain(struct buf *b, const char *p, size_t n)
{
    size_t done = 0;

    if (n + SLACK <= b->limit - b->n) {
        char *to = json_room(b, n + SLACK);

        if (to)
            b->n += done = json_copy_plain(to, p, n);
        return to ? done : n;
    }
    while (done < n && json_is_plain(p[done]))
        done++;
    buf_add(b, p, done);
    return done;
}

static void add_hex(struct buf *b, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

    buf_add(b, text, sizeof(text));
}

static size_t add_escaped(struct buf *b, unsigned char c)
{
    static const char named[] = "btnvfr"; /* 8 to 13; v is not among them */
    bool is_named = c >= '\b' && c <= '\r' && c != '\v';
    char text[2] = {'\\', is_named ? named[c - '\b'] : (char)c};

    if (is_named || c >= 0x20)
        buf_add(b, text, sizeof(text));
    else
        add_hex(b, c);
    return 1;
}

/* U+0080 to U+009F are legal JSON, but terminals obey them, and our output is
 * read on terminals. */
static bool is_c1_control(const char *p, const char *end)
{
    return end - p >= 2 && p[0] == '\xc2' && (unsigned char)p[1] < 0xa0;
}

/* Add characters that are not ASCII. Returns how many bytes of p were used. */
static size_t add_wide(struct buf *b, const char *p, const char *end)
{
    const char *from = p;
    size_t n;

    while (p < end && (signed char)*p < 0 && !is_c1_control(p, end) &&
           (n = utf8_one(p, end)))
        p += n;
    buf_add(b, from, (size_t)(p - from));
    if (p > from)
        return (size_t)(p - from);
    if (is_c1_control(p, end) && utf8_one(p, end)) {
        add_hex(b, (unsigned char)p[1]);
        return 2;
    }
    buf_add(b, "\xef\xbf\xbd", 3);
    return 1;
}

/* Write the rest of a string and its closing quote. */
static __attribute__((noinline)) void put_pieces(struct buf *b, const char *p,
                                                 const char *end)
{
    while (p < end) {
        p += add_plain(b, p, (size_t)(end - p));
        if (p < end)
            p += (signed char)*p < 0 ? add_wide(b, p, end)
                                     : add_escaped(b, (unsigned char)*p);
    }
    put_char(b, '"');
}

/* Write a string, a comma before it if one is due, and the byte `behind` after
 * it if that is not 0. The length of the buf is stored once, at the end:
 * storing it for each byte of punctuation made the next one wait. */
static inline void put_string(struct json_out *o, struct str s, char behind)
{
    struct buf *b = o->out;
    size_t n = s.n + SLACK + 4, done;
    char *to = n <= b->cap - b->n ? b->p + b->n : NULL;

    if (to) {
        *to = ',';
        to += o->comma;
        *to++ = '"';
        done = json_copy_plain(to, s.p, s.n);
        to += done;
        if (done == s.n) {
            *to++ = '"';
            *to = behind;
            to += behind != 0;
        }
        b->n = (size_t)(to - b->p);
        if (done == s.n)
            return;
    } else {
        done = 0;
        json_put_comma(o);
        put_char(b, '"');
    }
    put_pieces(b, s.n ? s.p + done : s.p, s.n ? s.p + s.n : s.p);
    if (behind)
        put_char(b, behind);
}

void json_key(struct json_out *o, struct str key)
{
    put_string(o, key, ':');
    o->comma = false;
}

void json_put_str(struct json_out *o, struct str s)
{
    put_string(o, s, 0);
    o->comma = true;
}

static inline size_t n_digits(uint64_t v)
{
    size_t n = 1;

    for (; v >= 10000; v /= 10000)
        n += 4;
    return n + (v >= 10) + (v >= 100) + (v >= 1000);
}

/* Two digits at a time, from the end. */
static inline void write_digits(char *end, uint64_t v)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324"
        "25262728293031323334353637383940414243444546474849"
        "50515253545556575859606162636465666768697071727374"
        "75767778798081828384858687888990919293949596979899";

    for (; v >= 10; v /= 100) {
        memcpy(end -= 2, pairs + v % 100 * 2, 2);
        if (v < 100)
            return;
    }
    *--end = (char)('0' + v);
}

void json_put_int(struct json_out *o, int64_t v)
{
    uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    size_t n = n_digits(size) + (v < 0);
    char *to;

    json_put_comma(o);
    to = json_room(o->out, n);
    if (!to)
        return;
    *to = '-';
    write_digits(to + n, size);
    o->out->n += n;
}

void json_put_real(struct json_out *o, double v)
{
    char text[JSON_REAL_BYTES];

    if (!isfinite(v)) {
        json_put_null(o);
        return;
    }
    json_put_comma(o);
    buf_add(o->out, text, json_real_write(text, v));
}

static inline void put_word(struct json_out *o, const char *word, size_t n)
{
    char *to;

    json_put_comma(o);
    to = json_room(o->out, n);
    if (to) {
        memcpy(to, word, n);
        o->out->n += n;
    }
}

void json_put_bool(struct json_out *o, bool v)
{
    if (v)
        put_word(o, "true", 4);
    else
        put_word(o, "false", 5);
}

void json_put_null(struct json_out *o)
{
    put_word(o, "null", 4);
}

void json_put_raw(struct json_out *o, struct str document)
{
    json_put_comma(o);
    buf_add_str(o->out, document);
}

static void put_scalar(struct json_out *o, const struct json *v)
{
    switch (v->type) {
    case JSON_NULL: json_put_null(o); break;
    case JSON_BOOL: json_put_bool(o, v->b); break;
    case JSON_INT: json_put_int(o, v->i); break;
    case JSON_REAL: json_put_real(o, v->d); break;
    case JSON_STR: json_put_str(o, v->s); break;
    case JSON_ARR:
    case JSON_OBJ: break;
    }
}

/* Down, then along, then up again. `open` holds the values whose brackets are
 * still open. */
void json_put(struct json_out *o, const struct json *v)
{
    const struct json *open[JSON_DEPTH_MAX];
    int depth = 0;

    while (v) {
        if (depth && open[depth - 1]->type == JSON_OBJ)
            json_key(o, v->key);
        if (json_has_kids(v)) {
            if (depth == JSON_DEPTH_MAX) {
                o->out->over = true;
                return;
            }
            json_open(o, v->type == JSON_OBJ ? '{' : '[');
            open[depth++] = v;
            v = v->kids.first;
        } else {
            put_scalar(o, v);
            v = depth ? v->next : NULL;
        }
        while (!v && depth) {
            const struct json *done = open[--depth];

            json_close(o, done->type == JSON_OBJ ? '}' : ']');
            v = depth ? done->next : NULL;
        }
    }
}

void json_member_text(struct json_out *o, const char *key, struct str s)
{
    json_key(o, str_of(key));
    json_put_str(o, s);
}

void json_member_int(struct json_out *o, const char *key, int64_t v)
{
    json_key(o, str_of(key));
    json_put_int(o, v);
}

void json_member_real(struct json_out *o, const char *key, double v)
{
    json_key(o, str_of(key));
    json_put_real(o, v);
}

void json_member_bool(struct json_out *o, const char *key, bool v)
{
    json_key(o, str_of(key));
    json_put_bool(o, v);
}

void json_member_null(struct json_out *o, const char *key)
{
    json_key(o, str_of(key));
    json_put_null(o);
}

void json_member_raw(struct json_out *o, const char *key, struct str document)
{
    json_key(o, str_of(key));
    json_put_raw(o, document);
}

void json_member_str(struct json_out *o, const char *key, struct str s)
{
    if (s.n)
        json_member_text(o, key, s);
    else
        json_member_null(o, key);
}

void json_member_ms(struct json_out *o, const char *key, int64_t ms)
{
    json_member_known(o, key, ms != 0, ms);
}

void json_member_known(struct json_out *o, const char *key, bool is_known,
                       int64_t v)
{
    if (is_known)
        json_member_int(o, key, v);
    else
        json_member_null(o, key);
}

void json_member_some(struct json_out *o, const char *key, struct str s)
{
    if (s.n)
        json_member_text(o, key, s);
}
