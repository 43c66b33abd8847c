/* Keywords without information. A keyword adds 0.15 to its agent's score, so
 * one that occurs in every message lifts its agent above all others, and one
 * that two agents share helps neither.
 *
 * Words are compared as in routing (keyword.h). A generic keyword is found in
 * two ways: by a list of words that people use with every agent, and by the
 * texts of the other agents, since in a fleet of translators "language" is not
 * specific. */
#include "lab/lint_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/keyword.h"

enum {
    PLAIN_MAX = 256 * 1024,
    COMMON_LEAST = 3, /* at least 3 other agents have the word, */
    COMMON_SHARE = 4, /* and at least a fourth of all */
    ALL_PLAIN_MAX = 256 * 1024 * 1024,
};

void lint_say(struct lint_finding *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
}

void lint_advise(struct lint_finding *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f->advice, sizeof(f->advice), fmt, ap);
    va_end(ap);
}

void lint_name(struct lint_finding *f, struct str agent)
{
    if (f->n_agents < LINT_NAMED_MAX)
        f->agents[f->n_agents++] = agent;
}

/* One keyword of one agent. */
struct lint_keyword {
    uint32_t agent;
    struct str keyword;
    struct str plain; /* "blog post " */
    size_t at;        /* in l->plain */
};

struct keyword_lint {
    const struct lint_fleet *fleet;
    struct lint_keyword *words;
    size_t n;
    struct buf plain;  /* all keywords as plain words */
    struct buf *texts; /* the text of each agent as plain words */
    lint_fn *each;
    void *ctx;
};

static size_t keywords_count(const struct lint_fleet *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++)
        n += f->agents[i].routing.keywords.n;
    return n;
}

/* A keyword without letters never matches. */
static void keywords_report_empty(struct keyword_lint *l, const struct agent *a,
                                  struct str keyword)
{
    struct lint_finding f = {
        .check = "keywords", .rule = "empty", .keyword = keyword};

    lint_name(&f, a->name);
    lint_say(&f,
             "\"%.*s\" of %.*s has neither letters nor digits, so it never "
             "matches a text",
             STR_ARG(str_head(keyword, 64)), STR_ARG(a->name));
    lint_advise(&f, "remove it");
    l->each(l->ctx, &f);
}

static bool keywords_add_word(struct keyword_lint *l, uint32_t agent,
                              struct str keyword)
{
    size_t from = l->plain.n;
    bool is_word = keyword_plain(&l->plain, keyword);

    if (l->plain.over)
        return false;
    if (!is_word) {
        l->plain.n = from;
        keywords_report_empty(l, &l->fleet->agents[agent], keyword);
        return true;
    }
    /* The buffer may still move, so `plain.p` is set later. */
    l->words[l->n++] = (struct lint_keyword){.agent = agent,
                                             .keyword = keyword,
                                             .plain.n = l->plain.n - from,
                                             .at = from};
    return true;
}

static int lint_keyword_compare(const void *a, const void *b)
{
    const struct lint_keyword *x = a, *y = b;
    int order = str_cmp(x->plain, y->plain);

    if (order)
        return order;
    return x->agent < y->agent ? -1 : x->agent > y->agent;
}

static bool keywords_list_words(struct keyword_lint *l)
{
    for (uint32_t i = 0; i < l->fleet->n; i++) {
        const struct strs *k = &l->fleet->agents[i].routing.keywords;

        for (size_t j = 0; j < k->n; j++)
            if (!keywords_add_word(l, i, k->list[j]))
                return false;
    }
    for (size_t i = 0; i < l->n; i++)
        l->words[i].plain.p = l->plain.p + l->words[i].at;
    if (l->n)
        qsort(l->words, l->n, sizeof(*l->words), lint_keyword_compare);
    return true;
}

/* Adds the agent's text without its keywords, with a blank before and after
 * each word. */
