#ifndef OUTWARD_H
#define OUTWARD_H

/* outward: what the server asks of others, and what it turns text into vectors
 * with, as the configuration says: one fetch for all, and one embed.
 *
 * Borrows the configuration from open or commit to the next commit or close.
 * Threads: the loop's; outward_check any. */

#include "config/config.h"
#include "embed/embed.h"
#include "fetch/fetch.h"

enum { OUTWARD_EMBEDS = 1 };

struct outward {
    struct loop *loop;
    struct log *log;
    uint64_t seed[2];
    struct fetch *fetch;
    bool is_without_ca; /* outgoing.caFile could not be read at the start */
    bool will_be_without_ca;              /* nor by what was prepared */
    struct embed *embeds[OUTWARD_EMBEDS]; /* NULL: there is no such */
    bool is_stopped;                      /* the one that was asked to */
};

/* Everything is opened and checked, the files of models included; nobody is
 * asked anything. loop, log and seed are filled in. After an error too,
 * outward_close must follow. `folder` is that of the data. */
MUST_USE enum err outward_open(struct outward *o, const struct config *c,
                               const char *folder, struct why *why);

/* Ask providers for one vector, so that the log says at the start whether they
 * are there, and not when the first question has come. Nothing waits for it. */
void outward_greet(struct outward *o);

/* What a reload can change: prepare, then commit, which cannot fail, or
 * forget. */
MUST_USE enum err outward_prepare(struct outward *o, const struct config *c,
                                  struct why *why);
void outward_commit(struct outward *o, const struct config *c);
void outward_forget(struct outward *o);

/* Turns the loop until nothing is left. Harmless when nothing was opened. */
void outward_close(struct outward *o);

/* Where words about minilm end in EMBED_ADVICE, add for which data folder. */
void outward_advise(const struct config *c, struct why *why);

/* What asking a model's embed failed with, for a command's exit status: a
 * provider that is too slow, or answers what is of no use, is one that does
 * not answer. */
enum err outward_failure(enum embed_kind kind, enum err e);

/* What would keep a server with this configuration from starting, by the
 * setting that is to blame. Tries what does not ask anybody else. */
typedef void outward_say(void *ctx, const char *setting, const char *what);
void outward_check(const struct config *c, outward_say *say, void *ctx);

/* Add what the models are, in words, where they are good. */
void outward_describe(const struct config *c, struct buf *out);

#endif
