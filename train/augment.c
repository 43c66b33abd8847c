/* More texts out of those there are, since the teacher has a vector for any:
 * windows of words, because most of what people ask is short; requests around
 * what tools say of themselves; two things in one text. Nothing is made of a
 * text that is held out. Every number of chance belongs to the text it is
 * for, so a text gives the same whatever else there is. */
#include "train/train.h"

enum { MAX_TEXT_WORDS = 400 };

enum stream { CROPS = 1, REQUESTS, JOINS };

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

static struct str window(struct str s, const struct cut *c, size_t from,
                         size_t n)
{
    return str_sub(s, c->at[from], c->at[from + n] - 1);
}

/* A window of the text; all of it where it is too short for one. */
static struct str random_window(const struct recipe *r, struct str s,
                                uint64_t seed)
{
    size_t min = (size_t)r->crop_min_words, max = (size_t)r->crop_max_words;
    struct cut c;
    size_t n;

    cut_words(&c, s);
    if (max >= c.n)
        max = c.n ? c.n - 1 : 0;
    if (max < min)
        return s;
    n = min + chance_below(chance_at(seed, 0, 0), max - min + 1);
    return window(s, &c, chance_below(chance_at(seed, 0, 1), c.n - n + 1), n);
}

static uint64_t seed_of(const struct recipe *r, enum stream stream, size_t text,
                        size_t k)
{
    return chance_at((uint64_t)r->seed, (uint64_t)stream << 32 | k, text);
}

static void add_crops(struct corpus *c, const struct recipe *r, size_t i)
{
    struct text t = c->texts[i];

    for (int64_t k = 0; k < r->crops; k++)
        corpus_add_made(c, t.source,
                        random_window(r, t.s, seed_of(r, CROPS, i, (size_t)k)));
}

/* How many to make of one text, when `percent` are made of a hundred. */
static size_t times(int64_t percent, uint64_t chance)
{
    return (size_t)percent / 100 +
           (chance_below(chance, 100) < (size_t)percent % 100);
}

static const char *const openings[] = {
    "can you ",
    "could you please ",
    "i need to ",
    "i want to ",
    "i'd like to ",
    "how do i ",
    "how can i ",
    "please ",
    "help me ",
    "is there a way to ",
    "what should i use to ",
    "i'm trying to ",
};

enum { N_OPENINGS = sizeof(openings) / sizeof(openings[0]) };

/* Those whose texts say what something does, verb first. */
static bool says_what_it_does(const char *source)
{
    static const char *const names[] = {"tldr", "aws", "openapi_op"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(source, names[i]) == 0)
            return true;
    return false;
}

static bool ends(struct str s, struct str tail)
{
    return s.n > tail.n && str_eq(str_sub(s, s.n - tail.n, s.n), tail);
}

/* "deletes" -> "delete", "searches" -> "search", "copies" -> "copy". */
static void add_verb(struct buf *out, struct str verb)
{
    bool is_es = ends(verb, STR("ches")) || ends(verb, STR("shes")) ||
                 ends(verb, STR("sses")) || ends(verb, STR("xes"));

    if (ends(verb, STR("ies"))) {
        buf_add_str(out, str_sub(verb, 0, verb.n - 3));
        buf_add_char(out, 'y');
    } else if (ends(verb, STR("s")) && !ends(verb, STR("ss"))) {
        buf_add_str(out, str_sub(verb, 0, verb.n - (is_es ? 2 : 1)));
    } else {
        buf_add_str(out, verb);
    }
}

static void add_request(struct corpus *c, const struct recipe *r, size_t i,
                        size_t k)
{
    uint64_t seed = seed_of(r, REQUESTS, i, k);
    struct str rest = c->texts[i].s, verb;
    struct buf text, words;

    buf_init(&text, 8 * TEXT_MAX_BYTES);
    buf_init(&words, 8 * TEXT_MAX_BYTES);
    if (ends(rest, STR(" .")))
        rest.n -= 2;
    verb = str_cut(&rest, ' ');
    buf_add_str(
        &text,
        str_of(openings[chance_below(chance_at(seed, 0, 0), N_OPENINGS)]));
    add_verb(&text, verb);
    if (rest.n)
        buf_add_char(&text, ' ');
    buf_add_str(&text, rest);
    text_normalise(buf_str(&text), &words);
    if (words.n && !words.over && !text.over)
        corpus_add_made(c, c->texts[i].source, buf_str(&words));
    buf_fini(&text);
    buf_fini(&words);
}

static void add_requests(struct corpus *c, const struct recipe *r, size_t i)
{
    size_t n = times(r->requests, seed_of(r, REQUESTS, i, UINT32_MAX));

    if (!says_what_it_does(c->sources[c->texts[i].source]))
        return;
    for (size_t k = 0; k < n; k++)
        add_request(c, r, i, k);
}

static void add_join(struct corpus *c, const struct recipe *r, size_t i,
                     size_t k)
{
    uint64_t seed = seed_of(r, JOINS, i, k);
    size_t other = chance_below(chance_at(seed, 1, 0), c->n_read);
    struct buf text;

    if (c->texts[other].is_held)
        return;
    buf_init(&text, 8 * TEXT_MAX_BYTES);
    buf_add_str(&text, random_window(r, c->texts[i].s, chance_at(seed, 1, 1)));
    buf_add_str(&text, chance_at(seed, 1, 2) & 1 ? STR(" and ") : STR(" "));
    buf_add_str(&text,
                random_window(r, c->texts[other].s, chance_at(seed, 1, 3)));
    if (!text.over)
        corpus_add_made(c, c->texts[i].source, buf_str(&text));
    buf_fini(&text);
}

void augment(struct corpus *c, const struct recipe *r)
{
    for (size_t i = 0; i < c->n_read; i++) {
        size_t n_joins = times(r->joins, seed_of(r, JOINS, i, UINT32_MAX));

        if (c->texts[i].is_held)
            continue;
        add_crops(c, r, i);
        add_requests(c, r, i);
        for (size_t k = 0; k < n_joins; k++)
            add_join(c, r, i, k);
    }
}
