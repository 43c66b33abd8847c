#ifndef MODEL_AGENT_H
#define MODEL_AGENT_H

/* agent: who can be given work. Names are unique whatever their case. */

#include "base/map.h"
#include "base/str.h"

enum {
    AGENT_NAME_MAX = 128,
    AGENT_URL_MAX = 2048,
    AGENT_TITLE_MAX = 128,
};

struct agent {
    struct str name;  /* as it was written */
    struct str url;   /* how it is reached: "echo:250" */
    struct str title; /* for people; empty: none */
};

/* The road that a url names. */
enum road {
    ROAD_ECHO, /* "echo:", "echo:250": answers with its message, after so many
                * milliseconds; to try things out with */
};

struct agent_url {
    enum road road;
    int64_t delay_ms; /* ROAD_ECHO: 0 to ECHO_DELAY_MAX_MS */
};

enum { ECHO_DELAY_MAX_MS = 3600 * 1000 };

/* ERR_SYNTAX when it is no url that we know or longer than AGENT_URL_MAX; *out
 * is then untouched. */
MUST_USE enum err agent_url_read(struct str url, struct agent_url *out);

/* What a url must be, to stand behind "must be". */
struct str agent_url_allowed(void);

/* All of them as a decision may see them. Borrowed for the call. */
struct agents {
    const struct agent *list; /* in the order of their names, without case */
    size_t n;
    const struct map *by_name; /* lower-case name -> struct agent */
};

/* [A-Za-z0-9][A-Za-z0-9._-]{0,127} */
bool agent_name_is_valid(struct str name);

/* NULL when there is none of that name, whatever its case. */
const struct agent *agent_find(const struct agents *all, struct str name);

#endif
