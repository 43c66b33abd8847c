/* Corrects typing mistakes in a message before it is compared with the cards.
 *
 * A misspelt word is split into pieces that mean something else ("vist" becomes
 * "vis" and "##t"), and the word search does not find it at all. The words of
 * the built-in model are a dictionary of 28 000 words, sorted by frequency. A
 * word outside it is compared with all words that are one edit away: a letter
 * missing, doubled, added, replaced, or two swapped. The edits are generated
 * and looked up in the model's hash table (about 500 lookups), so no other
 * index and no memory is needed. A message without unknown words costs one
 * lookup per word.
 *
 * The cheapest edit wins. Frequent words cost less, and so do words of a card
 * that the requester sees. Words of other cards are never used, so a correction
 * reveals nothing about hidden cards.
 *
 * The dictionary lacks many correct words, and a wrong correction is worse than
 * none. So these are left alone: inflections of a known word and the base of
 * one, compounds of two known words, words of a visible card, names (capital
 * letters inside a sentence), identifiers, paths, numbers, quotes and code; and
 * any text that is not English, recognised by half of its words being unknown.
 *
 * Measured and rejected, by the accuracy for misspelt messages: two edits in
 * long words (no gain), the original next to its correction (2.4 points less on
 * clinc150), words of the index as further candidates (at most 0.3 points). */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "embed/table.h"

enum {
    GUESSES = 6,          /* per word, that the cards are asked about */
    BASE_MIN = 4,         /* letters of a word that may take suffixes */
    GIBBERISH_WORDS = 64, /* a longer text never counts as gibberish */
};

/* Costs in hundredths. An edit costs ONE_EDIT; the word's frequency adds up to
 * 360. */
enum {
    ONE_EDIT = 400,
    OTHER_FIRST_LETTER = 300,
    SAID_BY_A_CARD = -200,
    SWAPPED = -100,
    DOUBLED = -100,
    MISSING = -50,
    LIKELY_LETTER = 100,
    OTHER_LETTER = 400,
    COST_MAX = 700,
};

struct speller {
    struct vocab words;
};

struct guess {
    uint32_t id;
    int cost;
};

struct unknown {
    struct str place;
    size_t n;
    char word[SPELL_WORD_MAX];
    bool is_fixed_text; /* a name, an identifier, a quote: left alone */
    struct guess guesses[GUESSES];
    size_t n_guesses;
};

/* ---- words that are known ---- */

/* The id of an English word. Words of other languages follow those, and are
 * neither known nor offered here. */
static uint32_t find_english(const struct vocab *v, const char *p, size_t n)
{
    uint32_t id = vocab_find(v, STR(""), (struct str){p, n});

    return id < BUILTIN_ENGLISH ? id : VOCAB_NONE;
}

static bool has(const struct vocab *v, const char *p, size_t n)
{
    return n && find_english(v, p, n) != VOCAB_NONE;
}

/* Whether the word is known with its last `cut` letters replaced by `tail`. */
static bool has_with(const struct vocab *v, struct str word, size_t cut,
                     const char *tail)
{
    char made[SPELL_WORD_MAX + 8];
    size_t n = word.n - cut, n_tail = strlen(tail);

    memcpy(made, word.p, n);
    memcpy(made + n, tail, n_tail);
    return has(v, made, n + n_tail);
}

/* "baked" of "bake", "stopped" of "stop", "parties" of "party". */
static bool is_inflected(const struct vocab *v, struct str word)
{
    static const char *const endings[] = {
        "s",  "es",   "ed",   "ing",  "ly",   "er",  "ers", "ion", "ions",
        "al", "able", "ment", "ness", "less", "ful", "est", "ies"};

    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        struct str tail = str_of(endings[i]);
        size_t n = word.n > tail.n ? word.n - tail.n : 0;

        if (n < BASE_MIN || memcmp(word.p + n, tail.p, tail.n) != 0)
            continue;
        if (has(v, word.p, n) || has_with(v, word, tail.n, "e") ||
            (word.p[n - 1] == word.p[n - 2] && has(v, word.p, n - 1)) ||
            (i + 1 == sizeof(endings) / sizeof(*endings) &&
             has_with(v, word, tail.n, "y")))
            return true;
    }
    return false;
}

