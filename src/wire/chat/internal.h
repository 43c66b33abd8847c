#ifndef WIRE_CHAT_INTERNAL_H
#define WIRE_CHAT_INTERNAL_H

#include "wire/chat/chat.h"

/* One dialect. */
struct chat_dialect {
    struct str path; /* after ".../v1" */
    struct str key_header, key_prefix;
    struct str version_header, version; /* empty: none */
    const char *answer_member;

    void (*write)(struct json_out *o, const struct chat_request *rq);
    /* Fill in the rest of what chat_read returns. ERR_NOMEM. */
    enum err (*read)(struct arena *a, const struct json *root,
                     struct chat_word *out);
    void (*write_round)(struct json_out *o, const struct chat_calls *c,
                        struct str text, const struct str *answers);
};

extern const struct chat_dialect chat_openai, chat_anthropic;

/* The name of a schema, or of the tool that stands for one. */
#define CHAT_OBJECT_TOOL "answer"

/* The text of v[key], cut to `most` bytes; empty if it is not text. */
struct str chat_text(const struct json *v, struct str key, size_t most);

/* The texts of a list of parts, concatenated. ERR_NOMEM. */
MUST_USE enum err chat_join_parts(struct arena *a, const struct json *list,
                                  struct str *out);

/* A count of tokens; -1: absent or invalid. */
int64_t chat_count(const struct json *v);

/* The name to send back for a call: its own, or "unknown" if that is
 * invalid. */
struct str chat_call_name(const struct chat_call *k);

void chat_put_message(struct json_out *o, struct str role, struct str text);

#endif
