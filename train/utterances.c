/* What people might say to an assistant: a template of utterances.txt with its
 * slots filled by chance. Most of it makes no sense, and need not: the teacher
 * has a vector for it all the same, and what the table learns from it is what
 * "how much is a" adds to a noun. */
#include "train/slots.h"
#include "train/train.h"

static const char *const names[N_SLOTS] = {
    [SLOT_N] = "n",         [SLOT_N2] = "n2",     [SLOT_A_N] = "a_n",
    [SLOT_A_N2] = "a_n2",   [SLOT_NS] = "ns",     [SLOT_NS2] = "ns2",
    [SLOT_NN] = "nn",       [SLOT_A_NN] = "a_nn", [SLOT_ADJ] = "adj",
    [SLOT_A_ADJ] = "a_adj", [SLOT_VP] = "vp",     [SLOT_P] = "p",
    [SLOT_T] = "t",         [SLOT_M] = "m",       [SLOT_NUM] = "num",
    [SLOT_LANG] = "lang",   [SLOT_X] = "x",
};

enum slot slot_find(struct str name)
{
    size_t i = 0;

    while (i < N_SLOTS && !str_eq(name, str_of(names[i])))
        i++;
    return (enum slot)i;
}

/* The numbers of chance of one utterance, each for one thing. */
enum draw {
    DRAW_TEMPLATE,
    DRAW_NOUN,
    DRAW_NOUN2,
    DRAW_NOUN3,
    DRAW_IS_COMPOUND,
    DRAW_COMPOUND,
    DRAW_ADJECTIVE,
    DRAW_DOING,
    DRAW_PLACE,
    DRAW_TIME,
    DRAW_NUMBER,
    DRAW_LANGUAGE,
    DRAW_ANY,
    DRAW_AROUND,
};

struct saying {
    const struct grammar *g;
    const struct lexicon *l;
    uint64_t seed;
    struct str noun, noun2, noun3, adjective;
    struct str compound; /* empty: noun and noun3 */
};

static uint64_t draw(const struct saying *s, enum draw what)
{
    return chance_at(s->seed, 0, what);
}

static struct str pick(const struct saying *s, enum grammar_list list,
                       enum draw what)
{
    const struct str_list *l = &s->g->lists[list];

    return l->all[chance_below(draw(s, what), l->n)];
}

static void add_compound(const struct saying *s, struct buf *out)
{
    if (s->compound.n) {
        buf_add_str(out, s->compound);
        return;
    }
    buf_add_str(out, s->noun);
    buf_add_char(out, ' ');
    buf_add_str(out, s->noun3);
}

static void add_article(struct str word, struct buf *out)
{
    bool is_vowel = word.n && strchr("aeiou", word.p[0]);

    buf_add_str(out, is_vowel ? STR("an ") : STR("a "));
}

static bool ends(struct str s, struct str tail)
{
    return s.n > tail.n && str_eq(str_sub(s, s.n - tail.n, s.n), tail);
}

static void add_plural(struct str s, struct buf *out)
{
    if (ends(s, STR("s")) || ends(s, STR("x")) || ends(s, STR("ch")) ||
        ends(s, STR("sh"))) {
        buf_add_str(out, s);
        buf_add_str(out, STR("es"));
    } else if (ends(s, STR("y")) && !strchr("aeiou", s.p[s.n - 2])) {
        buf_add_str(out, str_sub(s, 0, s.n - 1));
        buf_add_str(out, STR("ies"));
    } else {
        buf_add_str(out, s);
        buf_add_char(out, 's');
    }
}

static void add_any(const struct saying *s, struct buf *out)
{
    switch (chance_below(draw(s, DRAW_ANY), 4)) {
    case 0: add_compound(s, out); break;
    case 1: buf_add_str(out, s->noun); break;
    case 2: buf_add_str(out, s->adjective); break;
    default:
        buf_add_str(out, s->noun3);
        buf_add_char(out, ' ');
        buf_add_str(out, s->noun);
        break;
    }
}

static void add_with_article(struct str word, struct buf *out)
{
    add_article(word, out);
    buf_add_str(out, word);
}