/* "bake" if "baked" is known, "horoscope" if "horoscopes" is. */
static bool is_base(const struct vocab *v, struct str word)
{
    static const struct {
        const char *end, *tails[4];
    } rules[] = {
        {"", {"s", "es", "ing", "ed"}}, {"", {"ly", "er", "d", NULL}},
        {"e", {"ing", "ion", NULL}},    {"y", {"ies", "ied", NULL}},
        {"ive", {"ion", NULL}},         {"al", {"y", "", NULL}},
        {"ic", {"y", "ia", NULL}},      {"ible", {"ive", NULL}},
    };
    char doubled[8] = {word.p[word.n - 1]};

    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
        size_t n = strlen(rules[i].end);

        if (word.n < n + 3 || memcmp(word.p + word.n - n, rules[i].end, n) != 0)
            continue;
        for (size_t k = 0; k < 4 && rules[i].tails[k]; k++)
            if (has_with(v, word, n, rules[i].tails[k]))
                return true;
    }
    memcpy(doubled + 1, "ing", 4);
    if (has_with(v, word, 0, doubled))
        return true;
    memcpy(doubled + 1, "ed", 3);
    return has_with(v, word, 0, doubled);
}

/* "checkbook", "reschedule". */
static bool is_compound(const struct vocab *v, struct str word)
{
    static const char *const heads[] = {"un",  "re",   "non", "pre",  "over",
                                        "dis", "mis",  "out", "up",   "sub",
                                        "co",  "anti", "in",  "inter"};

    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        size_t n = strlen(heads[i]);

        if (word.n >= n + 4 && memcmp(word.p, heads[i], n) == 0 &&
            has(v, word.p + n, word.n - n))
            return true;
    }
    for (size_t i = 3; word.n >= 8 && i + 3 <= word.n; i++)
        if (has(v, word.p, i) && has(v, word.p + i, word.n - i))
            return true;
    return false;
}

/* An abbreviation, or written without its apostrophe on purpose. */
static bool is_shortened(struct str word)
{
    static const char *const all[] = {
        "alot",   "arent",  "asap",  "cant",    "couldnt",  "didnt",
        "doesnt", "dont",   "hadnt", "hasnt",   "havent",   "heres",
        "hows",   "isnt",   "ive",   "lets",    "shouldnt", "thats",
        "theres", "theyre", "wasnt", "werent",  "weve",     "whats",
        "wheres", "whos",   "wont",  "wouldnt", "youre",    "youve"};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (str_eq(word, str_of(all[i])))
            return true;
    return false;
}

static bool spell_is_known(const struct vocab *v, struct str word)
{
    return has(v, word.p, word.n) || is_shortened(word) ||
           is_inflected(v, word) || is_base(v, word) || is_compound(v, word);
}

/* ---- words that are left alone ---- */

/* The bytes around a word, up to the next spaces. */
static struct str token_around(struct str text, struct str place)
{
    size_t from = (size_t)(place.p - text.p), to = from + place.n;

    while (from > 0 && !str_is_space(text.p[from - 1]))
        from--;
    while (to < text.n && !str_is_space(text.p[to]))
        to++;
    return str_sub(text, from, to);
}

/* Whether the token is plain prose: letters, an apostrophe, surrounding
 * brackets and trailing punctuation. */
static bool is_plain_token(struct str token)
{
    while (token.n && token.p[0] == '(')
        token = str_sub(token, 1, token.n);
    while (token.n && strchr(".,;:!?)", token.p[token.n - 1]))
        token.n--;
    for (size_t i = 0; i < token.n; i++)
        if (!isalpha((unsigned char)token.p[i]) && token.p[i] != '\'')
            return false;
    return token.n > 0;
}

