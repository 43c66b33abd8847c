/* The types of settings that say whom else to ask: a URL, the name of a
 * variable that holds a secret, and texts that go there as they are. */
#include "base/url.h"
#include "config/internal.h"

static enum err read_or_empty(const struct setting *s, struct arena *a,
                              const struct json *v, void *field)
{
    if (v->s.n)
        return setting_str_read(s, a, v, field);
    *(struct str *)field = (struct str){"", 0};
    return OK;
}

/* A text of whatever characters, line ends too; empty where none is needed. */

static enum err text_read(const struct setting *s, struct arena *a,
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

const struct setting_type type_text = {text_read,         setting_str_is_same,
                                       setting_str_write, text_allowed,
                                       JSON_STR,          false};

/* Where requests are sent to. */

static bool is_endpoint(struct str text, struct why *why)
{
    struct url url;

    if (!url_is_http(text)) {
        why_err(why, ERR_SYNTAX, "it is to begin with https:// or http://");
        return false;
    }
    return url_read(text, &url, why) == OK;
}

static enum err endpoint_read(const struct setting *s, struct arena *a,
                              const struct json *v, void *field)
{
    bool may_be_empty = s->preset != NULL;

    if (v->type != JSON_STR ||
        (!(v->s.n == 0 && may_be_empty) && !is_endpoint(v->s, NULL)))
        return ERR_BAD_CONFIG;
    return read_or_empty(s, a, v, field);
}

static void endpoint_allowed(const struct setting *s, struct buf *out)
{
    buf_addf(out, "a URL with http or https%s", s->preset ? ", or empty" : "");
}

/* For people to see: some providers want their key in the query. */
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
    if (is_endpoint(text, why))
        why_err(why, ERR_SYNTAX, "too long");
}

const struct setting_type type_endpoint = {endpoint_read,  setting_str_is_same,
                                           endpoint_write, endpoint_allowed,
                                           JSON_STR,       false};

/* The name of a variable. In capitals, as such names are: most keys are not,
 * and one that was written here by mistake is noticed, and never shown. */

enum { VARIABLE_MAX = 128 };

static bool is_variable(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] >= 'A' && s.p[i] <= 'Z') && s.p[i] != '_' &&
            !(i && s.p[i] >= '0' && s.p[i] <= '9'))
            return false;
    return s.n <= VARIABLE_MAX && !str_starts(s, STR("SIGNALBOX_"));
}

static enum err variable_read(const struct setting *s, struct arena *a,
                              const struct json *v, void *field)
{
    if (v->type != JSON_STR || !is_variable(v->s))
        return ERR_BAD_CONFIG;
    return read_or_empty(s, a, v, field);
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
                "names that begin with SIGNALBOX_ are those of settings; "
                "choose another");
    else
        why_err(why, ERR_SYNTAX,
                "must be the name of an environment variable, in capitals "
                "(what is written there is not shown: the key itself belongs "
                "into that variable)");
}

const struct setting_type type_variable = {
    variable_read,     setting_str_is_same,
    setting_str_write, variable_allowed,
    JSON_STR,          false};
