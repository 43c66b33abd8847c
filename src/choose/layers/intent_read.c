/* The classifier's answer. Another system wrote its body, and the author of the
 * text may have influenced it, so nothing in it is trusted except the name of
 * one of the candidates, a number, and one sentence for display.
 *
 * Strict, except for a fence of ``` around the whole, which some models always
 * add. Rejected: looking for the first object in braces; a text that the answer
 * quotes could be that. */
#include "choose/layers/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "wire/chat/chat.h"

enum {
    TREE_BYTES = 4 * 1024 * 1024, /* of the largest answer, parsed */
    NAME_SHOWN = 64,
};

/* The answer does not count; say why. */
static enum err intent_reject(struct msg *m, struct intent_answer *out,
                              const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static enum err intent_reject(struct msg *m, struct intent_answer *out,
                              const char *fmt, ...)
{
    char words[2 * INTENT_REASON_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    return arena_keep(&m->arena, str_head(str_of(words), INTENT_REASON_MAX),
                      &out->why)
               ? OK
               : ERR_NOMEM;
}

static bool is_json_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct str without_blanks(struct str s)
{
    while (s.n && is_json_blank(s.p[0]))
        s = str_sub(s, 1, s.n);
    while (s.n && is_json_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* "```json\n{…}\n```" is {…}. */
static struct str without_fence(struct str s)
{
    struct str fence = STR("```");
    size_t line;

    s = without_blanks(s);
    line = str_find(s, '\n', 0);
    if (!str_starts(s, fence) || line == s.n || s.n < line + 1 + fence.n ||
        !str_eq(str_sub(s, s.n - fence.n, s.n), fence))
        return s;
    return without_blanks(str_sub(s, line + 1, s.n - fence.n));
}

/* Text by another system: cut it and neutralize control characters. */
static bool intent_keep_text(struct msg *m, struct str from, size_t most,
                             struct str *to)
{
    struct str head = str_head(from, most);
    char *p = arena_strdup(&m->arena, head);

    *to = (struct str){p, p ? str_tame(p, head.n) : 0};
    return p != NULL;
}

static enum err intent_reject_agent(struct msg *m, struct str name,
                                    struct intent_answer *out)
{
    struct str shown;

    if (!intent_keep_text(m, name, NAME_SHOWN, &shown))
        return ERR_NOMEM;
    return intent_reject(
        m, out,
        "the classifier named \"%.*s\", which was not among the "
        "agents that it was asked about",
        STR_ARG(shown));
}

static enum err intent_read_choice(struct msg *m, const struct json *answer,
                                   struct intent_answer *out)
{
    const struct json *name = json_get(answer, STR("agentId"));
    const struct json *why = json_get(answer, STR("reasoning"));
    const struct candidate *c;
    double confidence;

    if (!name)
        return intent_reject(m, out, "the classifier named no agent");
    if (name->type == JSON_NULL)
        return intent_reject(m, out, "the classifier says that no agent fits");
    if (name->type != JSON_STR)
        return intent_reject(m, out,
                             "the classifier's agentId is not a string");
    c = choose_asked(m, name->s);
    if (!c)
        return intent_reject_agent(m, name->s, out);
    confidence = json_real_or(json_get(answer, STR("confidence")), -1);
    if (!(confidence >= 0 && confidence <= 1))
        return intent_reject(
            m, out, "the classifier's confidence is not a number from 0 to 1");
    if (!arena_keep(&m->arena, c->agent, &out->agent) ||
        !intent_keep_text(m, json_str_or(why, STR("")), INTENT_REASON_MAX,
                          &out->reasoning))
        return ERR_NOMEM;
    out->confidence = confidence;
    out->is_good = true;
    return OK;
}

static enum err intent_read_body(struct arena *a, struct msg *m,
                                 enum model_kind kind, struct str text,
                                 struct intent_answer *out)
{
    const struct json *answer;
    struct chat_word w;
    struct str words;

    if (chat_read(a, kind, text, &w, &(struct why){""}))
        return intent_reject(m, out,
                             "the classifier's answer is not a JSON object");
    answer = chat_object(&w);
    words = without_fence(w.text);
    if (!answer && !words.n)
        return intent_reject(m, out, "the classifier's answer says nothing");
    if (!answer)
        answer = json_parse(a, words, 0, NULL);
    if (!answer || answer->type != JSON_OBJ)
        return intent_reject(m, out,
                             "the classifier did not answer with one JSON "
                             "object");
    return intent_read_choice(m, answer, out);
}

enum err choose_intent_read(const struct choose_view *v, struct msg *m,
                            enum model_kind kind, struct str body,
                            struct intent_answer *out)
{
    struct arena scratch;
    enum err e;

    (void)v;
    *out = (struct intent_answer){.is_asked = true};
    arena_init(&scratch, TREE_BYTES);
    e = intent_read_body(&scratch, m, kind, body, out);
    arena_fini(&scratch);
    if (e)
        *out = (struct intent_answer){.is_asked = true};
    return e;
}

enum err choose_intent_failed(struct msg *m, const char *why,
                              struct intent_answer *out)
{
    *out = (struct intent_answer){.is_asked = true};
    return intent_reject(m, out, "%s", why);
}
