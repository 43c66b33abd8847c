#ifndef CHAT_INTERNAL_H
#define CHAT_INTERNAL_H

#include "chat/chat.h"

/* What differs from one dialect to the other. */
struct chat_dialect {
    struct str path; /* behind ".../v1" */
    struct str key_header, key_prefix;
    struct str version_header, version; /* empty: there is none */
    const char *answer_member;

    void (*write)(struct json_out *o, const struct chat_request *rq);
    /* The rest of what chat_read fills in. ERR_NOMEM. */
    enum err (*read)(struct arena *a, const struct json *root,
                     struct chat_word *out);
    void (*write_round)(struct json_out *o, const struct chat_calls *c,
                        struct str text, const struct str *answers);
};

extern const struct chat_dialect chat_openai, chat_anthropic;

/* The tool by which a schema is asked for where there is no better way. */
#define CHAT_OBJECT_TOOL "answer"

/* A member that is text, at most so much of it; empty: it is none. */
struct str chat_text(const struct json *v, struct str key, size_t most);

/* The texts of a list of parts, one behind the other. ERR_NOMEM. */
MUST_USE enum err chat_join_parts(struct arena *a, const struct json *list,
                                  struct str *out);

/* A count of tokens; -1: it is none. */
int64_t chat_count(const struct json *v);

/* What a call may be called when it is written back. */
struct str chat_call_name(const struct chat_call *k);

void chat_put_message(struct json_out *o, struct str role, struct str text);

#endif