static bool begins_sentence(struct str text, struct str place)
{
    size_t at = (size_t)(place.p - text.p);

    while (at > 0 && str_is_space(text.p[at - 1]))
        if (text.p[--at] == '\n')
            return true;
    return at == 0 || strchr(".!?:", text.p[at - 1]) != NULL;
}

static bool is_name(struct str text, struct str place, bool is_all_caps)
{
    for (size_t i = 1; i < place.n; i++)
        if (place.p[i] >= 'A' && place.p[i] <= 'Z')
            return !is_all_caps;
    return place.p[0] >= 'A' && place.p[0] <= 'Z' && !is_all_caps &&
           !begins_sentence(text, place);
}

static bool is_in_all_caps(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] >= 'a' && text.p[i] <= 'z')
            return false;
    return true;
}

/* ---- one edit ---- */

static bool is_likely_letter(char a, char b)
{
    static const char *const near[26] = {
        "qswzeiou", "vghnp",  "xdfvsk",  "serfcxt", "wsdraiouy", "drtgcv",
        "ftyhvb",   "gyujbn", "ujkoaey", "huikmn",  "jiolmc",    "kop",
        "njk",      "bhjm",   "iklpaeu", "olb",     "wa",        "edft",
        "awedxzc",  "rfgyd",  "yhjiaeo", "cfgb",    "qase",      "zsdc",
        "tghuei",   "asxs"};

    return strchr(near[a - 'a'], b) != NULL;
}

static void spell_offer(const struct vocab *v, struct unknown *u,
                        const char *made, size_t n, int cost)
{
    uint32_t id = n >= 3 ? find_english(v, made, n) : VOCAB_NONE;
    size_t at;

    if (id == VOCAB_NONE)
        return;
    cost += ONE_EDIT + (int)(100 * log(((double)id + 1000) / 1000));
    if (made[0] != u->word[0])
        cost += OTHER_FIRST_LETTER;
    for (at = 0; at < u->n_guesses; at++)
        if (u->guesses[at].id == id)
            return;
    if (at < GUESSES)
        u->n_guesses++;
    else if (u->guesses[--at].cost <= cost)
        return;
    for (; at > 0 && u->guesses[at - 1].cost > cost; at--)
        u->guesses[at] = u->guesses[at - 1];
    u->guesses[at] = (struct guess){id, cost};
}

/* Likely edits come first: a word that two edits reach is offered by the
 * cheaper one. */
static void spell_guess(const struct vocab *v, struct unknown *u)
{
    const char *w = u->word;
    size_t n = u->n;
    char made[SPELL_WORD_MAX + 1];

    for (size_t i = 0; i + 1 < n; i++)
        if (w[i] != w[i + 1]) {
            memcpy(made, w, n);
            made[i] = w[i + 1];
            made[i + 1] = w[i];
            spell_offer(v, u, made, n, SWAPPED);
        }
    for (size_t i = 0; i < n; i++) {
        memcpy(made, w, i);
        memcpy(made + i, w + i + 1, n - i - 1);
        spell_offer(v, u, made, n - 1, i && w[i] == w[i - 1] ? DOUBLED : 0);
    }
    for (size_t i = 0; i <= n; i++)
        for (int c = 'a'; c <= 'z'; c++) {
            memcpy(made, w, i);
            made[i] = (char)c;
            memcpy(made + i + 1, w + i, n - i);
            spell_offer(v, u, made, n + 1, MISSING);
        }
    for (size_t i = 0; i < n; i++)
        for (int c = 'a'; c <= 'z'; c++) {
            if (c == w[i])
                continue;
            memcpy(made, w, n);
            made[i] = (char)c;
            spell_offer(v, u, made, n,
                        is_likely_letter(w[i], (char)c) ? LIKELY_LETTER
                                                        : OTHER_LETTER);
        }
}

