/* Types of the settings of a provider: its URL, the name of the variable that
 * holds its key, and texts that are sent to it unchanged. */
#include "base/url.h"
#include "server/config/internal.h"

/* Any text without zero bytes, line ends included. `min` and `max` limit it. */

static enum err setting_text_read(const struct setting *s, struct arena *a,
                                  const struct json *v, void *field)
{
    if (v->type != JSON_STR || v->s.n < (size_t)s->min ||
        v->s.n > (size_t)s->max || (v->s.n && memchr(v->s.p, 0, v->s.n)))
        return ERR_BAD_CONFIG;
    return arena_keep(a, v->s, field) ? OK : ERR_NOMEM;
}

static void text_allowed(const struct setting *s, struct buf *out)
{
    if (s->min)
        buf_addf(out, "a text of %lld to %lld bytes", (long long)s->min,
                 (long long)s->max);
    else
        buf_addf(out, "a text of up to %lld bytes", (long long)s->max);
}

const struct setting_type type_text = {.read = setting_text_read,
                                       .is_same = setting_str_is_same,
                                       .write = setting_str_write,
                                       .allowed = text_allowed,
                                       .json = JSON_STR};

/* The URL that requests are sent to. */

static bool endpoint_check(struct str text, struct why *why)
{
    struct url url;

    if (!url_is_http(text)) {
        why_err(why, ERR_SYNTAX, "must begin with https:// or http://");
        return false;
    }
    return url_read(text, &url, why) == OK;
}

static bool is_endpoint(struct str text)
{
    return endpoint_check(text, NULL);
}

static void endpoint_allowed(const struct setting *s, struct buf *out)
{
    buf_addf(out, "a URL with http or https%s", s->preset ? ", or empty" : "");
}

/* Hides the query, since some providers expect their key there. */
static void endpoint_write(const struct setting *s, struct json_out *o,
                           const void *field)
{
    struct str url = *(const struct str *)field, shown = str_cut(&url, '?');
    struct buf text;

    (void)s;
    buf_init(&text, SETTING_STR_MAX + 16);
    buf_add_str(&text, shown);
    if (url.n)
        buf_add_str(&text, STR("?not-shown"));
    json_put_str(o, buf_str(&text));
    buf_fini(&text);
}

void setting_explain_endpoint(struct str text, struct why *why)
{
    if (endpoint_check(text, why))
        why_err(why, ERR_SYNTAX, "too long");
}

const struct setting_type type_endpoint = {.read = setting_str_read,
                                           .is_same = setting_str_is_same,
                                           .write = endpoint_write,
                                           .allowed = endpoint_allowed,
                                           .json = JSON_STR,
                                           .is_valid = is_endpoint,
                                           .may_be_empty = true};

/* The name of a variable. Only capitals are accepted, so that most keys that
 * are written here by mistake are rejected. The value is never shown. */

enum { VARIABLE_MAX = 128 };

static bool is_variable(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] >= 'A' && s.p[i] <= 'Z') && s.p[i] != '_' &&
            !(i && s.p[i] >= '0' && s.p[i] <= '9'))
            return false;
    return s.n <= VARIABLE_MAX && !str_starts(s, STR("SIGNALBOX_"));
}

static void variable_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_add_str(out, STR("the name of an environment variable, in capitals, "
                         "or empty"));
}

void setting_explain_variable(struct str text, struct why *why)
{
    if (str_starts(text, STR("SIGNALBOX_")))
        why_err(why, ERR_SYNTAX,
                "names that begin with SIGNALBOX_ are reserved for settings; "
                "choose another");
    else
        why_err(why, ERR_SYNTAX,
                "must be the name of an environment variable, in capitals "
                "(the value is not shown here: put the key itself into that "
                "variable)");
}

const struct setting_type type_variable = {
    SETTING_STR_TYPE, .allowed = variable_allowed, .is_valid = is_variable,
    .may_be_empty = true};