static void add_slot(const struct saying *s, enum slot slot, struct buf *out)
{
    switch (slot) {
    case SLOT_N: buf_add_str(out, s->noun); break;
    case SLOT_N2: buf_add_str(out, s->noun2); break;
    case SLOT_A_N: add_with_article(s->noun, out); break;
    case SLOT_A_N2: add_with_article(s->noun2, out); break;
    case SLOT_NS: add_plural(s->noun, out); break;
    case SLOT_NS2: add_plural(s->noun2, out); break;
    case SLOT_A_NN:
        add_article(s->compound.n ? s->compound : s->noun, out);
        add_compound(s, out);
        break;
    case SLOT_NN: add_compound(s, out); break;
    case SLOT_ADJ: buf_add_str(out, s->adjective); break;
    case SLOT_A_ADJ: add_with_article(s->adjective, out); break;
    case SLOT_VP:
        buf_add_str(out,
                    lexicon_pick(s->l, LEXICON_DOINGS, draw(s, DRAW_DOING)));
        break;
    case SLOT_P: buf_add_str(out, pick(s, GRAMMAR_PLACES, DRAW_PLACE)); break;
    case SLOT_T: buf_add_str(out, pick(s, GRAMMAR_TIMES, DRAW_TIME)); break;
    case SLOT_M:
        buf_add_str(out, pick(s, GRAMMAR_NUMBERS, DRAW_NUMBER));
        buf_add_str(out, STR(" dollars"));
        break;
    case SLOT_NUM:
        buf_add_str(out, pick(s, GRAMMAR_NUMBERS, DRAW_NUMBER));
        break;
    case SLOT_LANG:
        buf_add_str(out, pick(s, GRAMMAR_LANGUAGES, DRAW_LANGUAGE));
        break;
    case SLOT_X: add_any(s, out); break;
    case N_SLOTS: break;
    }
}

static struct saying saying_of(const struct grammar *g, const struct lexicon *l,
                               uint64_t seed)
{
    struct saying s = {.g = g, .l = l, .seed = seed};

    s.noun = lexicon_pick(l, LEXICON_NOUNS, draw(&s, DRAW_NOUN));
    s.noun2 = lexicon_pick(l, LEXICON_NOUNS, draw(&s, DRAW_NOUN2));
    s.noun3 = lexicon_pick(l, LEXICON_NOUNS, draw(&s, DRAW_NOUN3));
    s.adjective = lexicon_pick(l, LEXICON_ADJECTIVES, draw(&s, DRAW_ADJECTIVE));
    if (chance_real(draw(&s, DRAW_IS_COMPOUND)) < 0.6)
        s.compound =
            lexicon_pick(l, LEXICON_COMPOUNDS, draw(&s, DRAW_COMPOUND));
    return s;
}

static void say(const struct saying *s, struct buf *out)
{
    struct str rest = pick(s, GRAMMAR_UTTERANCES, DRAW_TEMPLATE), before, slot;
    double around = chance_real(draw(s, DRAW_AROUND));

    if (around < 0.1)
        buf_add_str(out, STR("hey, "));
    else if (around < 0.15)
        buf_add_str(out, STR("ok "));
    while (slot_next(&rest, &before, &slot)) {
        buf_add_str(out, before);
        add_slot(s, slot_find(slot), out);
    }
    buf_add_str(out, before);
    if (around >= 0.9)
        buf_add_str(out, STR(" please"));
}

void utterances_make(struct corpus *c, const struct recipe *r,
                     const struct grammar *g, const struct lexicon *l)
{
    enum { STREAM = 50 };
    uint8_t source = corpus_source(c, STR("utterances"));
    struct buf text;

    buf_init(&text, TEXT_MAX_BYTES);
    for (int64_t i = 0; i < r->utterances; i++) {
        struct saying s =
            saying_of(g, l, chance_at((uint64_t)r->seed, STREAM, (uint64_t)i));

        buf_clear(&text);
        say(&s, &text);
        corpus_make(c, GROUP_UTTERANCES, source, buf_str(&text));
    }
    buf_fini(&text);
}
