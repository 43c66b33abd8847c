/* The writer. It cannot write a document that the reader refuses, save by
 * json_put_raw and by brackets that do not match, which are our own mistakes:
 * whatever is not UTF-8 becomes U+FFFD, what is not finite becomes null.
 *
 * Most strings need nothing done to them. They are looked through once and
 * copied once; only one with something in it is written piece by piece. Room
 * is asked for inline and from buf only when there is none left. */
#include "base/json_internal.h"

#include <math.h>

static inline char *room(struct buf *b, size_t n)
{
    return n <= b->cap - b->n ? b->p + b->n : buf_reserve(b, n);
}

struct json_out json_out(struct buf *out)
{
    return (struct json_out){.out = out};
}

static inline void put_char(struct buf *b, char c)
{
    char *to = room(b, 1);

    if (to) {
        *to = c;
        b->n++;
    }
}

static inline void comma(struct json_out *o)
{
    if (o->comma)
        put_char(o->out, ',');
    o->comma = true;
}

void json_open(struct json_out *o, char bracket)
{
    comma(o);
    put_char(o->out, bracket);
    o->comma = false;
}

void json_close(struct json_out *o, char bracket)
{
    put_char(o->out, bracket);
    o->comma = true;
}

static inline bool is_plain(char c)
{
    return (signed char)c >= 0x20 && c != '"' && c != '\\';
}

static void put_odd(struct buf *b, const char **p, const char *end)
{
    static const char hex[] = "0123456789abcdef";
    static const char named[] = "btnvfr"; /* 8 to 13, of which v is none */
    unsigned char c = (unsigned char)**p;
    char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    size_t n;

    if (c >= 0x80) {
        n = json_utf8(*p, end);
        if (n)
            buf_add(b, *p, n);
        else
            buf_add(b, "\xef\xbf\xbd", 3);
        *p += n ? n : 1;
        return;
    }
    n = 6;
    if (c >= 8 && c <= 13 && c != '\v') {
        text[1] = named[c - 8];
        n = 2;
    } else if (c >= 0x20) {
        text[1] = (char)c;
        n = 2;
    }
    buf_add(b, text, n);
    ++*p;
}

static void put_string(struct buf *b, struct str s)
{
    const char *p = s.p, *end = s.p + s.n;

    put_char(b, '"');
    while (p < end) {
        const char *from = p;

        while (p < end && is_plain(*p))
            p++;
        buf_add(b, from, (size_t)(p - from));
        if (p < end)
            put_odd(b, &p, end);
    }
    put_char(b, '"');
}

void json_key(struct json_out *o, struct str key)
{
    comma(o);
    put_string(o->out, key);
    put_char(o->out, ':');
    o->comma = false;
}

void json_put_str(struct json_out *o, struct str s)
{
    comma(o);
    put_string(o->out, s);
}

void json_put_int(struct json_out *o, int64_t v)
{
    comma(o);
    buf_add_i64(o->out, v);
}

void json_put_real(struct json_out *o, double v)
{
    char text[JSON_REAL_BYTES];

    if (!isfinite(v)) {
        json_put_null(o);
        return;
    }
    comma(o);
    buf_add(o->out, text, json_real_write(text, v));
}

void json_put_bool(struct json_out *o, bool v)
{
    json_put_raw(o, v ? STR("true") : STR("false"));
}

void json_put_null(struct json_out *o)
{
    json_put_raw(o, STR("null"));
}

void json_put_raw(struct json_out *o, struct str document)
{
    comma(o);
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

static bool has_kids(const struct json *v)
{
    return v->type == JSON_ARR || v->type == JSON_OBJ;
}

/* Down, then along, then up again; `open` are the values whose brackets are
 * still to be closed. */
void json_put(struct json_out *o, const struct json *v)
{
    const struct json *open[JSON_DEPTH_MAX];
    int depth = 0;

    while (v) {
        if (depth && open[depth - 1]->type == JSON_OBJ)
            json_key(o, v->key);
        if (has_kids(v)) {
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
