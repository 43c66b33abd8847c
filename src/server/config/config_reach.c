/* Types of the settings that limit outgoing connections: address ranges and a
 * proxy. Each has its own error text, since "must be a range" does not explain
 * that 10.0.0.1/8 has bits beyond its prefix. */
#include "base/url.h"
#include "server/config/internal.h"

static enum err range_read(const struct setting *s, struct arena *a,
                           const struct json *v, void *field)
{
    struct guard_range range;

    (void)a;
    if (v->type != JSON_STR || guard_range_read(v->s, &range, NULL) != OK ||
        (range.port && s->is_portless))
        return ERR_BAD_CONFIG;
    *(struct guard_range *)field = range;
    return OK;
}

static bool range_is_same(const struct setting *s, const void *a, const void *b)
{
    const struct guard_range *x = a, *y = b;

    (void)s;
    return x->prefix == y->prefix && x->port == y->port &&
           memcmp(x->addr, y->addr, sizeof(x->addr)) == 0;
}

static void range_write(const struct setting *s, struct json_out *o,
                        const void *field)
{
    char text[GUARD_RANGE_BYTES];

    (void)s;
    guard_range_write(field, text);
    json_put_str(o, str_of(text));
}

static void range_allowed(const struct setting *s, struct buf *out)
{
    buf_add_str(out, s->is_portless
                         ? STR("an address or a network like \"10.0.0.7\", "
                               "\"10.0.0.0/8\" or \"[fd00::]/8\", without a "
                               "port")
                         : STR("\"ADDRESS/PREFIX:PORT\" with or without the "
                               "last two, like \"10.0.0.0/8\" or "
                               "\"[::1]:8080\""));
}

void setting_explain_range(struct str text, struct why *why)
{
    struct guard_range unused;

    if (guard_range_read(text, &unused, why) == OK)
        why->text[0] = '\0';
}

const struct setting_type type_range = {.read = range_read,
                                        .is_same = range_is_same,
                                        .write = range_write,
                                        .allowed = range_allowed,
                                        .json = JSON_STR};

static bool is_proxy(struct str text)
{
    struct url unused;

    return url_read_proxy(text, &unused, NULL) == OK;
}

static void proxy_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_add_str(out, STR("\"http://HOST:PORT\" or empty"));
}

void setting_explain_proxy(struct str text, struct why *why)
{
    struct url unused;

    if (url_read_proxy(text, &unused, why) == OK)
        why_err(why, ERR_SYNTAX, "too long");
}

const struct setting_type type_proxy = {
    SETTING_STR_TYPE, .allowed = proxy_allowed, .is_valid = is_proxy,
    .may_be_empty = true};
