#ifndef SERVER_PROVIDERS_H
#define SERVER_PROVIDERS_H

/* providers: outgoing requests and vectors, as configured: one fetch for all
 * modules, and one embed.
 *
 * Borrows the configuration from open or commit to the next commit or close.
 * Threads: the loop's; providers_check any. */

#include "embed/embed.h"
#include "net/client/fetch.h"
#include "server/config/config.h"

enum { PROVIDERS_EMBEDS = 1 };

struct providers {
    struct loop *loop;
    struct log *log;
    uint64_t seed[2];
    struct fetch *fetch;
    bool is_without_ca; /* outgoing.caFile could not be read at the start */
    bool will_be_without_ca;                /* likewise, once committed */
    struct embed *embeds[PROVIDERS_EMBEDS]; /* NULL: not open */
    bool is_stopped;                        /* the one being waited for */
};

/* Open and check everything, including files of models, without any request.
 * The caller has set loop, log and seed. providers_close must follow, also
 * after an error. `folder` is the data folder. */
MUST_USE enum err providers_open(struct providers *o, const struct config *c,
                                 const char *folder, struct why *why);

/* Request one vector, so that the log shows at the start whether the provider
 * works, not only at the first query. Nothing waits for it. */
void providers_greet(struct providers *o);

/* A reload: prepare, then commit, which cannot fail, or forget. */
MUST_USE enum err providers_prepare(struct providers *o, const struct config *c,
                                    struct why *why);
void providers_commit(struct providers *o, const struct config *c);
void providers_forget(struct providers *o);

/* Runs the loop until both have stopped. Harmless if nothing was opened. */
void providers_close(struct providers *o);

/* Complete a message about minilm that ends in EMBED_ADVICE with the data
 * folder or the setting that it concerns. */
void providers_advise(const struct config *c, struct why *why);

/* The error of an embed request, for a command's exit status: a provider that
 * is too slow or answers nonsense counts as unreachable. */
enum err providers_failure(enum embed_kind kind, enum err e);

/* Report the problem that would prevent a server with this configuration from
 * starting, and the setting it is about. Makes no request. */
typedef void providers_report(void *ctx, const char *setting, const char *what);
void providers_check(const struct config *c, providers_report *report,
                     void *ctx);

/* Append a description of the model, if it can be used. */
void providers_describe(const struct config *c, struct buf *out);

#endif
