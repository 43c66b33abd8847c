/* Keywords that tell nothing. A keyword is worth 0.15 of a score to whoever has
 * it, so one that is in every message lifts its agent over all others, and one
 * that two agents have helps neither.
 *
 * Words are compared as routing does it (keyword.h). What is generic is found
 * in two ways: by a list of what people say to every agent, and by the other
 * agents' own texts, since in a fleet of translators "language" is no news. */
#include "cli/lint_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/keyword.h"

enum {
    PLAIN_MAX = 256 * 1024,
    COMMON_LEAST = 3, /* other agents that have the word in their texts */
    COMMON_SHARE = 4, /* and a fourth of them all */
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
struct word {
    uint32_t agent;
    struct str keyword;
    struct str plain; /* "blog post " */
    size_t at;        /* in l->plain */
};

struct looking {
    const struct lint_fleet *fleet;
    struct word *words;
    size_t n;
    struct buf plain;  /* of all keywords */
    struct buf *texts; /* of all agents, in plain words */
    lint_fn *each;
    void *ctx;
};

/* Making them plain. */

static size_t count(const struct lint_fleet *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++)
        n += f->agents[i].routing.keywords.n;
    return n;
}

/* One that has no letters never occurs, and helps nobody. */
static void say_empty(struct looking *l, const struct agent *a,
                      struct str keyword)
{
    struct lint_finding f = {
        .check = "keywords", .rule = "empty", .keyword = keyword};

    lint_name(&f, a->name);
    lint_say(&f,
             "\"%.*s\" of %.*s has neither letters nor digits, and is never "
             "found in a text",
             STR_ARG(str_head(keyword, 64)), STR_ARG(a->name));
    lint_advise(&f, "take it out");
    l->each(l->ctx, &f);
}

static bool add_word(struct looking *l, uint32_t agent, struct str keyword)
{
    size_t from = l->plain.n;
    bool is_word = keyword_plain(&l->plain, keyword);

    if (l->plain.over)
        return false;
    if (!is_word) {
        l->plain.n = from;
        say_empty(l, &l->fleet->agents[agent], keyword);
        return true;
    }
    /* Where it lies is known when all of them do. */
    l->words[l->n++] = (struct word){.agent = agent,
                                     .keyword = keyword,
                                     .plain.n = l->plain.n - from,
                                     .at = from};
    return true;
}

static int by_plain(const void *a, const void *b)
{
    const struct word *x = a, *y = b;
    int order = str_cmp(x->plain, y->plain);

    if (order)
        return order;
    return x->agent < y->agent ? -1 : x->agent > y->agent;
}

static bool list_words(struct looking *l)
{
    for (uint32_t i = 0; i < l->fleet->n; i++) {
        const struct strs *k = &l->fleet->agents[i].routing.keywords;

        for (size_t j = 0; j < k->n; j++)
            if (!add_word(l, i, k->list[j]))
                return false;
    }
    for (size_t i = 0; i < l->n; i++)
        l->words[i].plain.p = l->plain.p + l->words[i].at;
    if (l->n)
        qsort(l->words, l->n, sizeof(*l->words), by_plain);
    return true;
}

/* What an agent says beside its keywords, each word with a blank before it and
 * behind it. */
static bool add_text(struct buf *out, const struct agent *a)
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

static bool list_texts(struct looking *l)
{
    for (size_t i = 0; i < l->fleet->n; i++)
        if (!add_text(&l->texts[i], &l->fleet->agents[i]))
            return false;
    return true;
}

/* Generic ones. */

static bool is_generic(struct str plain)
{
    while (plain.n)
        if (!keyword_is_everyday(str_cut(&plain, ' ')))
            return false;
    return true;
}

static size_t n_others_with(const struct looking *l, const struct word *w)
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

static void check_generic(struct looking *l, const struct word *w)
{
    const struct agent *a = &l->fleet->agents[w->agent];
    struct lint_finding f = {
        .check = "keywords", .rule = "generic", .keyword = w->keyword};
    size_t others = n_others_with(l, w);

    lint_name(&f, a->name);
    if (is_generic(w->plain))
        lint_say(&f,
                 "\"%.*s\" of %.*s is said to every agent, and lifts this "
                 "one over all others",
                 STR_ARG(str_head(w->keyword, 64)), STR_ARG(a->name));
    else if (others >= COMMON_LEAST && others * COMMON_SHARE >= l->fleet->n)
        lint_say(&f,
                 "\"%.*s\" of %.*s is in what %zu of the other agents say "
                 "of themselves",
                 STR_ARG(str_head(w->keyword, 64)), STR_ARG(a->name), others);
    else
        return;
    lint_advise(&f, "choose a word that only people say who mean %.*s",
                STR_ARG(a->name));
    l->each(l->ctx, &f);
}

