/* One table of fields, so that a new choice is one line here and one in the
 * struct, and shows in the card by itself. */
#include "train/recipe.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct field {
    const char *name;
    size_t at;
    bool is_real;
    double min, max;
};

#define INT(name, min, max)                                   \
    {                                                         \
#name, offsetof(struct recipe, name), false, min, max \
    }
#define REAL(name, min, max)                                 \
    {                                                        \
#name, offsetof(struct recipe, name), true, min, max \
    }

static const struct field fields[] = {
    INT(seed, 0, 1e15),
    INT(text_words, 1, 400),
    INT(cards, 0, 1e7),
    INT(requests, 0, 1e7),
    INT(joins, 0, 1e7),
    INT(utterances, 0, 1e7),
    INT(crops, 0, 64),
    INT(crop_min_words, 1, 64),
    INT(crop_max_words, 1, 64),
    INT(held_permille, 0, 500),
    INT(word_min_count, 1, 1e9),
    INT(max_words, 0, 1e6),
    INT(phrase_min_count, 1, 1e9),
    REAL(phrase_min_gain, 0, 100),
    INT(max_phrases, 0, 65535),
    INT(max_bytes, 1000, 16e6),
    REAL(centre, 0, 1),
    REAL(sif, 0, 1),
    INT(epochs, 0, 1000),
    INT(batch, 16, 65536),
    REAL(rate, 0, 1),
    REAL(rate_end, 0, 1),
    INT(warm_up, 0, 1e6),
    REAL(beta1, 0, 0.9999),
    REAL(beta2, 0, 0.999999),
    INT(linger, 0, 1e6),
    REAL(cosine, 0, 1000),
    REAL(relation, 0, 1000),
    INT(relation_block, 16, 65536),
    REAL(drop, 0, 0.9),
    INT(pair_epochs, 0, 1000),
    INT(pair_batch, 16, 65536),
    REAL(pair_rate, 0, 1),
    REAL(pair_heat, 0.001, 10),
    REAL(pair_cosine, 0, 1000),
};

enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]) };

struct recipe recipe_builtin(void)
{
    return (struct recipe){
        .seed = 1,
        .text_words = 40,
        .cards = 335000,
        .requests = 300000,
        .joins = 160000,
        .utterances = 450000,
        .crops = 0,
        .crop_min_words = 2,
        .crop_max_words = 12,
        .held_permille = 5,
        .word_min_count = 3,
        .max_words = 5000,
        .phrase_min_count = 10,
        .phrase_min_gain = 1,
        .max_phrases = 65535,
        .max_bytes = 16000000,
        .centre = 0,
        .sif = 1e-3,
        .epochs = 5,
        .batch = 2048,
        .rate = 2e-3,
        .rate_end = 0.02,
        .warm_up = 200,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .linger = 100,
        .cosine = 1,
        .relation = 3,
        .relation_block = 512,
        .drop = 0,
        .pair_epochs = 0,
        .pair_batch = 512,
        .pair_rate = 1e-3,
        .pair_heat = 0.05,
        .pair_cosine = 1,
    };
}

enum err recipe_set(struct recipe *r, struct str name_and_value,
                    struct why *why)
{
    struct str value = name_and_value;
    struct str name = str_cut(&value, '=');
    char text[64], *end;
    double v;

    for (size_t i = 0; i < N_FIELDS; i++) {
        const struct field *f = &fields[i];

        if (!str_eq(name, str_of(f->name)))
            continue;
        snprintf(text, sizeof(text), "%.*s", STR_ARG(value));
        v = strtod(text, &end);
        if (!value.n || value.n >= sizeof(text) || *end || !isfinite(v) ||
            v < f->min || v > f->max || (!f->is_real && v != floor(v)))
            return why_err(why, ERR_USAGE, "%s takes a %s from %.15g to %.15g",
                           f->name, f->is_real ? "number" : "whole number",
                           f->min, f->max);
        if (f->is_real)
            memcpy((char *)r + f->at, &v, sizeof(v));
        else
            memcpy((char *)r + f->at, &(int64_t){(int64_t)v}, sizeof(int64_t));
        return OK;
    }
    return why_err(why, ERR_USAGE, "the recipe has no \"%.*s\"; see recipe.h",
                   STR_ARG(name));
}

void recipe_list(const struct recipe *r, struct buf *out)
{
    for (size_t i = 0; i < N_FIELDS; i++) {
        const char *at = (const char *)r + fields[i].at;
        int64_t n;
        double v;

        memcpy(&n, at, sizeof(n));
        memcpy(&v, at, sizeof(v));
        if (fields[i].is_real)
            buf_addf(out, "%s %g\n", fields[i].name, v);
        else
            buf_addf(out, "%s %lld\n", fields[i].name, (long long)n);
    }
}
