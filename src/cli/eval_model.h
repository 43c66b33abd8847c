#ifndef CLI_EVAL_MODEL_H
#define CLI_EVAL_MODEL_H

/* eval_model: a model with a loop of its own, for who has many texts and
 * nothing else to do meanwhile. It is opened as the server opens it, and texts
 * go the way they go there: at once where embed_now has them, else in calls of
 * embed_start. Nothing is cached, so that every text costs what it costs.
 * Threads: the main one. */

#include "base/log.h"
#include "base/loop.h"
#include "outward.h"

struct eval_model {
    struct loop loop;
    struct log log;
    struct config config; /* as given, but for the model and its limits */
    struct outward outward;
    bool has_loop;
};

/* What is wrong with the model's file or the settings is said in `why`; *m
 * needs eval_model_close all the same. Borrows the configuration until then. */
MUST_USE enum err eval_model_open(struct eval_model *m, enum embed_kind kind,
                                  const struct config *c, struct why *why);
void eval_model_close(struct eval_model *m);

struct embed_stamp eval_model_stamp(const struct eval_model *m);

/* The vector of the ith text, with as many numbers as the stamp says; NULL
 * where it is all zero. Texts come in any order. */
typedef void eval_take_fn(void *ctx, size_t i, const float *vector,
                          uint32_t dims);

/* All of them, each once, before it returns; the first failure ends it. */
MUST_USE enum err eval_model_embed(struct eval_model *m,
                                   const struct str *texts, size_t n,
                                   enum embed_use use, eval_take_fn *take,
                                   void *ctx, struct why *why);

#endif
