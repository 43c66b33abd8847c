/* The problems of a rules file, one line each with its position: as many as a
 * reader will still look at, then the number of the others. User text is quoted
 * as JSON and shortened, so that a line stays a line and cannot steer a
 * terminal. */
#include "gate/rules/rules_reader.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    TAIL_BYTES = 32 /* reserved for the line with the number of the others */
};

void problem_add(struct reader *rd, size_t at, const char *fmt, ...)
{
    struct gate_problems *p = rd->problems;
    size_t room = sizeof(p->text) - TAIL_BYTES - p->n_bytes;
    char words[600], rule[sizeof(struct quoted) + 8] = "";
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
        snprintf(rule, sizeof(rule), "rule %s: ", quote_text(rd->rule).text);
    n = snprintf(p->text + p->n_bytes, room, "%u:%u: %s%s\n", line, col, rule,
                 words);
    if (n > 0 && (size_t)n < room)
        p->n_bytes += (size_t)n;
    p->text[p->n_bytes] = '\0';
}

/* The problems that are counted but have no line are the others. */
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

struct quoted quote_text(struct str s)
{
    struct str head = str_head(s, 48);
    struct quoted out = {{0}};
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

struct quoted quote_value(const struct json *v)
{
    struct quoted out = {{0}};
    const char *words = "";

    switch (v->type) {
    case JSON_STR: return quote_text(v->s);
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

/* The name of a member that was written with escapes is not in the text; then
 * the offset of its value must do. */
size_t member_offset(const struct reader *rd, const struct json *member)
{
    uintptr_t from = (uintptr_t)rd->text.p, key = (uintptr_t)member->key.p;

    return key > from && key < from + rd->text.n ? key - from - 1 : member->at;
}