/* Those that several have. */

static void add_names(struct buf *out, const struct looking *l, size_t from,
                      size_t to)
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

static void say_shared(struct looking *l, size_t from, size_t to)
{
    struct lint_finding f = {.check = "keywords",
                             .rule = "shared",
                             .keyword = l->words[from].keyword};
    struct buf names;

    buf_init(&names, 300);
    add_names(&names, l, from, to);
    for (size_t i = from; i < to; i++)
        lint_name(&f, l->fleet->agents[l->words[i].agent].name);
    lint_say(&f, "\"%.*s\" is a keyword of %.*s: it lifts all of them alike",
             STR_ARG(str_head(f.keyword, 64)), STR_ARG(buf_str(&names)));
    lint_advise(&f, "leave it to the one that is meant by it");
    l->each(l->ctx, &f);
    buf_fini(&names);
}

/* One agent may have it twice; that is a slip. */
static void say_twice(struct looking *l, const struct word *w)
{
    struct lint_finding f = {
        .check = "keywords", .rule = "twice", .keyword = w->keyword};
    const struct agent *a = &l->fleet->agents[w->agent];

    f.is_note = true;
    lint_name(&f, a->name);
    lint_say(&f, "%.*s has the keyword \"%.*s\" twice", STR_ARG(a->name),
             STR_ARG(str_head(w->keyword, 64)));
    lint_advise(&f, "once is enough, whatever the case");
    l->each(l->ctx, &f);
}

static void check_shared(struct looking *l)
{
    for (size_t i = 0, to; i < l->n; i = to) {
        size_t n_agents = 1;

        for (to = i + 1;
             to < l->n && str_eq(l->words[to].plain, l->words[i].plain); to++) {
            if (l->words[to].agent == l->words[to - 1].agent)
                say_twice(l, &l->words[to]);
            else
                n_agents++;
        }
        if (n_agents > 1)
            say_shared(l, i, to);
    }
}

/* Those within another's: "test" fires for every "unit test". */

static const struct word *find(const struct looking *l, struct str plain)
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

static void say_within(struct looking *l, const struct word *whole,
                       const struct word *part)
{
    struct lint_finding f = {
        .check = "keywords", .rule = "within", .keyword = part->keyword};
    struct str a = l->fleet->agents[part->agent].name;
    struct str b = l->fleet->agents[whole->agent].name;

    f.is_note = true;
    lint_name(&f, a);
    lint_name(&f, b);
    lint_say(&f,
             "\"%.*s\" of %.*s is in \"%.*s\" of %.*s: a text with the "
             "latter lifts both",
             STR_ARG(str_head(part->keyword, 64)), STR_ARG(a),
             STR_ARG(str_head(whole->keyword, 64)), STR_ARG(b));
    lint_advise(&f, "fine if both are meant; else choose a longer one for %.*s",
                STR_ARG(a));
    l->each(l->ctx, &f);
}

/* Every run of words of it that is not all of it. */
static void check_within(struct looking *l, const struct word *w)
{
    for (size_t from = 0; from < w->plain.n;
         from = str_find(w->plain, ' ', from) + 1)
        for (size_t to = str_find(w->plain, ' ', from) + 1; to <= w->plain.n;
             to = str_find(w->plain, ' ', to) + 1) {
            const struct word *part = to - from < w->plain.n
                                          ? find(l, str_sub(w->plain, from, to))
                                          : NULL;

            if (part && part->agent != w->agent)
                say_within(l, w, part);
        }
}

enum err lint_keywords(const struct lint_fleet *fleet, lint_fn *each, void *ctx)
{
    struct looking l = {.fleet = fleet, .each = each, .ctx = ctx};
    bool is_good;

    l.words = calloc(count(fleet) + 1, sizeof(*l.words));
    l.texts = calloc(fleet->n + 1, sizeof(*l.texts));
    buf_init(&l.plain, ALL_PLAIN_MAX);
    for (size_t i = 0; l.texts && i < fleet->n; i++)
        buf_init(&l.texts[i], PLAIN_MAX * 16);
    is_good = l.words && l.texts && list_words(&l) && list_texts(&l);
    for (size_t i = 0; is_good && i < l.n; i++)
        check_generic(&l, &l.words[i]);
    if (is_good)
        check_shared(&l);
    for (size_t i = 0; is_good && i < l.n; i++)
        check_within(&l, &l.words[i]);
    for (size_t i = 0; l.texts && i < fleet->n; i++)
        buf_fini(&l.texts[i]);
    buf_fini(&l.plain);
    free(l.texts);
    free(l.words);
    return is_good ? OK : ERR_NOMEM;
}
