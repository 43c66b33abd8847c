/* The parts that both dialects share, and the choice between them.
 *
 * Reading ignores unknown members: every server adds its own. */
#include "wire/chat/internal.h"

#include <stdio.h>
#include <string.h>

const char *const chat_used_names[CHAT_USED] = {
    "prompt_tokens", "completion_tokens", "total_tokens"};

static const struct chat_dialect *const dialects[] = {
    [MODEL_OPENAI] = &chat_openai,
    [MODEL_ANTHROPIC] = &chat_anthropic,
};

/* Reaching an endpoint. */

static bool chat_make_url(struct arena *a, struct str path, struct str endpoint,
                          struct str *out)
{
    struct str query =
                   str_sub(endpoint, str_find(endpoint, '?', 0), endpoint.n),
               base = str_sub(endpoint, 0, endpoint.n - query.n);
    size_t size = endpoint.n + path.n + 1;
    char *text = arena_alloc(a, size);

    if (!text)
        return false;
    while (base.n && base.p[base.n - 1] == '/')
        base.n--;
    if (base.n >= path.n &&
        str_eq(str_sub(base, base.n - path.n, base.n), path))
        base.n -= path.n;
    *out = (struct str){text, (size_t)snprintf(text, size, "%.*s%.*s%.*s",
                                               STR_ARG(base), STR_ARG(path),
                                               STR_ARG(query))};
    return true;
}

static void chat_add_header(struct chat_reach *r, struct str name,
                            struct str value)
{
    r->headers[r->n_headers++] = (struct chat_header){name, value};
}

enum err chat_reach(struct arena *a, enum model_kind kind, struct str endpoint,
                    struct str key, bool streams, struct chat_reach *out)
{
    const struct chat_dialect *d = dialects[kind];
    size_t size = d->key_prefix.n + key.n + 1;
    char *value = arena_alloc(a, size);

    *out = (struct chat_reach){.n_headers = 0};
    if (!value || !chat_make_url(a, d->path, endpoint, &out->url))
        return ERR_NOMEM;
    chat_add_header(out, STR("Content-Type"), STR("application/json"));
    chat_add_header(out, STR("Accept"),
                    streams ? STR("text/event-stream, application/json")
                            : STR("application/json"));
    if (d->version.n)
        chat_add_header(out, d->version_header, d->version);
    snprintf(value, size, "%.*s%.*s", STR_ARG(d->key_prefix), STR_ARG(key));
    if (key.n)
        chat_add_header(out, d->key_header, (struct str){value, size - 1});
    return OK;
}

/* Writing. */

void chat_put_message(struct json_out *o, struct str role, struct str text)
{
    json_open(o, '{');
    json_member_text(o, "role", role);
    json_member_text(o, "content", text);
    json_close(o, '}');
}

void chat_write(struct buf *out, const struct chat_request *rq)
{
    struct json_out o = json_out(out);

    dialects[rq->kind]->write(&o, rq);
}

static bool chat_id_is_taken(const struct chat_calls *c, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(c->list[j].id, c->list[i].id) == 0)
            return true;
    return false;
}

/* Nine letters and digits: some servers accept nothing else. */
static void chat_give_id(struct chat_calls *c, size_t i, size_t round)
{
    struct chat_call *k = &c->list[i];

    for (size_t n = i; !k->id[0] || chat_id_is_taken(c, i); n++)
        snprintf(k->id, sizeof(k->id), "sb%03zux%03zu", round % 1000, n % 1000);
}

void chat_write_round(struct buf *out, enum model_kind kind,
                      struct chat_calls *c, struct str text,
                      const struct str *answers, size_t round)
{
    struct json_out o = json_out(out);

    o.comma = out->n > 0;
    for (size_t i = 0; i < c->n; i++)
        chat_give_id(c, i, round);
    dialects[kind]->write_round(&o, c, text, answers);
}

/* Reading. */

struct str chat_text(const struct json *v, struct str key, size_t most)
{
    return str_head(json_str_or(json_get(v, key), STR("")), most);
}

enum err chat_join_parts(struct arena *a, const struct json *list,
                         struct str *out)
{
    size_t n = 0;
    char *p;

    JSON_EACH(part, list)
    n += json_str_or(json_get(part, STR("text")), STR("")).n;
    if (!n)
        return OK;
    p = arena_alloc(a, n);
    if (!p)
        return ERR_NOMEM;
    *out = (struct str){p, n};
    JSON_EACH(part, list)
    {
        struct str s = json_str_or(json_get(part, STR("text")), STR(""));

        if (s.n)
            memcpy(p, s.p, s.n);
        p += s.n;
    }
    return OK;
}

int64_t chat_count(const struct json *v)
{
    int64_t n = json_int_or(v, -1);

    return n < 0 ? -1 : n < CHAT_USED_MAX ? n : CHAT_USED_MAX;
}

enum err chat_read(struct arena *a, enum model_kind kind, struct str text,
                   struct chat_word *out, struct why *why)
{
    struct json_error err = {0};
    const struct json *root;
    enum err e;

    *out = (struct chat_word){.is_done = str_eq(str_trim(text), STR("[DONE]")),
                              .used = {-1, -1, -1}};
    if (out->is_done)
        return OK;
    root = json_parse(a, text, 0, &err);
    if (!root && err.err == ERR_NOMEM)
        return why_err(why, ERR_NOMEM, "memory is short");
    if (!root)
        return why_err(why, ERR_BAD_REQUEST,
                       "it is not valid JSON: %s in line %u, column %u",
                       err.what, err.line, err.col);
    if (root->type != JSON_OBJ)
        return why_err(why, ERR_BAD_REQUEST, "it is no JSON object");
    e = dialects[kind]->read(a, root, out);
    return e ? why_err(why, e, "%s", err_row(e)->wording) : OK;
}

const char *chat_answer_member(enum model_kind kind)
{
    return dialects[kind]->answer_member;
}

const struct json *chat_object(const struct chat_word *w)
{
    for (size_t i = 0; i < w->n_pieces; i++)
        if (str_eq(w->pieces[i].name, STR(CHAT_OBJECT_TOOL)) &&
            w->pieces[i].object)
            return w->pieces[i].object;
    return NULL;
}
