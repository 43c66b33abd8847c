#ifndef RULES_STAGE_H
#define RULES_STAGE_H

/* What the tests of rules share: files written with ' for ", since C has its
 * own use for that. */

#include "gate/rules/internal.h"
#include "test/t.h"

static char stage_text[1 << 16];

static inline struct str quoted(const char *text)
{
    size_t n = strlen(text);

    CHECK(n < sizeof(stage_text));
    for (size_t i = 0; i <= n; i++)
        stage_text[i] = text[i] == '\'' ? '"' : text[i];
    return (struct str){stage_text, n};
}

static inline struct gate_rules *rules_of(const char *text)
{
    static struct gate_problems problems;
    struct gate_rules *r;
    enum err e = gate_rules_read(quoted(text), &r, &problems);

    if (e)
        T_FAIL("%s", problems.text);
    return r;
}

static inline const struct rule *rule_named(const struct gate_rules *r,
                                            const char *name)
{
    for (size_t i = 0; i < r->n_rules; i++)
        if (str_eq(r->rules[i].name, str_of(name)))
            return &r->rules[i];
    T_FAIL("there is no rule %s", name);
}

#endif
