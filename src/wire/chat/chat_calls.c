/* Tool calls, put together from the pieces that an endpoint streams.
 *
 * Servers differ: some leave out the index and send each call whole, use index
 * 0 for all calls, repeat the name in every piece, or send no id. All of that
 * is understood. Everything that is sent back is valid for every server: a
 * unique id for each call, a valid name, and an object as arguments. Endpoints
 * keep no state, so they do not notice the difference. */
#include "wire/chat/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/fault.h"

static struct chat_call *chat_call_by_index(struct chat_calls *c, int64_t index)
{
    /* The last one: a server that uses an index again means the newest call. */
    for (size_t i = c->n; index >= 0 && i-- > 0;)
        if (c->list[i].index == index)
            return &c->list[i];
    return NULL;
}

static struct chat_call *chat_call_by_id(struct chat_calls *c, struct str id)
{
    for (size_t i = c->n; i-- > 0;)
        if (str_eq(str_of(c->list[i].id), id))
            return &c->list[i];
    return NULL;
}

/* The call that a piece continues; NULL if it begins one. */
static struct chat_call *chat_call_of(struct chat_calls *c, int64_t index,
                                      struct str id, struct str name)
{
    struct chat_call *k = chat_call_by_index(c, index);

    if (k)
        return id.n && name.n && k->id[0] && !str_eq(str_of(k->id), id) ? NULL
                                                                        : k;
    if (index >= 0)
        return NULL;
    if (id.n)
        return chat_call_by_id(c, id);
    return name.n || !c->n ? NULL : &c->list[c->n - 1];
}

static struct chat_call *chat_call_begin(struct chat_calls *c, int64_t index)
{
    struct chat_call *k = &c->list[c->n++];

    *k = (struct chat_call){.index = index};
    buf_init(&k->arguments, CHAT_CALLS_BYTES);
    return k;
}

/* A name comes in pieces, or whole with every piece. */
static void chat_call_add_name(struct chat_call *k, struct str name)
{
    size_t n = strlen(k->name);

    if (!name.n || str_eq(str_of(k->name), name))
        return;
    if (name.n > CHAT_CALL_NAME_MAX - n) {
        k->has_bad_name = true;
        return;
    }
    snprintf(k->name + n, sizeof(k->name) - n, "%.*s", STR_ARG(name));
}

/* Arguments that are too long are dropped: half of them would be worse. */
static enum err chat_call_add_arguments(struct chat_calls *c,
                                        struct chat_call *k, struct str text)
{
    if (k->is_cut || !text.n)
        return OK;
    if (text.n > CHAT_CALLS_BYTES - c->bytes) {
        k->is_cut = true;
        c->bytes -= k->arguments.n;
        buf_fini(&k->arguments);
        buf_init(&k->arguments, CHAT_CALLS_BYTES);
        return OK;
    }
    buf_add_str(&k->arguments, text);
    c->bytes += text.n;
    return k->arguments.over || FAULT("chat.calls") ? ERR_NOMEM : OK;
}

/* Some servers send the object itself. */
static enum err chat_call_add_object(struct chat_calls *c, struct chat_call *k,
                                     const struct json *v)
{
    struct buf text;
    struct json_out o;
    enum err e;

    buf_init(&text, CHAT_CALLS_BYTES);
    o = json_out(&text);
    json_put(&o, v);
    k->is_cut |= text.over;
    e = chat_call_add_arguments(c, k, buf_str(&text));
    buf_fini(&text);
    return e;
}

static enum err chat_calls_add_piece(struct chat_calls *c,
                                     const struct chat_piece *p, bool is_whole)
{
    bool is_id = p->id.n <= CHAT_CALL_ID_MAX && !str_has_any_control(p->id);
    struct str id = is_id ? p->id : STR("");
    struct chat_call *k =
        is_whole ? NULL : chat_call_of(c, p->index, id, p->name);

    if (!k && p->is_more)
        return OK;
    if (!k && c->n == CHAT_CALLS_MAX) {
        c->n_more += is_whole || id.n ||
                     p->name.n; /* else it continues a call without room */
        return OK;
    }
    if (!k)
        k = chat_call_begin(c, is_whole ? -1 : p->index);
    if (!k->id[0])
        snprintf(k->id, sizeof(k->id), "%.*s", STR_ARG(id));
    chat_call_add_name(k, p->name);
    return p->object ? chat_call_add_object(c, k, p->object)
                     : chat_call_add_arguments(c, k, p->arguments);
}

enum err chat_calls_add(struct chat_calls *c, const struct chat_word *w)
{
    enum err e = OK;

    for (size_t i = 0; i < w->n_pieces && !e; i++)
        e = chat_calls_add_piece(c, &w->pieces[i], w->is_whole);
    return e;
}

void chat_calls_clear(struct chat_calls *c)
{
    for (size_t i = 0; i < c->n; i++)
        buf_fini(&c->list[i].arguments);
    *c = (struct chat_calls){.n = 0};
}

struct str chat_arguments(const struct chat_call *k)
{
    struct str s = str_trim(buf_str(&k->arguments));

    if (k->is_cut)
        return STR("");
    if (!s.n)
        return STR("{}");
    return s.p[0] != '{' || json_check(s, NULL) != OK ? STR("") : s;
}

/* Writing them back. */

static bool chat_is_tool_name(const char *s)
{
    for (; *s; s++)
        if (!(*s >= 'a' && *s <= 'z') && !(*s >= 'A' && *s <= 'Z') &&
            !(*s >= '0' && *s <= '9') && *s != '_' && *s != '-')
            return false;
    return true;
}

struct str chat_call_name(const struct chat_call *k)
{
    bool is_good = k->name[0] && !k->has_bad_name && chat_is_tool_name(k->name);

    return is_good ? str_of(k->name) : STR("unknown");
}
