/* More texts out of those there are, since the teacher has a vector for any:
 * cards, because agents describe themselves as "name: description"; requests,
 * because people ask; several in one; windows of words, which did not pay
 * (README.md). Nothing is made of a text that is held out. */
#include "train/train.h"

enum { MAX_TEXT_WORDS = 400, MAX_REQUEST_WORDS = 12 };

enum stream { CARDS = 1, REQUESTS, JOINS, CROPS };

static uint64_t chance_of(const struct recipe *r, enum stream stream, size_t i,
                          size_t k)
{
    return chance_at((uint64_t)r->seed, (uint64_t)stream << 32 | k, i);
}

/* Whether one of `n` is among about `wanted`. */
static bool is_drawn(const struct recipe *r, enum stream stream, size_t i,
                     int64_t wanted, size_t n)
{
    return chance_real(chance_of(r, stream, i, 0)) * (double)n < (double)wanted;
}

static struct str without_dots(struct str s)
{
    while (s.n >= 2 && str_eq(str_sub(s, s.n - 2, s.n), STR(" .")))
        s.n -= 2;
    return s;
}

/* ---- cards ---- */

static bool is_free(const struct corpus *c, size_t pair)
{
    return !c->texts[c->pairs[pair].a].is_held &&
           !c->texts[c->pairs[pair].b].is_held;
}

static void add_cards(struct corpus *c, const struct recipe *r,
                      struct buf *text)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_pairs; i++)
        n += is_free(c, i);
    for (size_t i = 0; i < c->n_pairs; i++) {
        struct pair p = c->pairs[i];

        if (!is_free(c, i) || !is_drawn(r, CARDS, i, r->cards, n))
            continue;
        buf_clear(text);
        buf_add_str(text, without_dots(c->texts[p.a].s));
        buf_add_str(text, STR(" : "));
        buf_add_str(text, c->texts[p.b].s);
        if (!text->over)
            corpus_add_made(c, GROUP_CARDS, p.source, buf_str(text));
    }
}

/* ---- requests ---- */

/* Where the words of a text begin; the last entry is behind the end. */
struct cut {
    size_t n;
    size_t at[MAX_TEXT_WORDS + 1];
};

static void cut_words(struct cut *c, struct str s)
{
    c->n = 0;
    c->at[0] = 0;
    for (size_t i = 0; i <= s.n && c->n < MAX_TEXT_WORDS; i++)
        if (i == s.n || s.p[i] == ' ')
            c->at[++c->n] = i + 1;
}

static bool is_short(const struct text *t)
{
    struct cut cut;

    cut_words(&cut, without_dots(t->s));
    return !t->is_held && cut.n <= MAX_REQUEST_WORDS;
}

static void add_requests(struct corpus *c, const struct recipe *r,
                         const struct str_list *templates, struct buf *text)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_read; i++)
        n += is_short(&c->texts[i]);
    for (size_t i = 0; i < c->n_read; i++) {
        struct text t = c->texts[i];
        struct str rest;

        if (!is_short(&t) || !is_drawn(r, REQUESTS, i, r->requests, n))
            continue;
        rest =
            templates
                ->all[chance_below(chance_of(r, REQUESTS, i, 1), templates->n)];
        buf_clear(text);
        buf_add_str(text, str_cut(&rest, '{'));
        buf_add_str(text, without_dots(t.s));
        buf_add_str(text, str_sub(rest, 1, rest.n));
        if (!text->over)
            corpus_make(c, GROUP_REQUESTS, t.source, buf_str(text));
    }
}

/* ---- joins ---- */

static void add_joins(struct corpus *c, const struct recipe *r,
                      struct buf *text)
{
    for (int64_t i = 0; i < r->joins && c->n_read; i++) {
        size_t n = 2 + chance_below(chance_of(r, JOINS, (size_t)i, 0), 2);
        bool is_held = false;
        uint8_t source = 0;

        buf_clear(text);
        for (size_t k = 1; k <= n; k++) {
            size_t j =
                chance_below(chance_of(r, JOINS, (size_t)i, k), c->n_read);

            is_held = is_held || c->texts[j].is_held;
            source = c->texts[j].source;
            buf_add_str(text, k > 1 ? STR(" . ") : STR(""));
            buf_add_str(text, without_dots(c->texts[j].s));
        }
        if (!is_held && !text->over)
            corpus_add_made(c, GROUP_JOINS, source, buf_str(text));
    }
}

/* ---- windows ---- */

static void add_crops(struct corpus *c, const struct recipe *r, size_t i)
{
    struct text t = c->texts[i];
    size_t min = (size_t)r->crop_min_words, max = (size_t)r->crop_max_words;
    struct cut cut;

    cut_words(&cut, t.s);
    if (max >= cut.n)
        max = cut.n ? cut.n - 1 : 0;
    for (size_t k = 0; k < (size_t)r->crops && max >= min; k++) {
        size_t n =
            min + chance_below(chance_of(r, CROPS, i, 2 * k), max - min + 1);
        size_t from =
            chance_below(chance_of(r, CROPS, i, 2 * k + 1), cut.n - n + 1);

        corpus_add_made(c, GROUP_CROPS, t.source,
                        str_sub(t.s, cut.at[from], cut.at[from + n] - 1));
    }
}

void augment(struct corpus *c, const struct recipe *r, const struct grammar *g,
             const struct lexicon *l)
{
    struct buf text;

    buf_init(&text, 8 * TEXT_MAX_BYTES);
    add_cards(c, r, &text);
    add_requests(c, r, &g->lists[GRAMMAR_REQUESTS], &text);
    add_joins(c, r, &text);
    for (size_t i = 0; i < c->n_read; i++)
        if (!c->texts[i].is_held)
            add_crops(c, r, i);
    utterances_make(c, r, g, l);
    buf_fini(&text);
}