static bool keywords_add_text(struct buf *out, const struct agent *a)
{
    buf_add_char(out, ' ');
    keyword_plain(out, a->description);
    for (size_t i = 0; i < a->n_skills; i++) {
        const struct skill *s = &a->skills[i];

        keyword_plain(out, s->name);
        keyword_plain(out, s->description);
        for (size_t k = 0; k < s->examples.n; k++)
            keyword_plain(out, s->examples.list[k]);
    }
    return !out->over;
}

/* Generic keywords. */

static bool keyword_is_generic(struct str plain)
{
    while (plain.n)
        if (!keyword_is_everyday(str_cut(&plain, ' ')))
            return false;
    return true;
}

static size_t keyword_n_other_texts(const struct keyword_lint *l,
                                    const struct lint_keyword *w)
{
    char needle[1024] = " ";
    size_t n = 0;

    if (w->plain.n + 1 > sizeof(needle))
        return 0;
    memcpy(needle + 1, w->plain.p, w->plain.n);
    for (uint32_t i = 0; i < l->fleet->n; i++)
        n += i != w->agent && memmem(l->texts[i].p, l->texts[i].n, needle,
                                     w->plain.n + 1) != NULL;
    return n;
}

static void keywords_check_generic(struct keyword_lint *l,
                                   const struct lint_keyword *w)
{
    const struct agent *a = &l->fleet->agents[w->agent];
    struct lint_finding f = {
        .check = "keywords", .rule = "generic", .keyword = w->keyword};
    size_t others = keyword_n_other_texts(l, w);

    lint_name(&f, a->name);
    if (keyword_is_generic(w->plain))
        lint_say(&f,
                 "\"%.*s\" of %.*s occurs in messages for every agent, and "
                 "lifts this one above all others",
                 STR_ARG(str_head(w->keyword, 64)), STR_ARG(a->name));
    else if (others >= COMMON_LEAST && others * COMMON_SHARE >= l->fleet->n)
        lint_say(&f,
                 "\"%.*s\" of %.*s occurs in the descriptions of %zu other "
                 "agents",
                 STR_ARG(str_head(w->keyword, 64)), STR_ARG(a->name), others);
    else
        return;
    lint_advise(&f, "choose a word that people use only for %.*s",
                STR_ARG(a->name));
    l->each(l->ctx, &f);
}

/* Keywords of several agents. */

static void keywords_add_names(struct buf *out, const struct keyword_lint *l,
                               size_t from, size_t to)
{
    size_t n = to - from, shown = n > LINT_NAMED_MAX ? LINT_NAMED_MAX : n;

    for (size_t i = 0; i < shown; i++)
        buf_addf(out, "%s%.*s",
                 i == 0                       ? ""
                 : i + 1 < shown || shown < n ? ", "
                                              : " and ",
                 STR_ARG(l->fleet->agents[l->words[from + i].agent].name));
    if (shown < n)
        buf_addf(out, " and %zu more", n - shown);
}

static void keywords_report_shared(struct keyword_lint *l, size_t from,
                                   size_t to)
{
    struct lint_finding f = {.check = "keywords",
                             .rule = "shared",
                             .keyword = l->words[from].keyword};
    struct buf names;

    buf_init(&names, 300);
    keywords_add_names(&names, l, from, to);
    for (size_t i = from; i < to; i++)
        lint_name(&f, l->fleet->agents[l->words[i].agent].name);
    lint_say(&f, "\"%.*s\" is a keyword of %.*s: it lifts all of them equally",
             STR_ARG(str_head(f.keyword, 64)), STR_ARG(buf_str(&names)));
    lint_advise(&f, "keep it only for the agent that people mean by it");
    l->each(l->ctx, &f);
    buf_fini(&names);
}

static void keywords_report_twice(struct keyword_lint *l,
                                  const struct lint_keyword *w)
{
    struct lint_finding f = {
        .check = "keywords", .rule = "twice", .keyword = w->keyword};
    const struct agent *a = &l->fleet->agents[w->agent];

    f.is_note = true;
    lint_name(&f, a->name);
    lint_say(&f, "%.*s has the keyword \"%.*s\" twice", STR_ARG(a->name),
             STR_ARG(str_head(w->keyword, 64)));
    lint_advise(&f, "remove one; case is ignored");
    l->each(l->ctx, &f);
}

