#ifndef LAB_MODEL_H
#define LAB_MODEL_H

/* model: shared by the files of `signalbox model`. Threads: the main one. */

#include "cli/cli.h"
#include "embed/embed.h"
#include "lab/modelfile.h"

/* A running command. */
struct model {
    struct cli *c;
    struct config *config;
    struct modelfile file;   /* of minilm, in the data folder */
    const char *file_in_use; /* of minilm, as a server would load it */
};

/* Load the configuration and find the file. False: the error has been reported,
 * and there is nothing to free. */
MUST_USE bool model_open(struct model *m, struct cli *c,
                         enum exit_status *status);
void model_close(struct model *m);

/* The same, with this embed.kind; NULL: the configured one. */
MUST_USE bool model_open_with(struct model *m, struct cli *c, const char *kind,
                              enum exit_status *status);

/* The kind of that name. False: there is none, which has been reported. */
MUST_USE bool model_kind(struct cli *c, struct str name, enum embed_kind *out,
                         enum exit_status *status);

/* How the configuration uses the kind: "first", or "part" of the first. NULL:
 * not at all. */
const char *model_use(const struct model *m, enum embed_kind kind);

/* Whether this file of minilm is the one that `model install` builds. A file
 * from other weights works too, but its origin is unknown. */
bool model_is_published(const struct embed_about *a);

/* Print the origin and licence, if they are known. */
void model_say_origin(struct cli *c, const struct embed_about *a,
                      const char *remark);

/* "23.7 MB" */
struct model_size {
    char text[32];
};
struct model_size model_size(uint64_t bytes);

/* Write the members of a model into the open object. path: NULL without a file.
 */
struct json_out;
void model_put_about(struct json_out *o, const struct embed_about *a,
                     const char *path);

/* "model install minilm", "model try TEXT ...". */
enum exit_status model_install(struct cli *c, struct str name);
enum exit_status model_try(struct cli *c, struct str text);

#endif
