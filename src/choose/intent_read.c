/* What the classifier answered. Its body was written by somebody else, and what
 * it says by whoever wrote the text, if they found the words for it: nothing in
 * it is believed but the name of one of those that it was asked about, a number
 * and one sentence to be shown.
 *
 * Strict, but for a fence of ``` around the whole, which some cannot do
 * without. Turned down: looking for the first thing in braces; a text that is
 * repeated in an answer could be that. */
#include "choose/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "chat/chat.h"

enum {
    TREE_BYTES = 4 * 1024 * 1024, /* of the largest answer, parsed */
    NAME_SHOWN = 64,
};

/* It does not count, and why. */
static enum err no_use(struct msg *m, struct intent_answer *out,
                       const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static enum err no_use(struct msg *m, struct intent_answer *out,
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

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct str without_blanks(struct str s)
{
    while (s.n && is_blank(s.p[0]))
        s = str_sub(s, 1, s.n);
    while (s.n && is_blank(s.p[s.n - 1]))
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

/* A sentence of somebody else's, short and tame. */
static bool keep_words(struct msg *m, struct str from, size_t most,
                       struct str *to)
{
    struct str head = str_head(from, most);
    char *p = arena_strdup(&m->arena, head);

    *to = (struct str){p, p ? str_tame(p, head.n) : 0};
    return p != NULL;
}

static enum err no_such_agent(struct msg *m, struct str name,
                              struct intent_answer *out)
{
    struct str shown;

    if (!keep_words(m, name, NAME_SHOWN, &shown))
        return ERR_NOMEM;
    return no_use(m, out,
                  "the classifier named \"%.*s\", who was not among those "
                  "that it was asked about",
                  STR_ARG(shown));
}

static bool is_likelihood(const struct json *v, double *out)
{
    *out = json_real_or(v, -1);
    return *out >= 0 && *out <= 1;
}

static enum err read_choice(struct msg *m, const struct json *said,
                            struct intent_answer *out)
{
    const struct json *name = json_get(said, STR("agentId"));
    const struct json *why = json_get(said, STR("reasoning"));
    const struct candidate *c;
    double confidence;

    if (!name)
        return no_use(m, out, "the classifier named nobody");
    if (name->type == JSON_NULL)
        return no_use(m, out, "the classifier says that nobody fits");
    if (name->type != JSON_STR)
        return no_use(m, out, "the classifier's agentId is no string");
    c = choose_asked(m, name->s);
    if (!c)
        return no_such_agent(m, name->s, out);
    if (!is_likelihood(json_get(said, STR("confidence")), &confidence))
        return no_use(m, out,
                      "the classifier's confidence is no number from 0 to 1");
    if (!arena_keep(&m->arena, c->agent, &out->agent) ||
        !keep_words(m, json_str_or(why, STR("")), INTENT_REASON_MAX,
                    &out->reasoning))
        return ERR_NOMEM;
    out->confidence = confidence;
    out->is_good = true;
    return OK;
}

static enum err read_body(struct arena *a, struct msg *m, enum model_kind kind,
                          struct str text, struct intent_answer *out)
{
    const struct json *said;
    struct chat_word w;
    struct str words;

    if (chat_read(a, kind, text, &w, &(struct why){""}))
        return no_use(m, out, "the classifier's answer is no JSON object");
    said = chat_object(&w);
    words = without_fence(w.text);
    if (!said && !words.n)
        return no_use(m, out, "the classifier's answer says nothing");
    if (!said)
        said = json_parse(a, words, 0, NULL);
    if (!said || said->type != JSON_OBJ)
        return no_use(m, out,
                      "the classifier did not answer with one JSON "
                      "object");
    return read_choice(m, said, out);
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
    e = read_body(&scratch, m, kind, body, out);
    arena_fini(&scratch);
    if (e)
        *out = (struct intent_answer){.is_asked = true};
    return e;
}

enum err choose_intent_failed(struct msg *m, const char *why,
                              struct intent_answer *out)
{
    *out = (struct intent_answer){.is_asked = true};
    return no_use(m, out, "%s", why);
}