static void keywords_check_shared(struct keyword_lint *l)
{
    for (size_t i = 0, to; i < l->n; i = to) {
        size_t n_agents = 1;

        for (to = i + 1;
             to < l->n && str_eq(l->words[to].plain, l->words[i].plain); to++) {
            if (l->words[to].agent == l->words[to - 1].agent)
                keywords_report_twice(l, &l->words[to]);
            else
                n_agents++;
        }
        if (n_agents > 1)
            keywords_report_shared(l, i, to);
    }
}

/* Keywords within keywords of other agents: "test" matches every "unit test".
 */

static const struct lint_keyword *keywords_find(const struct keyword_lint *l,
                                                struct str plain)
{
    size_t from = 0, to = l->n;

    while (from < to) {
        size_t middle = (from + to) / 2;
        int order = str_cmp(l->words[middle].plain, plain);

        if (!order)
            return &l->words[middle];
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

static void keywords_report_within(struct keyword_lint *l,
                                   const struct lint_keyword *whole,
                                   const struct lint_keyword *part)
{
    struct lint_finding f = {
        .check = "keywords", .rule = "within", .keyword = part->keyword};
    struct str a = l->fleet->agents[part->agent].name;
    struct str b = l->fleet->agents[whole->agent].name;

    f.is_note = true;
    lint_name(&f, a);
    lint_name(&f, b);
    lint_say(&f,
             "\"%.*s\" of %.*s is part of \"%.*s\" of %.*s: a text with "
             "the latter lifts both",
             STR_ARG(str_head(part->keyword, 64)), STR_ARG(a),
             STR_ARG(str_head(whole->keyword, 64)), STR_ARG(b));
    lint_advise(&f,
                "fine if both are meant; otherwise choose a longer one for "
                "%.*s",
                STR_ARG(a));
    l->each(l->ctx, &f);
}

/* Tries every sequence of its words except the whole. */
static void keywords_check_within(struct keyword_lint *l,
                                  const struct lint_keyword *w)
{
    for (size_t from = 0; from < w->plain.n;
         from = str_find(w->plain, ' ', from) + 1)
        for (size_t to = str_find(w->plain, ' ', from) + 1; to <= w->plain.n;
             to = str_find(w->plain, ' ', to) + 1) {
            const struct lint_keyword *part =
                to - from < w->plain.n
                    ? keywords_find(l, str_sub(w->plain, from, to))
                    : NULL;

            if (part && part->agent != w->agent)
                keywords_report_within(l, w, part);
        }
}

enum err lint_keywords(const struct lint_fleet *fleet, lint_fn *each, void *ctx)
{
    struct keyword_lint l = {.fleet = fleet, .each = each, .ctx = ctx};
    bool is_good;

    l.words = calloc(keywords_count(fleet) + 1, sizeof(*l.words));
    l.texts = mem_array(fleet->n, sizeof(*l.texts));
    buf_init(&l.plain, ALL_PLAIN_MAX);
    for (size_t i = 0; i < fleet->n; i++)
        buf_init(&l.texts[i], PLAIN_MAX * 16);
    is_good = l.words && keywords_list_words(&l);
    for (size_t i = 0; is_good && i < fleet->n; i++)
        is_good = keywords_add_text(&l.texts[i], &fleet->agents[i]);
    for (size_t i = 0; is_good && i < l.n; i++)
        keywords_check_generic(&l, &l.words[i]);
    if (is_good)
        keywords_check_shared(&l);
    for (size_t i = 0; is_good && i < l.n; i++)
        keywords_check_within(&l, &l.words[i]);
    for (size_t i = 0; i < fleet->n; i++)
        buf_fini(&l.texts[i]);
    buf_fini(&l.plain);
    free(l.texts);
    free(l.words);
    return is_good ? OK : ERR_NOMEM;
}
