#ifndef LAB_EVAL_MODEL_H
#define LAB_EVAL_MODEL_H

/* eval_model: a model with a loop of its own, to embed many texts
 * synchronously. It is opened as in the server, and texts are embedded as
 * there: at once where embed_now can, else by embed_start. Nothing is cached,
 * so that every text has its full cost. Threads: the main one. */

#include "base/log.h"
#include "base/loop.h"
#include "server/providers.h"

struct eval_model {
    struct loop loop;
    struct log log;
    struct config config; /* a copy with another model and limits */
    struct providers providers;
    bool has_loop;
};

/* Open a model. Errors of its file or settings set why; eval_model_close must
 * follow in any case. Borrows the configuration until then. */
MUST_USE enum err eval_model_open(struct eval_model *m, enum embed_kind kind,
                                  const struct config *c, struct why *why);
void eval_model_close(struct eval_model *m);

struct embed_stamp eval_model_stamp(const struct eval_model *m);

/* Takes the vector of the ith text, with the dimensions of the stamp; NULL if
 * it is all zero. The texts may come in any order. */
typedef void eval_take_fn(void *ctx, size_t i, const float *vector,
                          uint32_t dims);

/* Embed all texts before returning, each once. The first failure ends it. */
MUST_USE enum err eval_model_embed(struct eval_model *m,
                                   const struct str *texts, size_t n,
                                   enum embed_use use, eval_take_fn *take,
                                   void *ctx, struct why *why);

#endif
