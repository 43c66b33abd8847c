#include "model/decision.h"

#include "base/map.h"
#include "base/words.h"

enum {
    HASHED_MAX = 16 * 1024
}; /* in bytes; of the rest only the length
    * counts */

#define LAYER_STR(id, number, name, words) [LAYER_##id] = STR(name),

static const struct str layers[N_LAYERS] = {LAYERS(LAYER_STR)};

static const struct str bands[] = {
    [BAND_NOT_ASKED] = STR(""),
    [BAND_CONFIDENT] = STR("confident"),
    [BAND_UNSURE] = STR("unsure"),
    [BAND_OUT_OF_SCOPE] = STR("out_of_scope"),
};

static const struct str policies[] = {
    [UNSURE_AUTO] = STR("auto"),     [UNSURE_DEFAULT] = STR("default"),
    [UNSURE_BEST] = STR("best"),     [UNSURE_ASK] = STR("ask"),
    [UNSURE_REFUSE] = STR("refuse"),
};

static const struct str tiers[N_TIERS] = {
    [TIER_NONE] = STR(""),
    [TIER_TABLE] = STR("table"),
    [TIER_TRANSFORMER] = STR("transformer"),
};

static const struct str verdicts[] = {
    [VERDICT_OPEN] = STR("open"),
    [VERDICT_POSITIVE] = STR("positive"),
    [VERDICT_NEGATIVE] = STR("negative"),
    [VERDICT_NEUTRAL] = STR("neutral"),
};

struct str layer_name(enum layer l)
{
    return layers[l];
}

enum layer layer_of(struct str name)
{
    return (enum layer)str_index(layers, N_LAYERS, name);
}

bool layer_is_routed(enum layer l)
{
    return l == LAYER_SEMANTIC || l == LAYER_INTENT || l == LAYER_DEFAULT ||
           l == LAYER_NONE;
}

static bool is_sentence_mark(struct str word)
{
    static const struct str marks[] = {
        STR("."), STR(","), STR("!"),  STR("?"),  STR(";"),  STR(":"), STR("…"),
        STR("¿"), STR("¡"), STR("。"), STR("，"), STR("！"), STR("？")};

    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (str_eq(word, marks[i]))
            return true;
    return false;
}

/* Hashes the words as the word search reads them, one after the other.
 * Punctuation counts only in a text that has nothing else. */
uint64_t decision_text_hash(struct str text)
{
    uint64_t seed[2] = {0, text.n > HASHED_MAX ? text.n : 0};
    uint64_t marks[2] = {1, seed[1]};
    struct words w;

    words_begin(&w, str_head(text, HASHED_MAX));
    while (words_next(&w)) {
        uint64_t *of = is_sentence_mark(w.word) ? marks : seed;

        of[0] = hash_bytes(w.is_long ? w.place : w.word, of);
    }
    return seed[0] ? seed[0] : marks[0];
}

struct str band_name(enum band b)
{
    return bands[b];
}

struct str tier_name(enum tier t)
{
    return tiers[t];
}

enum tier tier_of(struct str name)
{
    return (enum tier)str_index(tiers, N_TIERS, name);
}

struct str unsure_policy_name(enum unsure_policy p)
{
    return policies[p];
}

static const struct str signals[N_SIGNALS] = {
    [SIGNAL_SEMANTIC] = {"semantic", 8},
    [SIGNAL_PERFORMANCE] = {"performance", 11},
    [SIGNAL_KEYWORD] = {"keyword", 7},
    [SIGNAL_RECENCY] = {"recency", 7},
};

struct str signal_name(enum signal s)
{
    return signals[s];
}

const double decision_alphas[ALPHAS] = {0.05, 0.1, 0.15, 0.2, 0.3, 0.4,
                                        0.5,  0.7, 1,    1.5, 2,   3};

struct str verdict_name(enum verdict v)
{
    return verdicts[v];
}

const char *hindsight_word(enum hindsight h)
{
    static const char *const words[N_HINDSIGHTS] = {
        [HINDSIGHT_BETTER] = "better",   [HINDSIGHT_WORSE] = "worse",
        [HINDSIGHT_AS_BAD] = "as bad",   [HINDSIGHT_WAS_BAD] = "was bad",
        [HINDSIGHT_UNKNOWN] = "unknown",
    };

    return words[h];
}

enum hindsight hindsight_of(const struct decision *was, struct str to)
{
    if (was->overridden_to.n) {
        if (str_eq_nocase(was->overridden_to, to))
            return HINDSIGHT_BETTER;
        /* A person said that it was right after all. */
        return str_eq_nocase(was->overridden_to, was->agent) ? HINDSIGHT_WORSE
                                                             : HINDSIGHT_AS_BAD;
    }
    switch ((int)was->verdict) {
    case VERDICT_POSITIVE: return HINDSIGHT_WORSE;
    case VERDICT_NEGATIVE: return HINDSIGHT_WAS_BAD;
    default: return HINDSIGHT_UNKNOWN;
    }
}
