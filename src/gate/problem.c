/* What is wrong with a file of rules, a line each, with its place: all of it
 * up to a number that somebody still reads, then how many more there are. What
 * a user wrote is quoted as JSON and shortened, so that a line stays a line and
 * cannot steer a terminal. */
#include "gate/reader.h"

#include <stdarg.h>
#include <stdio.h>

enum { TAIL_BYTES = 32 /* kept for the line that says how many more */ };

void problem_add(struct reader *rd, size_t at, const char *fmt, ...)
{
    struct gate_problems *p = rd->problems;
    size_t room = sizeof(p->text) - TAIL_BYTES - p->n_bytes;
    char words[600], who[sizeof(struct shown) + 8] = "";
    unsigned line, col;
    va_list ap;
    int n;

    if (p->n++ >= GATE_PROBLEMS_MAX)
        return;
    json_where(rd->text, at, &line, &col);
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    str_tame(words, strlen(words));
    if (rd->rule.n)
        snprintf(who, sizeof(who), "rule %s: ", show(rd->rule).text);
    n = snprintf(p->text + p->n_bytes, room, "%u:%u: %s%s\n", line, col, who,
                 words);
    if (n > 0 && (size_t)n < room)
        p->n_bytes += (size_t)n;
    p->text[p->n_bytes] = '\0';
}

/* How many were not told is what is counted beyond the lines. */
void problem_end(struct gate_problems *p)
{
    size_t n_lines = 0;

    for (size_t i = 0; i < p->n_bytes; i++)
        n_lines += p->text[i] == '\n';
    if (p->n > n_lines)
        p->n_bytes +=
            (size_t)snprintf(p->text + p->n_bytes, sizeof(p->text) - p->n_bytes,
                             "and %zu more\n", p->n - n_lines);
}

struct shown show(struct str s)
{
    struct str head = str_head(s, 48);
    struct shown out = {{0}};
    struct json_out o;
    struct buf b;

    buf_init(&b, sizeof(out.text) - 4);
    o = json_out(&b);
    json_put_str(&o, head);
    if (b.n)
        memcpy(out.text, b.p, b.n);
    if (head.n < s.n)
        memcpy(out.text + b.n, "...", 3);
    buf_fini(&b);
    return out;
}

struct shown show_value(const struct json *v)
{
    struct shown out = {{0}};
    const char *words = "";

    switch (v->type) {
    case JSON_STR: return show(v->s);
    case JSON_INT:
        snprintf(out.text, sizeof(out.text), "%lld", (long long)v->i);
        return out;
    case JSON_REAL:
        snprintf(out.text, sizeof(out.text), "%.6g", v->d);
        return out;
    case JSON_NULL: words = "null"; break;
    case JSON_BOOL: words = v->b ? "true" : "false"; break;
    case JSON_ARR: words = "a list"; break;
    case JSON_OBJ: words = "an object"; break;
    }
    snprintf(out.text, sizeof(out.text), "%s", words);
    return out;
}

/* One that was written with escapes does not lie in the text; then where its
 * value stands must do. */
size_t key_at(const struct reader *rd, const struct json *member)
{
    uintptr_t from = (uintptr_t)rd->text.p, key = (uintptr_t)member->key.p;

    return key > from && key < from + rd->text.n ? key - from - 1 : member->at;
}