/* ---- a text ---- */

static bool is_latin(struct str word)
{
    for (size_t i = 0; i < word.n; i++)
        if (word.p[i] < 'a' || word.p[i] > 'z')
            return false;
    return true;
}

/* The unknown words of a text; returns how many, or zero if there are more than
 * in an English text. */
static size_t spell_find_unknown(const struct vocab *v, struct str text,
                                 struct unknown list[SPELL_UNKNOWN_MAX])
{
    bool is_all_caps = is_in_all_caps(text);
    bool is_quoted = false;
    size_t n = 0, n_words = 0, n_strange = 0;
    struct words w;

    words_begin(&w, text);
    while (words_next(&w)) {
        struct unknown *u = &list[n];

        if (word_is_punctuation(w.word)) {
            is_quoted ^= w.word.p[0] == '"' || w.word.p[0] == '`';
            continue;
        }
        n_words++;
        if (w.word.n < SPELL_WORD_MIN || w.word.n > SPELL_WORD_MAX)
            continue;
        if (!is_latin(w.word)) {
            n_strange += (unsigned char)w.word.p[0] >= 0x80;
            continue;
        }
        if (spell_is_known(v, w.word))
            continue;
        n_strange++;
        if (n == SPELL_UNKNOWN_MAX)
            return 0;
        *u = (struct unknown){.place = w.place, .n = w.word.n};
        memcpy(u->word, w.word.p, w.word.n);
        u->is_fixed_text = is_quoted || w.place.n != w.word.n ||
                           !is_plain_token(token_around(text, w.place)) ||
                           is_name(text, w.place, is_all_caps);
        n++;
    }
    return n_strange > 2 && 2 * n_strange > n_words ? 0 : n;
}

static void ask_cards(struct unknown *list, size_t n, spell_said *said,
                      void *ctx)
{
    struct str words[SPELL_UNKNOWN_MAX];
    bool is_said[SPELL_UNKNOWN_MAX] = {false};

    for (size_t i = 0; i < n; i++)
        words[i] = (struct str){list[i].word, list[i].n};
    said(ctx, words, n, is_said);
    for (size_t i = 0; i < n; i++)
        list[i].is_fixed_text |= is_said[i];
}

/* The cheapest guess after asking the cards; VOCAB_NONE: none is good. */
static uint32_t spell_best_guess(const struct vocab *v, const struct unknown *u,
                                 spell_said *said, void *ctx)
{
    struct str words[GUESSES];
    bool is_said[GUESSES] = {false};
    struct guess best = {VOCAB_NONE, COST_MAX + 1};

    for (size_t i = 0; i < u->n_guesses; i++)
        words[i] = vocab_piece(v, u->guesses[i].id);
    if (said && u->n_guesses)
        said(ctx, words, u->n_guesses, is_said);
    for (size_t i = 0; i < u->n_guesses; i++) {
        struct guess g = u->guesses[i];

        g.cost += is_said[i] ? SAID_BY_A_CARD : 0;
        if (g.cost < best.cost)
            best = g;
    }
    return best.id;
}

size_t speller_correct(const struct speller *s, struct str text,
                       spell_said *said, void *ctx, struct buf *out)
{
    struct unknown list[SPELL_UNKNOWN_MAX];
    size_t n, n_fixed = 0, at = 0, before = out->n;

    text = str_head(text, SPELL_TEXT_MAX);
    n = spell_find_unknown(&s->words, text, list);
    if (n && said)
        ask_cards(list, n, said, ctx);
    for (size_t i = 0; i < n && n_fixed < SPELL_FIXED_MAX; i++) {
        struct unknown *u = &list[i];
        size_t from = (size_t)(u->place.p - text.p);
        uint32_t id;

        if (u->is_fixed_text)
            continue;
        spell_guess(&s->words, u);
        id = spell_best_guess(&s->words, u, said, ctx);
        if (id == VOCAB_NONE)
            continue;
        buf_add_str(out, str_sub(text, at, from));
        buf_add_str(out, vocab_piece(&s->words, id));
        at = from + u->place.n;
        n_fixed++;
    }
    if (n_fixed)
        buf_add_str(out, str_sub(text, at, text.n));
    if (out->over) {
        out->n = before;
        return 0;
    }
    return n_fixed;
}

