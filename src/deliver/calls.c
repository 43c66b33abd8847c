/* Calls of tools: put together from the pieces that a model's endpoint streams,
 * and written back to it with what came of them.
 *
 * OpenAI says the index with every piece, id and name with the first. Others
 * leave out the index and send each call whole, use index 0 for all of them,
 * repeat the name in every piece, or say no id: all of that is understood.
 * What is written back is what everybody takes: an id of its own for each call,
 * a name of the letters that names may have, arguments that are an object. An
 * endpoint remembers nothing, so it does not miss what it had said instead. */
#include "deliver/chat.h"

#include <stdio.h>

#include "base/fault.h"
#include "base/json.h"

static struct chat_call *by_index(struct chat_calls *c, int64_t index)
{
    /* The last: one that uses an index again means its latest. */
    for (size_t i = c->n; index >= 0 && i-- > 0;)
        if (c->list[i].index == index)
            return &c->list[i];
    return NULL;
}

static struct chat_call *by_id(struct chat_calls *c, struct str id)
{
    for (size_t i = c->n; i-- > 0;)
        if (str_eq(str_of(c->list[i].id), id))
            return &c->list[i];
    return NULL;
}

/* Which call a piece goes on with; NULL: it begins one. */
static struct chat_call *call_of(struct chat_calls *c, int64_t index,
                                 struct str id, struct str name)
{
    struct chat_call *k = by_index(c, index);

    if (k)
        return id.n && name.n && k->id[0] && !str_eq(str_of(k->id), id) ? NULL
                                                                        : k;
    if (index >= 0)
        return NULL;
    if (id.n)
        return by_id(c, id);
    return name.n || !c->n ? NULL : &c->list[c->n - 1];
}

static struct chat_call *begin_call(struct chat_calls *c, int64_t index)
{
    struct chat_call *k = &c->list[c->n++];

    *k = (struct chat_call){.index = index};
    buf_init(&k->arguments, CHAT_CALLS_BYTES);
    return k;
}

/* It is said in pieces, or again as a whole with every piece. */
static void add_name(struct chat_call *k, struct str name)
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

/* Half of them would be worse than none. */
static enum err add_arguments(struct chat_calls *c, struct chat_call *k,
                              struct str text)
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
    return k->arguments.over || FAULT("deliver.calls") ? ERR_NOMEM : OK;
}

/* Some say the object itself. */
static enum err add_object(struct chat_calls *c, struct chat_call *k,
                           const struct json *v)
{
    struct buf text;
    struct json_out o;
    enum err e;

    buf_init(&text, CHAT_CALLS_BYTES);
    o = json_out(&text);
    json_put(&o, v);
    k->is_cut |= text.over;
    e = add_arguments(c, k, buf_str(&text));
    buf_fini(&text);
    return e;
}

static struct str id_of(const struct json *piece)
{
    struct str id = json_str_or(json_get(piece, STR("id")), STR(""));

    return id.n > CHAT_CALL_ID_MAX || str_has_any_control(id) ? STR("") : id;
}

static enum err add_piece(struct chat_calls *c, const struct json *piece,
                          bool is_whole)
{
    const struct json *f = json_get(piece, STR("function"));
    const struct json *arguments = json_get(f, STR("arguments"));
    int64_t index = json_int_or(json_get(piece, STR("index")), -1);
    struct str id = id_of(piece);
    struct str name = json_str_or(json_get(f, STR("name")), STR(""));
    struct chat_call *k = is_whole ? NULL : call_of(c, index, id, name);

    if (piece->type != JSON_OBJ)
        return OK;
    if (!k && c->n == CHAT_CALLS_MAX) {
        c->n_more += is_whole || id.n || name.n; /* else it is more of one */
        return OK;
    }
    if (!k)
        k = begin_call(c, is_whole ? -1 : index);
    if (!k->id[0])
        snprintf(k->id, sizeof(k->id), "%.*s", STR_ARG(id));
    add_name(k, name);
    if (arguments && arguments->type == JSON_OBJ)
        return add_object(c, k, arguments);
    return add_arguments(c, k, json_str_or(arguments, STR("")));
}

enum err chat_calls_add(struct chat_calls *c, const struct chat_word *w)
{
    enum err e = OK;

    if (!w->calls)
        return OK;
    JSON_EACH(piece, w->calls)
    {
        e = add_piece(c, piece, w->is_whole);
        if (e)
            break;
    }
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

static bool is_name(const char *s)
{
    for (; *s; s++)
        if (!(*s >= 'a' && *s <= 'z') && !(*s >= 'A' && *s <= 'Z') &&
            !(*s >= '0' && *s <= '9') && *s != '_' && *s != '-')
            return false;
    return true;
}

static bool is_given(const struct chat_calls *c, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(c->list[j].id, c->list[i].id) == 0)
            return true;
    return false;
}

/* Nine letters and digits: there are those who take nothing else. */
static void give_id(struct chat_calls *c, size_t i, size_t round)
{
    struct chat_call *k = &c->list[i];

    for (size_t n = i; !k->id[0] || is_given(c, i); n++)
        snprintf(k->id, sizeof(k->id), "sb%03zux%03zu", round % 1000, n % 1000);
}

static void put_call(struct json_out *o, const struct chat_call *k)
{
    struct str arguments = chat_arguments(k);
    bool is_good = k->name[0] && !k->has_bad_name && is_name(k->name);

    json_open(o, '{');
    json_member_text(o, "id", str_of(k->id));
    json_member_text(o, "type", STR("function"));
    json_key(o, STR("function"));
    json_open(o, '{');
    json_member_text(o, "name", is_good ? str_of(k->name) : STR("unknown"));
    json_member_text(o, "arguments", arguments.n ? arguments : STR("{}"));
    json_close(o, '}');
    json_close(o, '}');
}

static struct json_out behind_a_comma(struct buf *out)
{
    struct json_out o = json_out(out);

    o.comma = out->n > 0;
    return o;
}

void chat_write_calls(struct buf *out, struct chat_calls *c, struct str text,
                      size_t round)
{
    struct json_out o = behind_a_comma(out);

    json_open(&o, '{');
    json_member_text(&o, "role", STR("assistant"));
    json_member_str(&o, "content", text);
    json_key(&o, STR("tool_calls"));
    json_open(&o, '[');
    for (size_t i = 0; i < c->n; i++) {
        give_id(c, i, round);
        put_call(&o, &c->list[i]);
    }
    json_close(&o, ']');
    json_close(&o, '}');
}

void chat_write_answer(struct buf *out, const struct chat_call *k,
                       struct str text)
{
    struct json_out o = behind_a_comma(out);

    json_open(&o, '{');
    json_member_text(&o, "role", STR("tool"));
    json_member_text(&o, "tool_call_id", str_of(k->id));
    json_member_text(&o, "content", text);
    json_close(&o, '}');
}