/* ---- gibberish ---- */

/* Whether most of its letters are neighbours on the keyboard: "asdf",
 * "qwerty". */
static bool is_keyboard_run(struct str word)
{
    static const char *const rows[] = {"qwertyuiop", "asdfghjkl", "zxcvbnm"};
    size_t n_beside = 0;

    for (size_t i = 0; i + 1 < word.n; i++)
        for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
            const char *at = strchr(rows[k], word.p[i]);

            if (at && (at[1] == word.p[i + 1] ||
                       (at > rows[k] && at[-1] == word.p[i + 1])))
                n_beside++;
        }
    return 4 * n_beside >= 3 * (word.n - 1);
}

static size_t count_pieces(const struct vocab *v, struct str word)
{
    size_t n_pieces = 0;

    for (size_t at = 0, n; at < word.n; at += n ? n : 1) {
        uint32_t id;

        n = wordpiece_first(v, str_sub(word, at, word.n), at > 0, &id);
        n_pieces++;
    }
    return n_pieces;
}

/* Keys struck at random. The vocabulary has pieces of two or more letters for
 * most words, in other languages too; for random keys it has little more than
 * single letters. Short words without vowels are abbreviations ("psql"). */
static bool is_mash(const struct vocab *v, struct str word)
{
    size_t pieces = count_pieces(v, word), run = 0, longest = 0, n_vowels = 0;
    bool is_one_letter = true;

    for (size_t i = 0; i < word.n; i++) {
        bool is_vowel = strchr("aeiouy", word.p[i]) != NULL;

        is_one_letter &= word.p[i] == word.p[0];
        n_vowels += is_vowel;
        run = is_vowel ? 0 : run + 1;
        longest = run > longest ? run : longest;
    }
    return is_one_letter || is_keyboard_run(word) ||
           (word.n >= 6 && 100 * word.n <= 165 * pieces) ||
           (word.n >= 5 && longest >= 4 && n_vowels && word.n <= 2 * pieces);
}

bool speller_is_gibberish(const struct speller *s, struct str text,
                          spell_said *said, void *ctx)
{
    char kept[GIBBERISH_WORDS][SPELL_WORD_MAX];
    struct str list[GIBBERISH_WORDS];
    bool is_said[GIBBERISH_WORDS] = {false};
    size_t n = 0, n_letters = 0, n_mashed = 0;
    struct words w;

    words_begin(&w, text);
    while (words_next(&w)) {
        if (word_is_punctuation(w.word))
            continue;
        if (n == GIBBERISH_WORDS || w.word.n > SPELL_WORD_MAX ||
            !is_latin(w.word) || w.place.n != w.word.n ||
            (w.word.n > 1 && spell_is_known(&s->words, w.word)))
            return false;
        n_letters += w.word.n;
        n_mashed += w.word.n > 3 && is_mash(&s->words, w.word) ? w.word.n : 0;
        memcpy(kept[n], w.word.p, w.word.n);
        list[n] = (struct str){kept[n], w.word.n};
        n++;
    }
    if (!n_mashed || 2 * n_mashed < n_letters)
        return false;
    if (said)
        said(ctx, list, n, is_said);
    for (size_t i = 0; i < n; i++)
        if (is_said[i])
            return false;
    return true;
}

enum err speller_new(struct speller **out, struct why *why)
{
    struct speller *s = mem_new(sizeof(*s));
    enum err e = builtin_words(&s->words, why);

    if (e) {
        free(s);
        s = NULL;
    }
    *out = s;
    return e;
}

void speller_free(struct speller *s)
{
    free(s);
}
